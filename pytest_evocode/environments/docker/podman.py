"""Tells whether the engine behind a Docker client is Podman, which answers most of the same calls."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.faults import faults

if TYPE_CHECKING:
    from docker import APIClient

_known: weakref.WeakKeyDictionary[APIClient, bool] = weakref.WeakKeyDictionary()


def is_podman(client: APIClient) -> bool:
    """Tell whether an engine is Podman; each client is asked once."""
    if client not in _known:
        with faults("asking the engine what it is"):
            components = client.version().get("Components") or ()
        _known[client] = any("podman" in str(each.get("Name", "")).lower() for each in components)
    return _known[client]
