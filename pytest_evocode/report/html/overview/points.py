"""Scores against what they take; the shape is ``Pareto`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_evocode.metrics.efficiency import AMOUNTS, Efficiency, Taken, efficiency, front
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.metrics.scores import case_score
from pytest_evocode.report.html.ids import row_id

_AGAINST = {"cost_usd": "cost", "tokens": "tokens", "agent_seconds": "time"}
"""What a report sets scores against, by its own names, with those of ``AMOUNTS`` in metrics/efficiency.py."""


def pareto_of(rankings: Sequence[Sequence[ScoreRow]]) -> list[dict[str, Any]]:
    """Return the points of all chains; each ranking has a front of its own.

    What a score took is for one attempt at a task, the mean over tasks, as in the spending of rows.
    """
    groups = [
        {row_id(row): _by_score(row) for row in rows if row.mode != "single-round" and row.grid.tasks}
        for rows in rankings
    ]
    tasks = {row_id(row): len(row.grid.tasks) for rows in rankings for row in rows}
    return [
        {
            "score": score,
            "against": against,
            "points": [each for group in groups for each in _points(group, score, against, tasks)],
        }
        for score in ("dataset_score", "case_score")
        for against in _AGAINST
    ]


def _by_score(row: ScoreRow) -> dict[str, Efficiency]:
    found = efficiency(row.grid)
    cases = case_score(row.grid)
    return {"dataset_score": found} | ({} if cases is None else {"case_score": replace(found, score=cases)})


def _points(
    group: Mapping[str, Mapping[str, Efficiency]], score: str, against: str, tasks: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one ranking of which the amount is known of every round."""
    amount = _AGAINST[against]
    rows = {id_: found[score] for id_, found in group.items() if score in found}
    best = front(rows, [amount]).front
    for id_, row in rows.items():
        taken: Taken = getattr(row, AMOUNTS[amount])
        if taken.value is not None and row.score is not None:
            yield {"row": id_, "x": taken.value / tasks[id_], "y": row.score, "front": id_ in best}
