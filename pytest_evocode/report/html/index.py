"""The index of a report: rows of scores, tasks, attempts and runs; its shape is ``Index`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.report.html.ids import attempt_id, task_id
from pytest_evocode.results.loading import Results
from pytest_evocode.results.records import FailureKind

__all__ = ["attempt_id", "index_of", "task_id"]

CaseFailures = Mapping[int, Mapping[FailureKind, int]]
"""How many failing cases of each kind the rounds of an attempt have, by the round's index."""


def index_of(
    table: ScoreTable,
    results: Results,
    *,
    title: str,
    roots: Sequence[Path],
    written: str = "",
    under_way: bool = False,
    cells: Mapping[str, str] | None = None,
    case_failures: Mapping[str, CaseFailures] | None = None,
    run: str | None = None,
    tasks: Collection[str] | None = None,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the index of a report as JSON values.

    Args:
        table: The table of scores that the report shows.
        results: What the table was made from; with the cases of rounds, or without them.
        title: The report's title.
        roots: The results directories, as they were given.
        written: When the report is written, ISO 8601; empty is now.
        under_way: Whether a session still writes results.
        cells: A character for each declared round of attempts, by the attempts' ids. It has to be given where records
            were loaded without cases, because the kind of a failed round comes from them; attempts that lack there
            have what their records tell.
        case_failures: The kinds of failing cases by the attempts' ids, likewise; see :func:`case_failures_of`.
        run: The name of the only run that the table counts; None counts all.
        tasks: The names of the only tasks that the table counts; None counts all.
        problems: What else was left out and why, such as a task that is gone, a line for each.
    """
    raise NotImplementedError
