"""The images of snapshots: made while the agent goes on, and removed when nothing needs them any more."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.errors import EnvironmentFault, SnapshotGone

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "evocode-snapshot"


class SnapshotImage:
    """An image, which whoever makes it has one use of; it is removed when the last use is given up.

    Args:
        client: A client of the engine.
        name: The name that it has once it is made.
        made: Done when it is; None for an image that exists.
    """

    def __init__(self, client: APIClient, name: str, made: Future[None] | None = None) -> None:
        self.name = name
        if made is None:
            made = Future()
            made.set_result(None)
        self.made = made
        self._client = client
        self._lock = threading.Lock()
        self._uses = 1
        self._discarded = False

    def wait(self) -> str:
        """Return the name when the image is made; raises what kept it from being made."""
        self.made.result()
        return self.name

    def raise_failure(self) -> None:
        """Raise what kept the image from being made, if that is known by now."""
        if self.made.done():
            self.made.result()

    def discard(self) -> None:
        """Give up the first use, once."""
        with self._lock:
            is_first, self._discarded = not self._discarded, True
        if is_first:
            self.release()

    def require(self) -> str:
        """Return the name as :meth:`wait` does, unless the first use was given up."""
        if self._discarded:
            raise SnapshotGone(f"the snapshot {self.name} was discarded")
        return self.wait()

    def hold(self) -> None:
        """Have one more use of it."""
        with self._lock:
            self._uses += 1

    def release(self) -> None:
        """Give up a use, and with the last one the image."""
        with self._lock:
            self._uses -= 1
            left = self._uses
        if not left:
            with contextlib.suppress(EnvironmentFault):
                self.wait()
            discard(self._client, "image", self.name)
