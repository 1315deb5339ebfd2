"""Errors of the docker SDK as faults of the environment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pytest_evocode.errors import EnvironmentFault, SnapshotGone

_NO_BASH = 'exec: "bash": executable file not found'


@contextlib.contextmanager
def faults(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into an :class:`~pytest_evocode.errors.EnvironmentFault` that says what was done."""
    from docker.errors import DockerException, ImageNotFound
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        reason = getattr(error, "explanation", None) or str(error)
        if _NO_BASH in reason:
            raise EnvironmentFault(
                "a container needs bash and finds none; if the task's image has none, install it in its "
                "environment/Dockerfile"
            ) from error
        kind = SnapshotGone if isinstance(error, ImageNotFound) else EnvironmentFault
        raise kind(f"Docker failed while {doing}: {reason}") from error
