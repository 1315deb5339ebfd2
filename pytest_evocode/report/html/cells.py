"""How the rounds of an attempt went: a character for each (``Cell`` in ``data.d.ts``), and failing cases by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.failures import RoundFailure, failing_cases, failure_kinds, round_failure
from pytest_evocode.metrics.grouping import when
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.report.html.ids import attempt_id
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import FailureKind, RoundRecord

NOT_REACHED, NOT_SELECTED, UNDER_WAY, UNDECIDED = "-", ".", "?", "u"

_FAILURES: dict[RoundFailure, str] = {
    "build": "b",
    "timeout": "t",
    "agent error": "a",
    "infrastructure": "i",
    "other": "o",
    "cases": "o",
}
LETTERS: dict[FailureKind, str] = {"regression": "r", "new miss": "n", "carried": "c", "stale": "s"}
"""Of failing cases; a round has that of the gravest, which come first."""


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
        return next((cell for kind, cell in LETTERS.items() if kind in kinds), "o")
    return _FAILURES[failure] if failure is not None else "o"


CaseFailures = Mapping[int, Mapping[FailureKind, int]]
"""How many failing cases of each kind the rounds of an attempt have, by the round's index."""


def case_failures_of(attempt: StoredAttempt) -> dict[int, dict[FailureKind, int]]:
    """Return how many failing cases of each kind the rounds of an attempt have, by the round's index.

    Args:
        attempt: An attempt that was loaded with its cases.
    """
    found: dict[int, Counter[FailureKind]] = {}
    for record, _, kind in failing_cases(attempt.record.rounds):
        found.setdefault(record.index, Counter())[kind] += 1
    return {index: dict(kinds) for index, kinds in found.items()}


@dataclass(frozen=True, slots=True)
class FoundFailures:
    """What the cases of attempts told, for records that were loaded without them."""

    roots: Sequence[Path]
    cells: Mapping[str, str]
    """A character for each declared round, by the attempts' ids."""
    cases: Mapping[str, CaseFailures]


def failure_values(row: ScoreRow, found: FoundFailures | None = None) -> dict[str, Any]:
    """Return how often each kind of failure occurred in a row, as ``evocode failures`` counts.

    Args:
        row: The row.
        found: What the cases told, where the records are without them.
    """
    kinds = failure_kinds(row.grid)
    cases, rounds = Counter(kinds.cases), Counter(kinds.rounds)
    if found is not None:
        owners = _owners(row, found.roots)
        for record in row.grid.records():
            owner = owners.get((record.task, record.attempt, record.index), "")
            if not (record.verdict and record.verdict.cases):
                cases.update(found.cases.get(owner, {}).get(record.index, {}))
            # That all cases were skipped is not in their number.
            if found.cells.get(owner, "")[record.index - 1 : record.index] == "b" and round_failure(record) == "cases":
                rounds.update({"cases": -1, "build": 1})
    return {
        "rounds": {kind: rounds[kind] for kind in kinds.rounds},
        "cases": {kind: cases[kind] for kind in kinds.cases},
        "not_reached": kinds.not_reached,
    }


def _owners(row: ScoreRow, roots: Sequence[Path]) -> dict[tuple[str, int, int], str]:
    """Return the id of the attempt that each round's record comes from, by task, attempt and index."""
    found = {}
    for attempt in sorted(row.attempts, key=when):
        id_ = attempt_id(attempt, roots)
        found.update({(each.task, each.attempt, each.index): id_ for each in attempt.record.rounds})
    return found
