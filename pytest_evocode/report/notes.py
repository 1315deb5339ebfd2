"""What does not count, what is missing and what is uncertain in the numbers of a table of scores."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.names import attempt_name
from pytest_evocode.report.identities import identity_notes
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.loading import StoredAttempt


def table_notes(table: ScoreTable) -> Iterator[str]:
    """Yield all that is to be known of a table, each with what can be done about it."""
    yield from identity_notes(table)
    if table.superseded:
        yield f"older attempts that newer ones replace do not count ({table.superseded}); --all-runs counts them"
    for row in table.rows:
        yield from (f"{row.name}: {note}" for note in row_notes(row))
    if unknown := _tasks_without_facts(table):
        yield (
            "of these tasks only the rounds that were run are known, name their directory with --tasks: "
            f"{join_first(unknown)}"
        )


def row_notes(row: ScoreRow) -> Iterator[str]:
    """Yield which attempts of a row are not finished, partial or missing, and how they count."""
    if unfinished := [attempt for attempt in row.attempts if not (attempt.finished or attempt.waiting)]:
        places = [f"{attempt.record.task} ({attempt.run})" for attempt in unfinished]
        yield f"not finished, missing rounds count as not passed: {join_first(places)}"
    if partial := [_part(attempt) for attempt in row.attempts if attempt.partial and not attempt.waiting]:
        yield f"partial, only these rounds were selected and count: {join_first(partial)}"
    if waiting := [_part(attempt) for attempt in row.attempts if attempt.waiting]:
        yield f"waiting for a later session, only these rounds count: {join_first(waiting)}"
    if beside := [_part(attempt) for attempt in row.beside]:
        yield f"partial, and not counted beside an attempt with all its rounds: {join_first(beside)}"
    if row.missing:
        places = [f"{task} attempt {number}" for task, number in row.missing]
        yield f"no readable record, counted as not passed: {join_first(places)}"
    if row.uncounted:
        yield (
            "no record tells how many rounds these tasks have, so each of them counts as one; name their directory "
            f"with --tasks: {join_first(row.uncounted)}"
        )


def _part(attempt: StoredAttempt) -> str:
    which = attempt_name(attempt.record.task, attempt.record.attempt)
    return f"{which} {' '.join(attempt.round_names)} ({attempt.run})"


def _tasks_without_facts(table: ScoreTable) -> list[str]:
    return sorted(
        {
            attempt.record.task
            for row in table.rows
            for attempt in row.attempts
            if attempt.layout != "evocode" and attempt.record.facts is None
        }
    )
