"""Where the time of rounds went, as ``evocode results --time`` tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pytest_evocode.metrics.breakdown import Dimension, Times, times, times_by
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.report.tables import aligned, format_number

_COLUMNS = ("agent", "verifier", "waiting", "overhead")


def time_lines(table: ScoreTable, by: Dimension | None) -> Iterator[str]:
    """Yield a row for each agent, or with ``by`` a table for each with a row for each group; medians over rounds."""
    rows = {row.name: _of(row) for row in table.rows}
    if by is None:
        yield from _lines("agent", rows)
    else:
        for number, row in enumerate(table.rows):
            if number:
                yield ""
            if len(table.rows) > 1 or row.name != row.agent:
                yield f"{row.name}:"
            yield from _lines(by, times_by(row.grid, by, table.facts))
    if silent := sum(each.silent for each in rows.values()):
        of = sum(each.rounds for each in rows.values())
        yield f"not recorded of {silent} of {of} rounds, and left out: waiting and overhead"


def _lines(title: str, found: Mapping[str, Times]) -> Iterator[str]:
    rows = [(title, *(f"{name} (median s)" for name in _COLUMNS), "rounds")]
    rows += [(name, *_cells(each), str(each.rounds)) for name, each in found.items()]
    yield from aligned(rows)


def _cells(found: Times) -> Iterator[str]:
    for name in _COLUMNS:
        duration = found.durations.get(name)
        yield format_number(duration.median if duration is not None else None, digits=2)


def time_json(table: ScoreTable, row: ScoreRow, by: Dimension | None) -> dict[str, Any]:
    """Return where the time of a row's rounds went, in all and by group, ready for JSON."""
    values: dict[str, Any] = {"time": asdict(_of(row))}
    if by is not None:
        values["time_groups"] = {name: asdict(each) for name, each in times_by(row.grid, by, table.facts).items()}
    return values


def _of(row: ScoreRow) -> Times:
    return times(record for task in row.grid.tasks for record in task.records())
