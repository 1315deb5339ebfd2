"""What a score takes, money, tokens and time of one pass through a benchmark, and the Pareto front against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_evocode.metrics.grid import Grid, TaskRounds, was_begun
from pytest_evocode.metrics.scores import dataset_score, sr
from pytest_evocode.results.records import RoundRecord


@dataclass(frozen=True, slots=True)
class Taken:
    """What one attempt at each task takes, on the mean over attempts; None where it is not known of every round."""

    value: float | None
    known: int
    """Of how many of the rounds that were begun it is known."""
    of: int

    @property
    def why_not(self) -> str:
        """Why there is no value; empty where there is one."""
        if self.value is not None:
            return ""
        return f"known of {self.known} of {self.of} rounds" if self.of else "no round was begun"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The score of one agent, and what one pass through all tasks takes."""

    score: float | None
    """None where no reward decides any round."""
    """The Dataset Score, or SR of single rounds, 0 to 100."""
    cost_usd: Taken
    tokens: Taken
    """Prompt tokens and completion tokens together."""
    agent_seconds: Taken
    """Wall-clock time of the agent's turns, without the suites'."""
    passed_rounds: float
    """How many rounds are passed in one pass, on the mean over attempts."""
    control: bool = False
    """Whether it is of a control, ``oracle`` or ``nop``, which is on no front and dominates nobody."""
    tasks: int = 1

    def per_attempt(self, amount: str) -> float | None:
        """Return what one attempt takes, the mean over tasks; ``amount`` is one of the fields in :data:`AMOUNTS`."""
        taken: Taken = getattr(self, amount)
        return None if taken.value is None else taken.value / self.tasks

    @property
    def score_per_usd(self) -> float | None:
        """The score divided by the cost; None where the cost is not known of every round, and where it is 0."""
        return self.score / self.cost_usd.value if self.cost_usd.value and self.score is not None else None

    @property
    def usd_per_passed_round(self) -> float | None:
        """The cost divided by the rounds passed; None where it is not known of every round, and without any passed."""
        if self.cost_usd.value is None or not self.passed_rounds:
            return None
        return self.cost_usd.value / self.passed_rounds


def efficiency(grid: Grid, *, single: bool = False, control: bool = False) -> Efficiency:
    """Return what a score took.

    A sum that lacks rounds would make an agent look cheaper than it is, so it is no value here. A round that was not
    reached took nothing, unless something is known of it all the same.

    Args:
        grid: The rounds of one agent in one mode, with at least one task.
        single: Whether they are single rounds, so that SR is the score and not the Dataset Score.
        control: Whether the agent is a control.
    """
    return Efficiency(
        score=sr(grid) if single else dataset_score(grid),
        cost_usd=_taken(grid.tasks, lambda record: record.usage.cost_usd if record.usage else None),
        tokens=_taken(grid.tasks, lambda record: record.usage.tokens if record.usage else None),
        agent_seconds=_taken(grid.tasks, lambda record: record.agent_seconds),
        passed_rounds=sum(sum(map(task.share, task.indices)) for task in grid.decided().tasks),
        control=control,
        tasks=len(grid.tasks),
    )


def _taken(tasks: Sequence[TaskRounds], amount: Callable[[RoundRecord], float | None]) -> Taken:
    amounts = [[amount(record) for record in task.records() if was_begun(record)] for task in tasks]
    of = sum(map(len, amounts))
    known = [[each for each in values if each is not None] for values in amounts]
    value = None
    if of and sum(map(len, known)) == of:
        value = sum(sum(values) / len(task.attempts) for values, task in zip(known, tasks, strict=True))
    return Taken(value, sum(map(len, known)), of)


AMOUNTS = {"cost": "cost_usd", "tokens": "tokens", "time": "agent_seconds"}
"""What a score can be set against, with the names that :class:`~pytest_evocode.metrics.efficiency.Efficiency` has."""


@dataclass(frozen=True, slots=True)
class Front:
    """The rows that are not dominated, those that are, and those that could not be compared."""

    front: tuple[str, ...]
    """The cheapest first; rows that are equal in everything are all on it."""
    dominated: dict[str, tuple[str, ...]]
    """Each other row, with the rows on the front that dominate it."""
    left_out: dict[str, str]
    """The controls, and the rows of which an amount is not known, and why; they neither dominate nor are dominated."""


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
        if row.control:
            left_out[name] = "a control"
        elif len(known) < len(values):
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
