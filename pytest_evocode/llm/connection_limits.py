"""How many requests a provider is sent at once, and how fast: what all clients of a run go by, in whichever process.

An *account* is a provider's server and a key: what providers limit. Clients take a place of their account for each
request, and go by the account's :class:`~pytest_evocode.llm.request_pace.RequestPace`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from pytest_evocode.llm.request_pace import RequestPace
from pytest_evocode.llm.waiting import WaitCause

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


@dataclass(slots=True)
class _Account:
    pace: RequestPace = field(default_factory=RequestPace)
    places: set[Hashable] = field(default_factory=set)


class LocalConnections:
    """The limits of clients in one process."""

    look = LOOK

    def __init__(self, most: int = MOST, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`ConnectionLimits`."""
        place = object()
        return place if self.take_for(account, most, place) else None

    def take_for(self, account: str, most: int, holder: Hashable) -> bool:
        """Take a place for a holder that is told from all others, and return whether there was one."""
        with self._lock:
            places = self._account(account).places
            if len(places) >= most:
                return False
            places.add(holder)
            return True

    def give_back(self, account: str, place: Hashable) -> None:
        """See :class:`ConnectionLimits`."""
        with self._lock:
            self._account(account).places.discard(place)

    def give_back_all(self, of: Callable[[Hashable], bool]) -> None:
        """Give back the places of some holders, which were lost."""
        with self._lock:
            for account in self._accounts.values():
                account.places = {place for place in account.places if not of(place)}

    def reserve(self, account: str) -> tuple[float, float]:
        """See :class:`ConnectionLimits`."""
        with self._lock:
            now = self._clock()
            return self._account(account).pace.reserve(now) - now, now

    def confirm(self, account: str, reserved_at: float) -> bool:
        """See :class:`ConnectionLimits`."""
        with self._lock:
            return not self._account(account).pace.is_outdated(reserved_at)

    def answered(self, account: str, reserved_at: float) -> None:
        """See :class:`ConnectionLimits`."""
        with self._lock:
            self._account(account).pace.answered(self._clock(), since=reserved_at)

    def refused(self, account: str, reserved_at: float, retry_after: float | None) -> None:
        """See :class:`ConnectionLimits`."""
        with self._lock:
            self._account(account).pace.refused(self._clock(), since=reserved_at, retry_after=retry_after)

    def _account(self, account: str) -> _Account:
        return self._accounts.setdefault(account, _Account())


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
