"""Pairs of rows of scores, compared task by task; the shape is ``Comparisons`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from pytest_evocode.metrics.comparison import BEST_OF_ATTEMPTS, Comparison, compare
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.html.ids import row_id
from pytest_evocode.report.html.overview.rows import ranked
from pytest_evocode.report.rankings import can_be_compared

MOST = 16
"""How many rows, in all and of each ranking, are all compared; others are with the best of their ranking only."""
_METRICS: tuple[Metric, ...] = ("dataset_score", "case_score", "mt_at_k")
SR_BY_TASK = "sr_by_task"
"""The field of the share of single rounds passed as the mean over tasks, which SR itself is not."""
_NOTE = (
    "Rows of one mode are compared, under the same conditions and at the same contents of tasks, over the rounds that "
    "were selected for both"
)


def comparisons_of(table: ScoreTable) -> dict[str, Any]:
    """Return the comparisons of rows that can be compared, as JSON values.

    In each pair the row of the first ranking comes first, and in one ranking the better row.
    """
    rankings = ranked(table)
    pairs = [pair for rows in _pairs(rankings) if (pair := _compared(table, *rows)) is not None]
    many = sum(map(len, rankings)) > MOST
    note = f"{_NOTE}; of more than {MOST} rows, those behind only with the best of their ranking" if many else _NOTE
    return {"pairs": pairs, "note": note}


def _pairs(rankings: Sequence[Sequence[ScoreRow]]) -> Iterator[tuple[ScoreRow, ScoreRow]]:
    for best, *others in rankings:
        yield from combinations([best, *others[: MOST - 1]], 2)
        yield from ((best, row) for row in others[MOST - 1 :])
    rows = [(number, row) for number, ranking in enumerate(rankings) for row in ranking]
    for (one, first), (other, second) in combinations(rows[:MOST], 2):
        if one != other and can_be_compared(first, second):
            yield first, second


def _compared(table: ScoreTable, first: ScoreRow, second: ScoreRow) -> dict[str, Any] | None:
    """Return a pair; None where the two have no task in common."""
    found = dict(_differences(table, first, second))
    headline = found.get("dataset_score") or found.get(SR_BY_TASK)
    if headline is None:
        return None
    return {
        "first": row_id(first),
        "second": row_id(second),
        "differences": [
            _difference(field, each)
            for field, each in found.items()
            if each.same_attempts or each.metric not in BEST_OF_ATTEMPTS
        ],
        "flips": [
            {"task": flip.task, "round": flip.index, "first": flip.first, "second": flip.second}
            for flip in headline.flips
        ],
        "flips_p_value": headline.flips_p_value,
        "flips_by_task_p_value": headline.flips_by_task_p_value,
        "only_first": list(headline.only_first),
        "only_second": list(headline.only_second),
        "same_attempts": headline.same_attempts,
    }


def _differences(table: ScoreTable, first: ScoreRow, second: ScoreRow) -> Iterator[tuple[str, Comparison]]:
    """Yield the comparisons by field that there are; the single rounds of chains are compared beside them."""
    chains, singles = zip(*map(table.grids, (first, second)), strict=True)
    compared: list[tuple[str, Metric, tuple[Grid, Grid]]] = [(metric, metric, chains) for metric in _METRICS]
    compared.append((SR_BY_TASK, "dataset_score", singles))
    for field, metric, grids in compared:
        if all(grid.tasks for grid in grids):
            try:
                yield field, compare(*grids, metric)
            except ValueError:  # There is no task that both have.
                continue


def _difference(field: str, found: Comparison) -> dict[str, Any]:
    interval = found.interval
    return {
        "field": field,
        "first": found.first,
        "second": found.second,
        "difference": found.difference,
        "interval": None if interval is None else {"low": interval.low, "high": interval.high},
        "p_value": found.p_value,
        "won": found.won,
        "lost": found.lost,
        "tied": found.tied,
        "tasks": found.tasks,
    }
