"""Removals that cost a session a moment at most, and never fail it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from pytest_evocode.errors import EvocodeError

logger = logging.getLogger(__name__)

_LANES = 8
_UNDER_WAY = "it is still being removed"


class Removals:
    """What is being removed in daemon threads, and what could not be removed."""

    patience = 5.0
    """Seconds that a session waits in vain, and once more at its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[str, str] = {}
        self._stuck: set[str] = set()  # What was waited for in vain; nobody waits for anything then.

    @property
    def left(self) -> dict[str, str]:
        """What is not removed so far, and why."""
        with self._lock:
            return dict(self._left)

    def remove(self, wanted: Mapping[str, Callable[[], object]], wait: float | None = None) -> None:
        """Remove what is not being removed already, by what it is called, as :meth:`background` does jobs."""
        wanted = {what: remove for what, remove in wanted.items() if self.left.get(what) != _UNDER_WAY}
        for what in wanted:
            self._note(what, _UNDER_WAY)
        self.background(*(partial(self.attempt, what, remove) for what, remove in wanted.items()), wait=wait)

    def background(self, *jobs: Callable[[], object], wait: float | None = None) -> None:
        """Do jobs, which raise nothing, side by side, and return when they are done or ``wait`` seconds are over.

        A session waits in vain once: while something is still there that it waited for, it waits for nothing else.
        """
        waiting = deque(jobs)

        def work() -> None:
            with contextlib.suppress(IndexError):
                while True:
                    waiting.popleft()()

        lanes = [threading.Thread(target=work, name="removal", daemon=True) for _ in jobs[:_LANES]]
        for lane in lanes:
            lane.start()
        if not self._stuck:
            deadline = time.monotonic() + (self.patience if wait is None else wait)
            for lane in lanes:
                lane.join(max(0.0, deadline - time.monotonic()))
            if any(lane.is_alive() for lane in lanes):
                self._stuck.update(what for what, why in self.left.items() if why == _UNDER_WAY)

    def wait_again(self) -> None:
        """Have the patience to wait in vain once more."""
        self._stuck.clear()

    def forget_failed(self) -> None:
        """Forget what could not be removed, because it is looked for anew."""
        with self._lock:
            self._left = {what: why for what, why in self._left.items() if why == _UNDER_WAY}

    def attempt(self, what: str, remove: Callable[[], object]) -> None:
        """Remove something, and note what it is for as long as it is there; raises nothing."""
        self._note(what, _UNDER_WAY)
        try:
            remove()
        except (EvocodeError, OSError) as error:
            logger.info("%s is left behind: %s", what, error)
            self._note(what, str(error))
        else:
            with self._lock:
                self._left.pop(what, None)
                self._stuck.discard(what)

    def _note(self, what: str, why: str) -> None:
        with self._lock:
            self._left[what] = why
