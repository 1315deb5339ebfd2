"""Errors of the docker SDK as faults of the environment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pytest_evocode.errors import EnvironmentFault


@contextlib.contextmanager
def faults(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into an :class:`~pytest_evocode.errors.EnvironmentFault` that says what was done."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        reason = getattr(error, "explanation", None) or str(error)
        raise EnvironmentFault(f"Docker failed while {doing}: {reason}") from error
