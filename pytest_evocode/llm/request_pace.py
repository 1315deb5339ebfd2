"""The pace of requests to one provider with one key: as fast as anybody likes until the provider says "too many".

From then on requests are spread over time: as many per second as were answered in the last minute, which is what limits
are counted by; some more every few seconds as long as the provider allows it, and a good part less at every refusal.
Plain arithmetic on a clock that the caller reads: what several processes share of it is in :mod:`.shared_connections`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

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
    """When the next request may be sent. Times are seconds of any one clock.

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
