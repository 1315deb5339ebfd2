"""What a turn waited for because of its model's provider, as records have it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_evocode.results.frozen import ResultsRecord


class Waits(ResultsRecord):
    """Time that counts neither against a turn's timeout nor against the budget's minutes."""

    retries: int = 0
    """Requests that were sent again."""
    seconds: dict[str, float] = {}
    """Seconds by cause: ``rate limit`` (429, 529 and the pace after them), ``provider`` (5xx and the like), ``network``
    (broken connections), ``connections`` (as many requests were under way as may be).
    """

    @property
    def total(self) -> float:
        """Seconds of all causes."""
        return sum(self.seconds.values())


def total_waits(found: Iterable[Waits | None]) -> Waits | None:
    """Return the sum of what several turns waited for; None where none waited.

    >>> total_waits([Waits(retries=1, seconds={"network": 2.0}), None, Waits(retries=2, seconds={"network": 1.0})])
    Waits(retries=3, seconds={'network': 3.0})
    """
    known = [waits for waits in found if waits is not None]
    if not known:
        return None
    seconds: dict[str, float] = {}
    for waits in known:
        for cause, each in waits.seconds.items():
            seconds[cause] = seconds.get(cause, 0.0) + each
    return Waits(retries=sum(waits.retries for waits in known), seconds=seconds)
