"""How many requests a provider is sent at once, and how fast: what all clients of a run go by, in whichever process.

An *account* is a provider's server and a key: what providers limit. Clients take a place of their account for each
request, and go by the account's :class:`RequestPace`. Both are of one process (:class:`LocalConnections`), or of all
processes of a run (:class:`SharedConnections`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_evocode.llm.waiting import WaitCause

_WINDOW = 60.0
"""Seconds over which answers are counted: providers limit requests per minute."""
_BELOW = 0.9
"""Part of the requests that were answered in that time that a new pace allows."""
_DECREASE = 0.7
"""What a pace is multiplied by at a refusal."""
_REPEATED_DECREASE = 0.9
"""The same at one that follows without an answer in between: as a rule nothing is left of the provider's minute."""
_INCREASE = 0.02
"""Part of the pace at the last refusal that is added at each step."""
_FIRST_INCREASE = 0.1
"""Part of the pace that is added at each step before the provider has refused any: it may be much too slow."""
_STEP = 5.0
"""Seconds in which a pace is increased once; by a part of that in a part of the time."""
_SLOWEST = 5.0
"""Seconds between requests at the first pace, at most: a single refusal says little where few have asked."""
_UNKNOWN_WAIT = 1.0
"""Seconds without requests after a refusal that does not say how many; twice as many after each one that follows."""
_LONGEST_UNKNOWN_WAIT = 30.0
_LONGEST_WAIT = 600.0
"""Seconds that no request waits longer than at once; whoever is refused with more decides itself."""


@dataclass(slots=True)
class RequestPace:
    """When the next request to an account may be sent: as soon as anybody likes until the provider says "too many".

    From then on requests are spread over time: as many per second as were answered in the last minute, which is what
    limits are counted by; some more every few seconds as long as the provider allows it, and a good part less at every
    refusal. It is plain arithmetic on a clock that the caller reads; times are seconds of any one clock.

    >>> pace = RequestPace()
    >>> pace.reserve(0.0), pace.reserve(0.0)
    (0.0, 0.0)
    >>> pace.answered(0.1, since=0.0); pace.refused(0.2, since=0.0, retry_after=4.0)
    >>> pace.reserve(0.3), pace.reserve(0.3)
    (4.2, 8.2)
    """

    per_second: float | None = None
    """Requests; None as long as the provider has refused none."""
    ceiling: float = 0.0
    """The pace at which the provider last refused; 0 as long as it has refused none but the one without limit."""
    last_at: float = 0.0
    """When the last request is sent."""
    not_before: float = 0.0
    """When requests may be sent again after a refusal."""
    refused_at: float = float("-inf")
    """When the provider last refused a request that was sent at the present pace."""
    refusals: int = 0
    """How many there were since the provider last answered a request that was sent at the present pace."""
    changed_at: float = 0.0
    """When the pace was last looked at."""
    answers: dict[int, int] = field(default_factory=dict)
    """How many requests were answered in the last seconds, by second."""

    def reserve(self, now: float) -> float:
        """Return when one request may be sent, and count it as sent then."""
        if self.per_second is None:
            return now
        if self._next_at > now:  # A pace that nobody needs proves nothing.
            self._speed_up(max(now - self.changed_at, 0.0))
        self.changed_at = max(self.changed_at, now)
        self.last_at = at = max(now, self._next_at)
        return at

    @property
    def _next_at(self) -> float:
        assert self.per_second is not None
        return max(self.not_before, self.last_at + 1 / self.per_second)

    def is_outdated(self, reserved_at: float) -> bool:
        """Return whether the provider has refused a request after a time was reserved, which does not hold then."""
        return self.refused_at > reserved_at

    def answered(self, now: float, *, since: float) -> None:
        """Count an answer of the provider's, whatever it is but for a refusal; ``since`` is when it was asked."""
        if since > self.refused_at:
            self.refusals = 0
        self.answers[int(now)] = self.answers.get(int(now), 0) + 1
        if len(self.answers) > _WINDOW:
            self._forget(now)

    def refused(self, now: float, *, since: float, retry_after: float | None) -> None:
        """Slow down after a refusal.

        Args:
            now: When it came.
            since: When the request was sent. Requests that were under way together slow down once.
            retry_after: Seconds after which the provider wants to be asked again; None where it does not say.
        """
        unknown = min(_UNKNOWN_WAIT * 2.0 ** min(self.refusals, 16), _LONGEST_UNKNOWN_WAIT)
        wait = min(unknown if retry_after is None else max(retry_after, 0.0), _LONGEST_WAIT)
        self.not_before = max(self.not_before, now + wait)
        self.changed_at = self.not_before
        if since < self.refused_at:
            return
        self.refused_at = now
        self.last_at = 0.0  # What was reserved does not hold.
        self.refusals += 1
        if self.per_second is None:
            self._forget(now)
            least = 1 / min(max(wait, _UNKNOWN_WAIT), _SLOWEST)
            self.per_second = max(_BELOW * sum(self.answers.values()) / _WINDOW, least)
        else:
            self.ceiling = max(self.ceiling, self.per_second) if self.refusals > 1 else self.per_second
            self.per_second *= _DECREASE if self.refusals == 1 else _REPEATED_DECREASE

    def _speed_up(self, seconds: float) -> None:
        """Increase the pace after so many seconds in which there were more requests than it allows."""
        assert self.per_second is not None
        if self.ceiling:
            self.per_second += _INCREASE * self.ceiling * seconds / _STEP
        else:
            self.per_second *= (1 + _FIRST_INCREASE) ** min(seconds / _STEP, 12)

    def _forget(self, now: float) -> None:
        self.answers = {second: count for second, count in self.answers.items() if second > now - _WINDOW}

    # What processes share.

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "refused_at": max(self.refused_at, 0.0)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RequestPace:
        """Return what :meth:`as_json` was called of."""
        answers = {int(second): count for second, count in values["answers"].items()}
        return cls(**{**values, "answers": answers})


