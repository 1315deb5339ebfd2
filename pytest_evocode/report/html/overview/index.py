"""The index of a report: rows of scores, tasks, attempts and runs; its shape is ``Index`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.report.html.cells import cells_of
from pytest_evocode.report.html.ids import attempt_id, task_id
from pytest_evocode.report.html.overview.attempt_rows import attempts_of, tasks_of
from pytest_evocode.report.html.overview.case_failures import CaseFailures, FoundFailures, case_failures_of
from pytest_evocode.report.html.overview.points import pareto_of
from pytest_evocode.report.html.overview.processes import Processes, outcome_values, process_values, read_processes
from pytest_evocode.report.html.overview.rows import ranked, rows_of
from pytest_evocode.report.html.overview.runs import runs_of
from pytest_evocode.report.html.overview.titles import titles
from pytest_evocode.report.identities import identity_notes
from pytest_evocode.report.leaderboard import leaderboard
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.directory import now
from pytest_evocode.results.loading import Results, StoredAttempt
from pytest_evocode.results.merging import missing_shards

__all__ = ["attempt_id", "case_failures_of", "index_of", "task_id"]

FORMAT = 1


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
    known = cells or {}

    def cells_by_id(attempt: StoredAttempt) -> str:
        found = known.get(attempt_id(attempt, roots))
        return found if found is not None else cells_of(attempt, under_way=under_way and not attempt.finished)

    processes, unreadable = read_processes(table)
    failures = FoundFailures(roots, known, case_failures) if case_failures is not None else None
    rankings = ranked(table)
    return {
        "format": FORMAT,
        "title": title,
        "written": written or now(),
        "version": version("pytest-evocode"),
        "under_way": under_way,
        "directories": [str(root) for root in roots],
        "rows": rows_of(table, rankings, _summaries(processes), failures),
        "tasks": tasks_of(table, results),
        "attempts": attempts_of(table, results, roots, cells_by_id, run=run, tasks=tasks),
        "runs": runs_of(results, roots),
        "pareto": pareto_of(rankings),
        "notes": list(_notes(table)),
        "problems": list(dict.fromkeys([*results.problems, *unreadable, *_left_out(table, results), *problems])),
        "titles": titles(),
        "process_outcome": outcome_values(processes, table.rows),
    }


def _summaries(processes: Processes) -> dict[str, dict[str, Any]]:
    return {id_: process_values(attempts) for id_, attempts in processes.items()}


def _notes(table: ScoreTable) -> Iterator[str]:
    """Yield what is to be known before rows are compared; what is of one row is in its own notes."""
    if table.rows:
        yield from leaderboard(table, with_intervals=True).notes
        yield from identity_notes(table)
    if table.superseded:
        yield f"older attempts that newer ones replace do not count ({table.superseded}); --all-runs counts them"


def _left_out(table: ScoreTable, results: Results) -> Iterator[str]:
    """Yield which attempts left nothing, and which shards are not here."""
    for row in table.rows:
        if row.missing:
            yield f"{row.name}: no readable record, counted as not passed: {join_first(_places(row))}"
    if any(row.missing for row in table.rows):
        for number, of in missing_shards(results.runs):
            yield f"shard {number} of {of} is not here, and its attempts count as not passed; name it too"


def _places(row: ScoreRow) -> list[str]:
    return [f"{task} attempt {number}" for task, number in row.missing]
