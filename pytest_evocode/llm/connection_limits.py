"""How many requests a provider is sent at once, and how fast: what all clients of a run go by, in whichever process.

An *account* is a provider's server and a key: what providers limit. Clients take a place of their account for each
request, and go by the account's :class:`RequestPace`. Both are of one process (:class:`LocalConnections`), or of all
processes of a run (:class:`SharedConnections`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_evocode.llm.waiting import WaitCause

if TYPE_CHECKING:
    from pytest_evocode.llm.provider_errors import ProviderFault

_MEMORY = 5.0
"""Seconds for which what was sent, answered and refused counts, less and less."""
_TOLERATED = 0.06
"""Part of the requests whose refusal slows nobody down but those who sent them."""
_SETTLING = 4.0
"""Seconds in which a pace is lowered once, unless most of what is sent at it is refused."""
_LEAST = 0.5
"""Part of itself that a pace is lowered to at most, and part of what is answered that it is at least."""
_FEW = 0.1
"""Part of the requests whose refusal does not say that the pace was too much."""
_BELOW = 0.9
"""What a lowered pace is of the one at which nothing would have been refused."""
_STEP = 0.5
"""Requests per second that each answer adds to a pace, as long as nobody knows which one is too much."""
_RECOVERY, _RECOVERY_REQUESTS = 2.0, 50.0
"""Seconds, and requests at the pace that was too much, in which one of zero would come back to that."""
_LONG = 2.0
"""Seconds; whoever asks for more limits requests, and has not met a fault that passes."""
_UNKNOWN_WAIT, _LONGEST_UNKNOWN_WAIT = 1.0, 30.0
"""Seconds without requests where the provider does not say; three times as many each time that all are refused."""
_LONGEST_WAIT = 600.0
"""Seconds that no request waits longer than at once; whoever is refused with more decides itself."""
_FARTHEST = 10.0
"""Whole recoveries after which a pace grows no more: it is a thousand times the one that was too much."""
_LOOK_AGAIN = 1.0
"""Seconds after which a request that waits for others looks again: the pace may have grown."""
_LONGEST_FILE = 2**16
"""Bytes; more than a pace takes that is written down."""
_NO_TIME = 1e-9


@dataclass(slots=True)
class RequestPace:
    """When the next request to an account may be sent: as soon as anybody likes until the provider says "too many".

    A few refusals among many answers say nothing of the pace. Where there are more, requests are spread over time: as
    many per second as were not refused, and no fewer than half of those that are answered. From there the pace grows
    quickly towards the one that was too much, stays near it for a while, and then grows faster and faster, as CUBIC
    does for TCP (RFC 9438). While most are refused, or the provider asks for more than a moment, none is sent.

    Requests have tickets and are sent in their order; a ticket that nobody comes back with costs one request's time.
    All is plain arithmetic on a clock that the caller reads; times are seconds of any one clock.

    >>> pace = RequestPace()
    >>> pace.reserve(1.0), pace.reserve(1.0)
    ((0.0, 1), (0.0, 2))
    >>> pace.answered(1.1, 1); pace.refused(1.2, 2, retry_after=4.0)
    >>> pace.reserve(1.2)
    (4.0, 3)
    >>> pace.wait(5.2, 3)
    0.0
    """

    per_second: float | None = None
    """Requests; None as long as there was no reason to slow down."""
    ceiling: float = 0.0
    """The pace that was too much; 0 as long as nobody knows one."""
    taken: int = 0
    """Tickets that were given out."""
    served: float = 0.0
    """Tickets whose time has come."""
    sent_at: float = 0.0
    """When the last request was sent."""
    not_before: float = 0.0
    """When requests may be sent again."""
    looked_at: float | None = None
    """When the pace was last asked for anything."""
    seconds: float = 0.0
    """How many of the last seconds there were; like the three counts, less and less of what was longer ago."""
    sent: float = 0.0
    answers: float = 0.0
    refusals: float = 0.0
    sent_since: int = 0
    """Requests that were sent since the provider last made all slow down."""
    refused_since: int = 0
    """How many of these were refused."""
    refused_in_vain: int = 0
    """How many times in a row all of them were."""
    stopped: bool = False
    """Whether they were all stopped then, so that the next refusal says more."""
    slowed_after: int = 0
    """The last ticket that was served before that; such requests are still under way when all slow down."""
    slowed_from: int = 0
    """The same of the time before."""
    settled_at: float = 0.0
    """When the pace may be lowered again for a part of the requests."""
    pace_before: float | None = None
    """What the pace was then, and for how many of how many requests it was lowered; 0 of 0 where it was not."""
    sent_before: float = 0.0
    refused_before: float = 0.0

    def reserve(self, now: float) -> tuple[float, int]:
        """Return in how many seconds a request may be sent, and its ticket; see :meth:`wait`."""
        self.taken += 1
        return self.wait(now, self.taken), self.taken

    def wait(self, now: float, ticket: int) -> float:
        """Return how many seconds a request still has to wait; 0 is for it to be sent, and counts it as sent."""
        self._let_pass(now)
        seconds = self._seconds_left(now, ticket)
        if seconds <= _NO_TIME:
            self.sent_at = now
            self.sent += 1
            self.sent_since += 1
            return 0.0
        return seconds

    def _seconds_left(self, now: float, ticket: int) -> float:
        if self.per_second is None:
            self.served = self.taken
            return 0.0
        before = min(ticket, self.taken) - self.served
        if before > _NO_TIME:
            return max(self.not_before - now, 0.0) + min(before / self.per_second, _LOOK_AGAIN)
        return max(self.not_before, self.sent_at + 1 / self.per_second) - now

    def answered(self, now: float, ticket: int) -> None:
        """Count an answer of the provider's, whatever it is but for a refusal."""
        self._let_pass(now)
        self.answers += 1
        if ticket > self.slowed_after:
            self.refused_in_vain = 0
            if self.per_second is not None and not self.ceiling:
                self.per_second += _STEP

    def refused(self, now: float, ticket: int, retry_after: float | None) -> None:
        """Count a refusal, and slow down where there are too many.

        Args:
            now: When it came.
            ticket: The request's. Requests that were under way together slow down once.
            retry_after: Seconds after which the provider wants to be asked again; None where it does not say.
        """
        self._let_pass(now)
        if ticket <= self.slowed_after:
            if ticket > self.slowed_from and self.refused_before:
                self.refused_before += 1
                self._lower()
            if retry_after is not None and retry_after > _LONG:
                self.not_before = max(self.not_before, now + min(retry_after, _LONGEST_WAIT))
            return
        self.refusals += 1
        self.refused_since += 1
        all_are = self.refused_since >= self.sent_since
        enough = 1 if self.stopped else 2
        most_are = all_are or enough <= self.refused_since >= self.sent_since / 2
        self.refused_in_vain = self.refused_in_vain + 1 if all_are else 0
        unknown = min(_UNKNOWN_WAIT * 3.0 ** min(self.refused_in_vain, 16), _LONGEST_UNKNOWN_WAIT)
        wait = min(unknown if retry_after is None else max(retry_after, 0.0), _LONGEST_WAIT)
        stops = most_are or wait > _LONG
        if not stops and (self.refusals <= _TOLERATED * self.sent or now < self.settled_at):
            return
        self.sent_before = self.refused_before = 0.0
        if self.per_second is None or not all_are:  # Where all are, a slower pace would not help.
            since = self.sent_since, self.refused_since
            self.sent_before, self.refused_before = since if most_are else (self.sent, self.refusals)
            self.pace_before = self.per_second
            self._lower()
        self.stopped = stops
        self.settled_at = now + _SETTLING
        self.slowed_from, self.slowed_after = self.slowed_after, int(self.served)
        self.served = float(self.slowed_after)
        self.sent_since = self.refused_since = 0
        if stops:
            self.not_before = max(self.not_before, now + wait)
            self.served += 1  # The first one then goes at once.

    @property
    def _rate(self) -> float:
        """Requests per second that are answered, in the time that there was."""
        return self.answers / max(self.seconds, 1.0)

    def _lower(self) -> None:
        """Lower the pace from what it was before, by the part of the requests that were refused at it."""
        pace, allowed = self.pace_before, self.sent_before - self.refused_before
        if pace is None:
            lowered = pace = max(allowed, 1.0) / max(self.seconds, 1.0)
            share, is_guess = 0.0, self.seconds < 1
        else:
            share, is_guess = min(self.refused_before / (self.sent_before + 1), 1.0), False
            lowered = pace * (1 - share)
        self.per_second = max(lowered * _BELOW, pace * _LEAST, self._rate * _LEAST)
        self.ceiling = 0.0 if is_guess else max(pace * (1 - max(share - _FEW, 0.0)), self.per_second)

    def _let_pass(self, now: float) -> None:
        """Take in that time has passed, in which tickets were served and the pace may have grown."""
        before = now if self.looked_at is None else self.looked_at
        self.looked_at = max(before, now)
        kept = math.exp(-max(now - before, 0.0) / _MEMORY)
        self.seconds = self.seconds * kept + _MEMORY * (1 - kept)
        self.sent, self.answers, self.refusals = self.sent * kept, self.answers * kept, self.refusals * kept
        seconds = now - max(before, self.not_before)
        if self.per_second is not None and seconds > 0:
            if self.taken > self.served:  # A pace that nobody needs proves nothing.
                self._raise(seconds)
            self.served = min(self.taken + 1.0, self.served + seconds * self.per_second)

    def _raise(self, seconds: float) -> None:
        """Raise the pace after so many seconds in which there were more requests than it allows."""
        assert self.per_second is not None
        if self.ceiling:
            whole = _RECOVERY + _RECOVERY_REQUESTS / self.ceiling
            place = math.cbrt(self.per_second / self.ceiling - 1) + seconds / whole
            self.per_second = self.ceiling * (1 + min(place, _FARTHEST) ** 3)
        self.per_second = max(self.per_second, self._rate * _LEAST)

    # What processes share.

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RequestPace:
        """Return what :meth:`as_json` was called of."""
        return cls(**values)


