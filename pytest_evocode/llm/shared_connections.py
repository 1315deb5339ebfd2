"""The limits of connections that all processes of a run share, xdist's workers above all, in a directory of the run.

A place is a locked file, so that a process that dies gives its places back; a pace is a file that is read and written
under a lock. The clock is the machine's, which all processes read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from pytest_evocode.llm.connection_limits import LOOK, MOST
from pytest_evocode.llm.request_pace import RequestPace


class SharedConnections:
    """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`.

    Args:
        directory: Where the files are; made when it is needed.
        most: Requests that each account may have at once.
        clock: What the time is in seconds, the same for all processes.
    """

    look = LOOK

    def __init__(self, directory: Path, most: int = MOST, *, clock: Callable[[], float] = time.time) -> None:
        self.most = most
        self._directory = directory
        self._clock = clock

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        places = self._directory / account
        places.mkdir(parents=True, exist_ok=True)
        first = random.randrange(most)  # Where the first ones are taken, most looks at them are in vain.
        for number in (*range(first, most), *range(first)):
            descriptor = os.open(places / f"place-{number}", os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
            else:
                return descriptor
        return None

    def give_back(self, account: str, place: Hashable) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        assert isinstance(place, int)
        os.close(place)

    def reserve(self, account: str) -> tuple[float, float]:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        with self._pace(account) as pace:
            now = self._clock()
            return pace.reserve(now) - now, now

    def confirm(self, account: str, reserved_at: float) -> bool:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        with self._pace(account) as pace:
            return not pace.is_outdated(reserved_at)

    def answered(self, account: str, reserved_at: float) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        with self._pace(account) as pace:
            pace.answered(self._clock(), since=reserved_at)

    def refused(self, account: str, reserved_at: float, retry_after: float | None) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        with self._pace(account) as pace:
            pace.refused(self._clock(), since=reserved_at, retry_after=retry_after)

    @contextlib.contextmanager
    def _pace(self, account: str) -> Iterator[RequestPace]:
        """Hold the account's pace in the block, and write what has become of it."""
        path = self._directory / account / "pace.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                pace = RequestPace.from_json(json.load(file))
            except (ValueError, KeyError, TypeError):  # It is new, or whoever wrote it was killed.
                pace = RequestPace()
            if pace.refused_at > self._clock():  # Before the machine was started again, or on another machine.
                pace = RequestPace()
            before = pace.as_json()
            yield pace
            if (now := pace.as_json()) != before:
                file.seek(0)
                file.truncate()
                json.dump(now, file)
