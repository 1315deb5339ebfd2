"""How busy the slots of suites were in a session, as its summary tells it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_evocode.results.records import RoundRecord


def slots_line(records: Iterable[RoundRecord], slots: int, seconds: float) -> str:
    """Return how busy a session's suites kept the slots that they had for so many seconds; empty without suites.

    >>> from pytest_evocode.results.phases import Phases
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=1, outcome="passed",
    ...     phases=Phases(waiting=0.5, slot_seconds=8.0))
    >>> slots_line([record, record], slots=2, seconds=10.0)
    'slots: 2, busy 80 % of 10.0 s, suites waited 1.0 s'
    """
    known = [record.phases for record in records if record.phases is not None]
    held = sum(phases.slot_seconds or 0.0 for phases in known)
    if not held or seconds <= 0:
        return ""
    waited = sum(phases.waiting or 0.0 for phases in known)
    busy = min(1.0, held / (slots * seconds))
    return f"slots: {slots}, busy {busy:.0%} of {seconds:.1f} s, suites waited {waited:.1f} s".replace("%", " %")