MOST = 100
"""Requests at once for each provider and key, unless a session or an agent sets another number."""
LOOK = 0.05
"""Seconds between two looks for a place on this machine."""


Paced = Literal["reserve", "wait", "answered", "refused"]
"""What a :class:`RequestPace` is asked for or told."""


class ConnectionLimits(ABC):
    """What several clients share of the accounts that they use: places, and a pace."""

    most: int
    """Requests that one account may have at once, for agents that do not say."""
    look = LOOK
    """Seconds between two looks for a place."""

    @abstractmethod
    def take(self, account: str, most: int) -> Hashable | None:
        """Take one of an account's places; None while there are ``most`` requests."""

    @abstractmethod
    def give_back(self, account: str, place: Hashable) -> None:
        """Give a place back."""

    @abstractmethod
    def _paced(self, account: str, operation: Paced, *arguments: Any) -> Any:
        """Have the account's pace do something at the time that it is, and return what it says."""

    def reserve(self, account: str) -> tuple[float, int]:
        """Return in how many seconds a request may be sent, and its ticket; see :meth:`wait`."""
        seconds, ticket = self._paced(account, "reserve")
        return seconds, ticket

    def wait(self, account: str, ticket: int) -> float:
        """Return how many seconds a request still has to wait; 0 is for it to be sent, and counts it as sent."""
        return float(self._paced(account, "wait", ticket))

    def answered(self, account: str, ticket: int) -> None:
        """Count an answer to a request."""
        self._paced(account, "answered", ticket)

    def refused(self, account: str, ticket: int, retry_after: float | None) -> None:
        """Count a refusal, which may slow all of the account's requests down."""
        self._paced(account, "refused", ticket, retry_after)


