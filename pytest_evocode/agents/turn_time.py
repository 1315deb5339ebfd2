"""The time of a turn, which stands still while the turn waits for its model's provider, and waiting within it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any

from pytest_evocode.environments import Environment
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.llm.waiting import Waiting

#: For a turn without a limit. A container sees the end of its session only during commands that may take long.
_ENDLESS = 20 * 86400.0  # seconds; more than 2**31 milliseconds cannot be waited for at once


class Deadline:
    """The end of a turn's time, if it has one; what the turn waits for does not count."""

    def __init__(self, timeout: float | None, waiting: Waiting | None = None) -> None:
        self._waiting = waiting = waiting or Waiting()
        self._at = None if timeout is None else time.monotonic() + timeout - waiting.seconds
        self.passed = False
        """Whether everything was killed, because the time was over; see :meth:`watched`."""

    def set_back(self, seconds: float) -> None:
        """Make it so many seconds earlier."""
        if self._at is not None:
            self._at -= seconds

    @property
    def left(self) -> float | None:
        """Seconds left, at least 0; None for no limit."""
        return None if self._at is None else max(0.0, self._at + self._waiting.seconds - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self.left == 0.0

    @property
    def latest(self) -> float:
        """Seconds after which the time is over however long the turn waits."""
        left = self.left
        return _ENDLESS if left is None else min(_ENDLESS, left + self._waiting.limit)

    @contextlib.contextmanager
    def watched(self, environment: Environment) -> Iterator[None]:
        """Kill everything in the container when the time is over before the block has ended."""
        ended = threading.Event()

        def watch() -> None:
            while not self.over:
                if ended.wait(self.left):
                    return
            self.passed = True
            with contextlib.suppress(EnvironmentFault):  # Running the program fails with it, too.
                environment.kill_processes()

        watching = threading.Thread(target=watch, name="deadline", daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()


def wait_for(
    future: Future[Any],
    cancelled: threading.Event,
    is_late: Callable[[], bool],
    *,
    look: float = 0.1,
    meanwhile: Callable[[], None] = lambda: None,
) -> bool:
    """Wait for a future while the session lasts, and return whether it is done.

    Args:
        future: What is waited for.
        cancelled: Set when the session ends.
        is_late: Whether it is waited for no longer.
        look: Seconds between two looks at all of these.
        meanwhile: Called at each.

    Raises:
        Cancelled: The session was stopped.
    """
    while not wait([future], timeout=look).done:
        meanwhile()
        if cancelled.is_set():
            raise Cancelled("the session was stopped")
        if is_late():
            return False
    return True
