"""The Pareto front of score against what it takes: the rows that no other row beats in one and equals in the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_evocode.metrics.efficiency import Efficiency, Taken

AMOUNTS = {"cost": "cost_usd", "tokens": "tokens", "time": "seconds"}
"""What a score can be set against, with the names that :class:`~pytest_evocode.metrics.efficiency.Efficiency` has."""


@dataclass(frozen=True, slots=True)
class Front:
    """The rows that are not dominated, those that are, and those that could not be compared."""

    front: tuple[str, ...]
    """The cheapest first; rows that are equal in everything are all on it."""
    dominated: dict[str, tuple[str, ...]]
    """Each other row, with the rows on the front that dominate it."""
    left_out: dict[str, str]
    """The rows of which an amount is not known, and why; they neither dominate nor are dominated."""


def front(rows: Mapping[str, Efficiency], amounts: Iterable[str] = AMOUNTS) -> Front:
    """Return the front of the score, which is to be large, against some amounts, which are to be small.

    One row dominates another if it is at least as good in the score and in every amount, and better in one of them.

    Args:
        rows: What rows reached and took, over the same tasks and rounds in the same mode.
        amounts: Some of the names in :data:`AMOUNTS`.

    >>> def row(score, cost):
    ...     taken = Taken(cost, known=int(cost is not None), of=1)
    ...     return Efficiency(score, taken, taken, taken, passed_rounds=1)
    >>> front({"a": row(50, 1.0), "b": row(80, 3.0), "c": row(50, 2.0), "d": row(80, 3.0), "e": row(9, None)})
    ... # doctest: +NORMALIZE_WHITESPACE
    Front(front=('a', 'b', 'd'), dominated={'c': ('a',)},
        left_out={'e': 'cost, tokens, time: known of 0 of 1 rounds'})
    """
    points, left_out, amounts = {}, {}, tuple(amounts)
    for name, row in rows.items():
        taken: dict[str, Taken] = {amount: getattr(row, AMOUNTS[amount]) for amount in amounts}
        values = [each.value for each in taken.values()]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            left_out[name] = _why(taken)
        elif row.score is None:
            left_out[name] = "score: no reward decides any round"
        else:
            points[name] = (*known, -row.score)
    best = sorted(
        (name for name in points if not any(_dominates(points[other], points[name]) for other in points)),
        key=lambda name: (points[name], name),
    )
    dominated = {
        name: tuple(other for other in best if _dominates(points[other], points[name]))
        for name in sorted(points, key=lambda name: (points[name], name))
        if name not in best
    }
    return Front(tuple(best), dominated, dict(sorted(left_out.items())))


def _dominates(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return whether the first point is nowhere above the second, and not equal to it; all is to be small."""
    return first != second and all(left <= right for left, right in zip(first, second, strict=True))


def _why(taken: Mapping[str, Taken]) -> str:
    reasons: dict[str, list[str]] = {}
    for amount, each in taken.items():
        if each.why_not:
            reasons.setdefault(each.why_not, []).append(amount)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
