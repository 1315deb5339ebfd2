"""What a score takes, money, tokens and time of one pass through a benchmark, and the Pareto front against it.

Which tasks a benchmark has is chance, so who is on the front is, too: :func:`standings` says how sure that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from pytest_evocode.metrics.grid import Grid, TaskRounds, was_begun
from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval, interval
from pytest_evocode.metrics.scores import dataset_score, sr
from pytest_evocode.metrics.task_values import TaskValue, passed_of, passed_share
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
        **{name: _taken(grid.tasks, amount) for name, amount in _OF_ROUNDS.items()},
        passed_rounds=sum(sum(map(task.share, task.indices)) for task in grid.decided().tasks),
        control=control,
        tasks=len(grid.tasks),
    )


_OF_ROUNDS: Mapping[str, Callable[[RoundRecord], float | None]] = {
    "cost_usd": lambda record: record.usage.cost_usd if record.usage else None,
    "tokens": lambda record: record.usage.tokens if record.usage else None,
    "agent_seconds": lambda record: record.agent_seconds,
}


def _taken(tasks: Sequence[TaskRounds], amount: Callable[[RoundRecord], float | None]) -> Taken:
    amounts = [_amounts(task, amount) for task in tasks]
    of = sum(map(len, amounts))
    known = [[each for each in values if each is not None] for values in amounts]
    value = None
    if of and sum(map(len, known)) == of:
        value = sum(sum(values) / len(task.attempts) for values, task in zip(known, tasks, strict=True))
    return Taken(value, sum(map(len, known)), of)


def _amounts(task: TaskRounds, amount: Callable[[RoundRecord], float | None]) -> list[float | None]:
    return [amount(record) for record in task.records if was_begun(record)]


def taken_at(task: TaskRounds, amount: str) -> float | None:
    """Return what one attempt at a task takes of an amount, a field of :class:`Efficiency`; None where unknown."""
    amounts = _amounts(task, _OF_ROUNDS[amount])
    known = [each for each in amounts if each is not None]
    return sum(known) / len(task.attempts) if len(known) == len(amounts) else None


def taken_interval(grid: Grid, amount: str) -> Interval | None:
    """Return the 95 % interval of what one attempt takes, over tasks; None where that is not known of every round."""
    if any(taken_at(task, amount) is None for task in grid.tasks):
        return None
    return interval(grid, lambda task: taken_at(task, amount), scale=1)


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


Standing = Literal["on the front", "cannot be told", "beaten"]
SURE = 0.975
"""The share of resamples from which on it is said that a row is on a front, or that it is not: what either side of a
95 % interval leaves.
"""
_RESAMPLES, _FEWEST, _MOST_PARTS = 2_000, 500, 300_000


@dataclass(frozen=True, slots=True)
class Chance:
    """How sure it is whether a row is on a front: shares of resamples, 0 to 1."""

    on_front: float
    dominated_by: Mapping[str, float]
    """Each row that dominates it as the scores and amounts are, with the share in which it does."""

    @property
    def standing(self) -> Standing:
        """What can be said of the row."""
        if self.on_front >= SURE:
            return "on the front"
        return "beaten" if self.on_front <= 1 - SURE else "cannot be told"


def standings(
    rows: Mapping[str, Efficiency],
    grids: Mapping[str, Grid],
    amounts: Iterable[str] = AMOUNTS,
    *,
    value: TaskValue | None = passed_share,
    resamples: int = _RESAMPLES,
    seed: int = 0,
) -> dict[str, Chance]:
    """Return how sure it is who is on a front, of rows that are not left out of it; empty below five common tasks.

    Tasks are drawn with replacement, the same for all rows, as what is hard for one is for others. Of n tasks n - 1 are
    drawn, by which the variance of a mean comes out right (P. McCarthy and C. Snowden 1985, The bootstrap and finite
    population sampling). In each draw :func:`front` is computed anew.

    Args:
        rows: What rows reached and took.
        grids: Their rounds, which are of the same tasks.
        amounts: Some of the names in :data:`AMOUNTS`.
        value: What the score is the mean over tasks of; None where it is SR, the share of all tasks' rounds.
        resamples: How often to draw; of many rows and tasks it is less, but 500 times at least.
        seed: Of the random numbers: the same seed gives the same chances.
    """
    amounts = tuple(amounts)
    found = front(rows, amounts)
    points = {
        name: _Parts.of(grids[name], [AMOUNTS[amount] for amount in amounts], value)
        for name in (*found.front, *found.dominated)
    }
    tasks = {tuple(task.task for task in grids[name].tasks) for name in points}
    count = min(map(len, tasks), default=0)
    if len(tasks) != 1 or count < FEWEST_TASKS:
        return {}
    random = Random(seed)
    on_front = dict.fromkeys(points, 0)
    dominates = {(by, name): 0 for name, others in found.dominated.items() for by in others}
    draws = min(resamples, max(_FEWEST, _MOST_PARTS // (count * len(points))))
    for _ in range(draws):
        drawn = random.choices(range(count), k=count - 1)
        at = {name: each.at(drawn) for name, each in points.items()}
        best: list[tuple[float, ...]] = []
        for name, point in sorted(at.items(), key=lambda each: each[1]):
            # What dominates a point comes before it, and some of that is on the front.
            if not any(_dominates(other, point) for other in best):
                on_front[name] += 1
                best.append(point)
        for by, name in dominates:
            dominates[by, name] += _dominates(at[by], at[name])
    return {
        name: Chance(on_front[name] / draws, {by: dominates[by, name] / draws for by in found.dominated.get(name, ())})
        for name in points
    }


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the score and the amounts of a row are made of, by task."""

    scores: Sequence[tuple[float, float]]
    """The score is the sum of the first over that of the second."""
    amounts: Sequence[Sequence[float]]

    @classmethod
    def of(cls, grid: Grid, amounts: Iterable[str], value: TaskValue | None) -> _Parts:
        scores = []
        for task in grid.tasks:
            if value is None:
                scores.append(passed_of(task) or (0.0, 0.0))
            else:
                share = value(task)
                scores.append((0.0, 0.0) if share is None else (share, 1.0))
        return cls(scores, [[taken_at(task, amount) or 0.0 for task in grid.tasks] for amount in amounts])

    def at(self, tasks: Sequence[int]) -> tuple[float, ...]:
        """Return the amounts and the negative score of some tasks; rounded, as rounding makes equal ones differ."""
        part, of = (sum(self.scores[task][place] for task in tasks) for place in (0, 1))
        taken = (round(sum(map(each.__getitem__, tasks)), _DIGITS) for each in self.amounts)
        return (*taken, -round(part / of, _DIGITS) if of else 0.0)


_DIGITS = 9
