"""What ``evocode pareto`` prints: who is on the front of score against what it takes, and who dominates the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pytest_evocode.metrics.efficiency import Efficiency, Taken
from pytest_evocode.metrics.pareto import AMOUNTS, front
from pytest_evocode.report.tables import NOT_MEASURED, aligned, format_money, format_number, join_first

_FRONTS = {**{name: (name,) for name in AMOUNTS}, "cost, tokens and time": (*AMOUNTS,)}
"""What the score is set against, by title."""


def pareto_lines(rows: Mapping[str, Efficiency]) -> Iterator[str]:
    """Yield the rows with what they took for one attempt at each task, and the fronts."""
    table = [("agent", "score", "cost", "tokens", "time")]
    table += [
        (
            name,
            format_number(row.score),
            format_money(row.cost_usd.value),
            _amount(row.tokens, "{:,.0f}"),
            _amount(row.seconds, "{:,.1f} s"),
        )
        for name, row in rows.items()
    ]
    yield from aligned(table)
    for title, amounts in _FRONTS.items():
        found = front(rows, amounts)
        yield ""
        yield f"score against {title}: {join_first(found.front) or 'nobody'}"
        yield from (f"  {name}: dominated by {join_first(by)}" for name, by in found.dominated.items())
        yield from (f"  {name}: left out, {why}" for name, why in found.left_out.items())


def _amount(taken: Taken, form: str) -> str:
    return NOT_MEASURED if taken.value is None else form.format(taken.value)


def pareto_json(rows: Mapping[str, Efficiency]) -> dict[str, Any]:
    """Return the same as tables, with numbers in full precision; what was not measured is None."""
    return {
        "agents": {name: asdict(row) | {"score_per_usd": row.score_per_usd} for name, row in rows.items()},
        "fronts": {title: asdict(front(rows, amounts)) for title, amounts in _FRONTS.items()},
    }
