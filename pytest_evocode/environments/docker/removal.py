"""Removing one thing from the engine: with patience for ``evocode clean``, in the background for sessions."""

from __future__ import annotations

import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING, Literal

from pytest_evocode.environments.docker.faults import faults

if TYPE_CHECKING:
    from docker import APIClient

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
