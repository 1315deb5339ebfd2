"""Calls of the engine: errors of the docker SDK as faults of the environment, and how one thing is removed.

A removal has patience for ``evocode clean``, and is done in the background for sessions.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from pytest_evocode.errors import EnvironmentFault, SnapshotGone

if TYPE_CHECKING:
    from docker import APIClient

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


_REST_OF_ID = re.compile(r"(?<=\b[0-9a-f]{12})[0-9a-f]{52}\b")
Kind = Literal["container", "network", "volume", "image"]


def discard(client: APIClient, kind: Kind, *names: str, wait: float | None = None) -> None:
    """Remove things of one kind that nobody needs any more; raises nothing, and waits for a moment at most."""
    from pytest_evocode.environments.docker.client import EngineClient

    assert isinstance(client, EngineClient)
    wanted = {f"{kind} {_REST_OF_ID.sub('', name)}": partial(remove, client, kind, name) for name in names}
    client.removals.remove(wanted, wait)


def remove(client: APIClient, kind: Kind, name: str, *, force: bool = True) -> None:
    """Remove a container with its volumes, a network, a volume, or a name of an image and the image with the last one.

    Nothing is done where somebody else was quicker. An image that others are on top of goes with the last of those.
    """
    from docker.errors import APIError, NotFound

    with faults(f"removing the {kind} {name}"), contextlib.suppress(NotFound):
        try:
            if kind == "container":
                client.remove_container(name, v=True, force=True)
            elif kind == "network":
                client.remove_network(name)
            elif kind == "volume":
                client.remove_volume(name, force=True)
            else:
                client.remove_image(name, force=force)
        except APIError as error:
            reason = str(error.explanation)
            if kind == "container" and "already in progress" in reason:
                client.wait(name, condition="removed", timeout=getattr(client, "removal_timeout", None))
            elif kind != "image" or "dependent child" not in reason:
                raise
