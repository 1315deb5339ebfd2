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
from pytest_evocode.report.html.rows import ranked

MOST = 16
"""How many rows of a ranking, the best first, are all compared with each other; others are with the best one only."""
_METRICS: tuple[Metric, ...] = ("dataset_score", "case_score", "mt_at_k")
SR_BY_TASK = "sr_by_task"
"""The field of the share of single rounds passed as the mean over tasks, which SR itself is not."""
_NOTE = (
    "Rows of one ranking are compared: of one mode, under the same conditions, over the same rounds of the same tasks"
)


def comparisons_of(table: ScoreTable) -> dict[str, Any]:
    """Return the comparisons of rows that are of one ranking, as JSON values.

    In each pair the better row comes first.
    """
    groups = ranked(table)
    pairs = [pair for group in groups for rows in _pairs(group) if (pair := _compared(table, *rows)) is not None]
    more = (
        [f"of more than {MOST} rows, those behind only with the best"]
        if max(map(len, groups), default=0) > MOST
        else []
    )
    return {"pairs": pairs, "note": "; ".join([_NOTE, *more])}


def _pairs(ranking: Sequence[ScoreRow]) -> Iterator[tuple[ScoreRow, ScoreRow]]:
    yield from combinations(ranking[:MOST], 2)
    yield from ((ranking[0], row) for row in ranking[MOST:])


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