MOST = 100
"""Requests at once for each provider and key, unless a session or an agent sets another number."""
LOOK = 0.05
"""Seconds between two looks for a place on this machine."""


class ConnectionLimits(Protocol):
    """What several clients share of the accounts that they use."""

    most: int
    """Requests that one account may have at once, for agents that do not say."""
    look: float
    """Seconds between two looks for a place."""

    def take(self, account: str, most: int) -> Hashable | None:
        """Take one of an account's places; None while there are ``most`` requests."""

    def give_back(self, account: str, place: Hashable) -> None:
        """Give a place back."""

    def reserve(self, account: str) -> tuple[float, float]:
        """Return in how many seconds a request may be sent, and when that was asked, by the clock of the limits."""

    def confirm(self, account: str, reserved_at: float) -> bool:
        """Return whether a reservation still holds."""

    def answered(self, account: str, reserved_at: float) -> None:
        """Count an answer to a request."""

    def refused(self, account: str, reserved_at: float, retry_after: float | None) -> None:
        """Slow all of the account's requests down."""


class _PacedLimits(ABC):
    """What limits on one machine have in common: the pace of each account, by a clock."""

    look = LOOK

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.most = most
        self._clock = clock

    @abstractmethod
    def _pace(self, account: str) -> AbstractContextManager[RequestPace]:
        """Hold the account's pace in the block; what the block makes of it counts."""

    def reserve(self, account: str) -> tuple[float, float]:
        """See :class:`ConnectionLimits`."""
        with self._pace(account) as pace:
            now = self._clock()
            return pace.reserve(now) - now, now

    def confirm(self, account: str, reserved_at: float) -> bool:
        """See :class:`ConnectionLimits`."""
        with self._pace(account) as pace:
            return not pace.is_outdated(reserved_at)

    def answered(self, account: str, reserved_at: float) -> None:
        """See :class:`ConnectionLimits`."""
        with self._pace(account) as pace:
            pace.answered(self._clock(), since=reserved_at)

    def refused(self, account: str, reserved_at: float, retry_after: float | None) -> None:
        """See :class:`ConnectionLimits`."""
        with self._pace(account) as pace:
            pace.refused(self._clock(), since=reserved_at, retry_after=retry_after)


