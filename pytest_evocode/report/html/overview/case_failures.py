"""The kinds of failing cases, counted attempt by attempt while records are there with cases, and summed for rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.failures import failing_cases, failure_kinds, round_failure
from pytest_evocode.metrics.grouping import when
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.report.html.ids import attempt_id
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import FailureKind

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
