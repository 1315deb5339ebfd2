"""What ``evocode results`` prints: the table of scores and what is to be said below it, or scores by group."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_evocode.metrics.breakdown import Dimension, breakdown
from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.metrics.spending import spending
from pytest_evocode.report.faults import fault_lines
from pytest_evocode.report.flaky import flaky_lines
from pytest_evocode.report.over_attempts import over_attempts_lines
from pytest_evocode.report.scores import (
    attempts_lines,
    case_lines,
    group_lines,
    interval_lines,
    mark_lines,
    score_rows,
    undecided_lines,
)
from pytest_evocode.report.tables import aligned


def results_lines(table: ScoreTable, *, with_intervals: bool) -> Iterator[str]:
    """Yield a line for each row of the table; with intervals, those of the Dataset Score and SR."""
    scores = {row.name: table.scores(row) for row in table.rows}
    spent = {row.name: spending(row.records) for row in table.rows}
    found = {row.name: table.intervals_or_reasons(row) for row in table.rows} if with_intervals else None
    faults = {row.name: table.faults(row) for row in table.rows}
    yield from aligned(score_rows(scores, spent, found, faults=faults))
    yield from interval_lines(found)
    yield from attempts_lines(scores)
    yield from case_lines(scores)
    yield from undecided_lines(scores, {row.name: row.grid for row in table.rows})
    yield from mark_lines(scores)
    yield from fault_lines(faults)
    if several := {row.name: each for row in table.rows if (each := table.over_attempts(row))}:
        yield ""
        yield from over_attempts_lines(several)
    if flaky := [each for row in table.rows for each in row.flaky]:
        yield ""
        yield from flaky_lines(flaky)


def breakdown_lines(table: ScoreTable, by: Dimension) -> Iterator[str]:
    """Yield a table of scores by group for each row, with an empty line between them."""
    for number, row in enumerate(table.rows):
        if number:
            yield ""
        if len(table.rows) > 1 or row.name != row.agent:
            yield f"{row.name}:"
        single = row.mode == "single-round"
        yield from group_lines(by, breakdown(row.grid, by, table.facts, single_rounds=single))
