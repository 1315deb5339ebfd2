"""The event that stops an attempt, and events of its parts, which can be stopped by themselves."""

from __future__ import annotations

import threading


class StopEvent(threading.Event):
    """An event that may have parts: to set it sets all of them, and to set one of them sets no other.

    >>> whole = StopEvent()
    >>> first, second = whole.part(), whole.part()
    >>> first.set()
    >>> first.is_set(), second.is_set(), whole.is_set()
    (True, False, False)
    >>> whole.set()
    >>> second.is_set(), whole.part().is_set()
    (True, True)
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._parts: list[StopEvent] = []

    def part(self) -> StopEvent:
        """Return a new event that is set with this one at the latest."""
        part = StopEvent()
        with self._lock:
            self._parts.append(part)
            is_set = self.is_set()
        if is_set:
            part.set()
        return part

    def set(self) -> None:
        """Set this event and all of its parts."""
        with self._lock:
            super().set()
            parts = list(self._parts)
        for part in parts:
            part.set()