class LocalConnections(ConnectionLimits):
    """The limits of clients in one process."""

    def __init__(self, most: int = MOST, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self._clock = most, clock
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

    def _paced(self, account: str, operation: Paced, *arguments: Any) -> Any:
        with self._lock:
            return getattr(self._paces[account], operation)(self._clock(), *arguments)


class RequestPlace:
    """The place of one request, from when it is waited for until it is given back."""

    def __init__(self, account: str, most: int | None = None, limits: ConnectionLimits | None = None) -> None:
        """Ask for nothing yet.

        Args:
            account: Tells a provider's server and key from others.
            most: Requests at once; None for the session's.
            limits: Whose; None for those of this process.
        """
        self._limits = limits or _of_process[-1]
        self._account = account
        self._most = self._limits.most if most is None else most
        self._place: Hashable | None = None
        self._ticket = 0

    def pauses(self) -> Iterator[tuple[float, WaitCause]]:
        """Yield the pauses to be made, one after the other, before the request may be sent: seconds, and their cause.

        They are ``connections`` or ``rate limit``. The request is to be sent as soon as there are no more.
        """
        while (place := self._limits.take(self._account, self._most)) is None:
            yield self._limits.look, "connections"
        self._place = place
        seconds, self._ticket = self._limits.reserve(self._account)
        while seconds > 0:
            yield seconds, "rate limit"
            seconds = self._limits.wait(self._account, self._ticket)

    def answered(self) -> None:
        """Say that the provider answered, if only with an error."""
        self._limits.answered(self._account, self._ticket)

    def refused(self, retry_after: float | None) -> None:
        """Say that the provider wants fewer requests."""
        self._limits.refused(self._account, self._ticket, retry_after)

    def failed(self, fault: ProviderFault) -> None:
        """Say what came in place of an answer; where nothing came, it says nothing of the provider."""
        if fault.kind == "rate limit":
            self.refused(fault.retry_after)
        elif fault.status is not None:
            self.answered()

    def close(self) -> None:
        """Let others have the place, if there is one."""
        if self._place is not None:
            self._limits.give_back(self._account, self._place)
            self._place = None


@contextlib.contextmanager
def place_for_request(
    account: str, most: int | None, pause: Callable[[float, WaitCause], None], limits: ConnectionLimits | None = None
) -> Iterator[RequestPlace]:
    """Wait until an account may be sent one more request, and hold its place in the block.

    ``pause`` waits so many seconds, for a cause; what it raises ends the wait. See :class:`RequestPlace` for the rest.
    """
    with contextlib.closing(RequestPlace(account, most, limits)) as place:
        for seconds, cause in place.pauses():
            pause(seconds, cause)
        yield place


@contextlib.asynccontextmanager
async def async_place_for_request(
    account: str,
    most: int | None,
    pause: Callable[[float, WaitCause], Awaitable[None]],
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[RequestPlace]:
    """Do as :func:`place_for_request` in an event loop, which no look for a place holds up for long."""
    with contextlib.closing(RequestPlace(account, most, limits)) as place:
        for seconds, cause in place.pauses():
            await pause(seconds, cause)
        yield place


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


class SharedConnections(ConnectionLimits):
    """The :class:`ConnectionLimits` that all processes of a run share, xdist's workers above all, in a directory of it.

    A place is a locked file, so that a process that dies gives its places back; a pace is a file that is read and
    written under a lock. The clock is the machine's, which all processes read.

    Args:
        directory: Where the files are; made when it is needed.
        most: Requests that each account may have at once.
        clock: What the time is in seconds, the same for all processes.
    """

    def __init__(self, directory: Path, most: int = MOST, *, clock: Callable[[], float] = time.time) -> None:
        self.most, self._clock = most, clock
        self._directory = directory

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`ConnectionLimits`."""
        first = random.randrange(most)  # Where the first ones are taken, most looks at them are in vain.
        for number in (*range(first, most), *range(first)):
            descriptor = self._open(account, f"place-{number}")
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

    def _paced(self, account: str, operation: Paced, *arguments: Any) -> Any:
        descriptor = self._open(account, "pace.json")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = os.read(descriptor, _LONGEST_FILE)
            try:
                pace = RequestPace.from_json(json.loads(before))
            except (ValueError, TypeError):  # It is new, or whoever wrote it was killed.
                pace = RequestPace()
            if (pace.looked_at or 0.0) > self._clock() + _MEMORY:  # On another machine, or before this one was started.
                pace = RequestPace()
            said = getattr(pace, operation)(self._clock(), *arguments)
            if (now := json.dumps(pace.as_json()).encode()) != before:
                os.ftruncate(descriptor, os.pwrite(descriptor, now, 0))
            return said
        finally:
            os.close(descriptor)

    def _open(self, account: str, name: str) -> int:
        """Open a file that the processes share for an account; it is made when it is needed."""
        path = os.path.join(self._directory, account, name)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