class LocalConnections(_PacedLimits):
    """The limits of clients in one process."""

    def __init__(self, most: int = MOST, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(most, clock)
        self._lock = threading.Lock()
        self._paces: dict[str, RequestPace] = defaultdict(RequestPace)
        self._places: dict[str, set[Hashable]] = defaultdict(set)

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`ConnectionLimits`."""
        place = object()
        return place if self.take_for(account, most, place) else None

    def take_for(self, account: str, most: int, holder: Hashable) -> bool:
        """Take a place for a holder that is told from all others, and return whether there was one."""
        with self._lock:
            places = self._places[account]
            if len(places) >= most:
                return False
            places.add(holder)
            return True

    def give_back(self, account: str, place: Hashable) -> None:
        """See :class:`ConnectionLimits`."""
        with self._lock:
            self._places[account].discard(place)

    def give_back_all(self, of: Callable[[Hashable], bool]) -> None:
        """Give back the places of some holders, which were lost."""
        with self._lock:
            for account, places in self._places.items():
                self._places[account] = {place for place in places if not of(place)}

    @contextlib.contextmanager
    def _pace(self, account: str) -> Iterator[RequestPace]:
        with self._lock:
            yield self._paces[account]


class RequestPlace:
    """The place of one request, which is to say how the provider took it."""

    def __init__(self, limits: ConnectionLimits, account: str, reserved_at: float) -> None:
        self._limits, self._account, self._reserved_at = limits, account, reserved_at

    def answered(self) -> None:
        """Say that the provider answered, if only with an error."""
        self._limits.answered(self._account, self._reserved_at)

    def refused(self, retry_after: float | None) -> None:
        """Say that the provider wants fewer requests."""
        self._limits.refused(self._account, self._reserved_at, retry_after)


@contextlib.contextmanager
def place_for_request(
    account: str, most: int | None, pause: Callable[[float, WaitCause], None], limits: ConnectionLimits | None = None
) -> Iterator[RequestPlace]:
    """Wait until an account may be sent one more request, and hold its place in the block.

    Args:
        account: Tells a provider's server and key from others.
        most: Requests at once; None for the session's.
        pause: Waits so many seconds, for a cause: ``connections`` or ``rate limit``; what it raises ends the wait.
        limits: Whose; None for those of this process.
    """
    limits = limits or _of_process[-1]
    most = limits.most if most is None else most
    while (place := limits.take(account, most)) is None:
        pause(limits.look, "connections")
    try:
        seconds, reserved_at = limits.reserve(account)
        while seconds > 0:
            pause(seconds, "rate limit")
            if limits.confirm(account, reserved_at):
                break
            seconds, reserved_at = limits.reserve(account)
        yield RequestPlace(limits, account, reserved_at)
    finally:
        limits.give_back(account, place)


_of_process: list[ConnectionLimits] = [LocalConnections()]


@contextlib.contextmanager
def connections_shared_by(limits: ConnectionLimits) -> Iterator[None]:
    """Have all clients of this process go by some limits in the block."""
    _of_process.append(limits)
    try:
        yield
    finally:
        _of_process.remove(limits)


def limits_of_process() -> ConnectionLimits:
    """Return the limits that clients of this process go by now."""
    return _of_process[-1]


class SharedConnections(_PacedLimits):
    """The :class:`ConnectionLimits` that all processes of a run share, xdist's workers above all, in a directory of it.

    A place is a locked file, so that a process that dies gives its places back; a pace is a file that is read and
    written under a lock. The clock is the machine's, which all processes read.

    Args:
        directory: Where the files are; made when it is needed.
        most: Requests that each account may have at once.
        clock: What the time is in seconds, the same for all processes.
    """

    def __init__(self, directory: Path, most: int = MOST, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(most, clock)
        self._directory = directory

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`ConnectionLimits`."""
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
        """See :class:`ConnectionLimits`."""
        assert isinstance(place, int)
        os.close(place)

    @contextlib.contextmanager
    def _pace(self, account: str) -> Iterator[RequestPace]:
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
