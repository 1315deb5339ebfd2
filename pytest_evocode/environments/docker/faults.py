"""What goes wrong with the engine, in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pytest_evocode.errors import EnvironmentFault


@contextlib.contextmanager
def faults(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into an :class:`~pytest_evocode.errors.EnvironmentFault` that says what was tried."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        said = getattr(error, "explanation", None) or str(error)
        raise EnvironmentFault(f"Docker failed while {doing}: {said}") from error
