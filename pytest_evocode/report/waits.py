"""What agents waited for because of their models' providers, as the summary of a session tells it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.waits import total_waits


def waits_line(records: Iterable[RoundRecord]) -> str:
    """Return how long the turns of some rounds waited and for what; empty where none did for a tenth of a second.

    >>> from pytest_evocode.results.waits import Waits
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=1, outcome="passed",
    ...     provider_waits=Waits(retries=2, seconds={"rate limit": 61.0, "network": 1.25}))
    >>> waits_line([record])
    'waiting for model providers: 62.2 s (rate limit 61.0 s, network 1.2 s), 2 retries; not counted as working time'
    """
    waits = total_waits(record.provider_waits for record in records)
    if waits is None or (waits.total < 0.1 and not waits.retries):
        return ""
    causes = ", ".join(f"{cause} {seconds:.1f} s" for cause, seconds in waits.seconds.items() if seconds >= 0.05)
    retries = f", {waits.retries} {'retry' if waits.retries == 1 else 'retries'}" if waits.retries else ""
    by_cause = f" ({causes})" if causes else ""
    return f"waiting for model providers: {waits.total:.1f} s{by_cause}{retries}; not counted as working time"
