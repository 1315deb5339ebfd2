"""How many attempts a node may have, by the memory that they are seen to use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

_FIRST = 4
"""Attempts at once before anything was seen."""
_SETTLED = 5.0
"""Seconds after which the memory of the attempts that began last counts as seen."""
_KEPT_FREE = 0.15
"""Of a node's memory, what no attempt is begun for."""
_DANGER = 0.05
"""Of a node's memory, what is left when an attempt has to go: soon the kernel would choose one."""


@dataclass(slots=True)
class RampUp:
    """Lets the number of a node's attempts grow as long as there is memory, and says when there are too many.

    The number may double every few seconds. Where less is left than the next attempt is expected to use, no attempt
    begins; where hardly anything is left, the youngest one is to stop and to go on later.
    """

    clock: Callable[[], float] = time.monotonic
    _limit: int = _FIRST
    _seen_at: float = field(default=float("-inf"))
    _began_since: int = 0
    """Attempts that began since the memory was last looked at with all others settled."""
    _left: int = 0
    _total: int = 0
    _others: int = -1
    """Bytes that were in use before there were attempts; -1 before anything was seen."""
    _share: float = 0.0
    """Bytes that an attempt was seen to use."""

    def allows(self, running: int) -> bool:
        """Return whether one more attempt may begin beside those that run."""
        if running >= self._limit:
            return False
        if not self._total:
            return True
        expected = self._share * (self._began_since + 1)
        return self._left - expected >= _KEPT_FREE * self._total

    def began(self) -> None:
        """Note that an attempt has begun."""
        self._began_since += 1

    def see(self, left: int, total: int, running: int) -> bool:
        """Take how many bytes of memory are left, and return whether the youngest attempt is to stop."""
        now = self.clock()
        used = total - left
        if self._others < 0 or not running:
            self._others = used
        self._left, self._total = left, total
        if left < _DANGER * total and running > 1:
            self._limit, self._seen_at = running - 1, now
            return True
        if now - self._seen_at >= _SETTLED:
            self._seen_at, self._began_since = now, 0
            if running:
                self._share = max((used - self._others) / running, self._share / 2)
            if left >= _KEPT_FREE * total:
                self._limit = max(self._limit, 2 * min(running, self._limit))
        return False
