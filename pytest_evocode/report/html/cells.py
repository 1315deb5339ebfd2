"""The rounds of an attempt as characters, one for each round that its task declares: ``Cell`` in ``data.d.ts``."""

from __future__ import annotations

from collections.abc import Collection

from pytest_evocode.metrics.failures import RoundFailure, failing_cases, round_failure
from pytest_evocode.results.records import FailureKind, RoundRecord
from pytest_evocode.results.stored import StoredAttempt

NOT_REACHED, NOT_SELECTED, UNDER_WAY, UNDECIDED = "-", ".", "?", "u"

_FAILURES: dict[RoundFailure, str] = {
    "build": "b",
    "timeout": "t",
    "agent error": "a",
    "infrastructure": "i",
    "other": "o",
    "cases": "o",
}
# What a round is called by, of all kinds that its failing cases have: the gravest first.
_KINDS: tuple[tuple[FailureKind, str], ...] = (
    ("regression", "r"),
    ("new miss", "n"),
    ("carried", "c"),
    ("stale", "s"),
)


def cells_of(attempt: StoredAttempt, *, under_way: bool = False) -> str:
    """Return a character for each declared round of an attempt.

    Args:
        attempt: An attempt whose rounds have their cases; without them a round that failed by its cases is ``o``.
        under_way: Whether its session still writes: then the round that it is at is ``?``.
    """
    record = attempt.record
    kinds: dict[int, set[FailureKind]] = {}
    for round_, _, kind in failing_cases(record.rounds):
        kinds.setdefault(round_.index, set()).add(kind)
    made = {each.index: each for each in record.rounds}
    selected = set(attempt.selected)
    cells = []
    for index in range(1, len(record.declared_rounds) + 1):
        if index in made:
            cells.append(cell_of(made[index], kinds.get(index, ())))
        elif index not in selected:
            cells.append(NOT_SELECTED)
        else:
            cells.append(UNDER_WAY if under_way else NOT_REACHED)
            # A chain is at one round at a time; single rounds may be at any.
            under_way = under_way and record.mode == "single-round"
    return "".join(cells)


def cell_of(record: RoundRecord, kinds: Collection[FailureKind]) -> str:
    """Return the character of a round with a record, given the kinds of its failing cases."""
    if record.outcome == "passed":
        return "p"
    if record.outcome == "undecided":
        return UNDECIDED
    if record.outcome == "not reached":
        return NOT_REACHED
    failure = round_failure(record)
    if failure == "cases":
        return next((cell for kind, cell in _KINDS if kind in kinds), "o")
    return _FAILURES[failure] if failure is not None else "o"
