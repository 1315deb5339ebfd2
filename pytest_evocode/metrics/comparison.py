"""Comparison of two agents, or of two runs of one agent, task by task, and how many tasks and attempts one takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, variance
from typing import NamedTuple

from pytest_evocode.metrics.grid import Rounds, TaskRounds, as_grid, narrowed
from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval, interval_of_differences, mean
from pytest_evocode.metrics.over_attempts import attempt_shares
from pytest_evocode.metrics.statistics.significance import SignFlips, holm, mcnemar, sign_flips
from pytest_evocode.metrics.statistics.variance import (
    MOST_ATTEMPTS,
    MOST_PAIRS,
    MeanSquare,
    PairedVariance,
    detectable_difference,
    fewest,
    variance_components,
)
from pytest_evocode.metrics.task_values import MEANS, Metric

BEST_OF_ATTEMPTS: tuple[Metric, ...] = ("mt_at_k", "final_round_completion", "perfect_tasks")
"""What takes the best of a task's attempts, and so grows with their number."""
ALPHA = 0.05
"""The p-value up to which a difference is taken for more than noise."""
_TIE = 1e-9  # Rounding makes equal values differ by less.


@dataclass(frozen=True, slots=True)
class Flip:
    """A round that one of two sides passes and the other does not, in more than half of its attempts."""

    task: str
    index: int
    round: str
    first: float
    """The share of the first side's attempts that passed the round, 0 to 1; ``second`` likewise."""
    second: float

    @property
    def lost(self) -> bool:
        """Whether the second side is the one that does not pass it."""
        return self.second < self.first


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second side against the first, over the tasks that both have."""

    metric: Metric
    tasks: int
    first: float
    second: float
    difference: float
    """Second minus first, as the mean over tasks of the differences, in the unit of the metric; Perfect Tasks in per
    cent.
    """
    interval: Interval | None
    """The 95 % interval of the difference over the pairs; None for fewer than five tasks."""
    test: SignFlips | None
    """The paired permutation test over tasks; None for fewer than five, where not even ``p_lower`` can be 0.05."""
    won: int
    """How many tasks the second side has the larger value at."""
    lost: int
    tied: int
    flips: tuple[Flip, ...]
    """In the order of task and round index."""
    only_first: tuple[str, ...]
    """The tasks that only the first side has, or where only it measured anything; no number here counts them."""
    only_second: tuple[str, ...]
    undecided: tuple[str, ...]
    """The tasks that both have, of which no reward decides any round that counts on one side; likewise."""
    attempts: tuple[tuple[int, int], tuple[int, int]]
    """How many attempts the first and the second side have at the compared rounds: the fewest and the most."""
    same_attempts: bool
    """Whether both have equally many at each round; if not, :data:`BEST_OF_ATTEMPTS` cannot be compared."""

    @property
    def p_value(self) -> float | None:
        """How often chance alone makes a difference as large, in either direction."""
        return None if self.test is None else self.test.p_value

    @property
    def p_lower(self) -> float | None:
        """How often chance alone makes the second side as much worse."""
        return None if self.test is None else self.test.p_lower

    @property
    def flips_p_value(self) -> float:
        """McNemar's exact test, two-sided, of the flips.

        It takes the rounds of one task as independent of each other. They are not, so that it is too small where whole
        tasks flip.
        """
        lost = sum(flip.lost for flip in self.flips)
        return mcnemar(lost, len(self.flips) - lost)

    @property
    def flips_by_task_p_value(self) -> float | None:
        """The same question with tasks as units: the permutation test of the flips lost less those won of each task.

        None for fewer than five tasks. It is the exact counterpart of Obuchowski's test for clustered pairs (1998),
        whose statistic orders the choices of signs in the same way.
        """
        balance = Counter[str]()
        for flip in self.flips:
            balance[flip.task] += 1 if flip.lost else -1
        return None if self.tasks < FEWEST_TASKS else sign_flips(list(balance.values())).p_value


def regressed(comparisons: Iterable[Comparison]) -> list[bool | None]:
    """Return of comparisons that are made at once which second sides are worse beyond noise; None if it cannot be told.

    That is where the one-sided p-value is at most 0.05 when adjusted for their number (Holm). If all differences are
    noise, one of them or more is called worse in at most 5 of 100 cases. Fewer than five tasks cannot tell.
    """
    return [None if p is None else p <= ALPHA for p in holm([each.p_lower for each in comparisons])]


def compare(first: Rounds, second: Rounds, metric: Metric = "dataset_score") -> Comparison:
    """Compare one agent's rounds with another's, paired by task.

    Where rounds of a task were not selected for one of the two, those are compared that were selected for both.

    Raises:
        ValueError: The two sides have no task in common, or one side has records of several agents.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> def records(agent, **passed):
    ...     return [RoundRecord(task=task, agent=agent, attempt=1, round=f"r{i}", index=i, declared_rounds=2,
    ...         outcome="passed") for task, number in passed.items() for i in range(1, number + 1)]
    >>> found = compare(records("old", t=1, u=2), records("new", t=2, u=2))
    >>> found.first, found.second, found.difference, found.won, found.lost, found.tied
    (75.0, 100.0, 25.0, 1, 0, 1)
    >>> found.flips
    (Flip(task='t', index=2, round='r2', first=0.0, second=1.0),)
    """
    value, scale = MEANS[metric]
    sides = _selected_in_both(tasks_of_one_agent(first), tasks_of_one_agent(second))
    values = [{name: value(task) for name, task in side.items()} for side in sides]
    known = [{name: scale * number for name, number in side.items() if number is not None} for side in values]
    both = sorted(known[0].keys() & known[1].keys())
    undecided = _undecided(*sides)
    if not both:
        why = f"; no reward decides any round of {', '.join(undecided)}" if undecided else ""
        raise ValueError(
            f"there is no task for which both have the metric {metric}, so there is nothing to compare{why}"
        )
    differences = [known[1][name] - known[0][name] for name in both]
    won, lost = (sum(sign * each > _TIE for each in differences) for sign in (1, -1))
    return Comparison(
        metric=metric,
        tasks=len(both),
        first=mean([known[0][name] for name in both]),
        second=mean([known[1][name] for name in both]),
        difference=mean(differences),
        interval=interval_of_differences(differences, bound=None if metric == "avg_rounds" else 100),
        test=None
        if len(both) < FEWEST_TASKS
        else sign_flips([0 if abs(each) <= _TIE else each for each in differences]),
        won=won,
        lost=lost,
        tied=len(both) - won - lost,
        flips=tuple(flip for name in both for flip in _flips(sides[0][name], sides[1][name])),
        only_first=tuple(sorted(known[0].keys() - known[1].keys() - {*undecided})),
        only_second=tuple(sorted(known[1].keys() - known[0].keys() - {*undecided})),
        undecided=undecided,
        attempts=(_fewest_and_most(sides[0][name] for name in both), _fewest_and_most(sides[1][name] for name in both)),
        same_attempts=all(_have_same_attempts(*(side[name] for side in sides)) for name in both),
    )


def _undecided(first: Mapping[str, TaskRounds], second: Mapping[str, TaskRounds]) -> tuple[str, ...]:
    """Return the tasks that both have, of which no reward decides any round on one side."""
    both = sorted(first.keys() & second.keys())
    return tuple(name for name in both if first[name].decided is None or second[name].decided is None)


def _fewest_and_most(tasks: Iterable[TaskRounds]) -> tuple[int, int]:
    tries = [task.tries(index) for task in tasks for index in task.indices]
    return min(tries), max(tries)


def _have_same_attempts(first: TaskRounds, second: TaskRounds) -> bool:
    return all(first.tries(index) == second.tries(index) for index in first.indices if index in second.indices)


def paired_tasks(first: Rounds, second: Rounds) -> list[tuple[TaskRounds, TaskRounds]]:
    """Return the tasks that both sides have, in the order of their names, with the rounds that count on both.

    Raises:
        ValueError: One side has records of several agents.
    """
    sides = _selected_in_both(tasks_of_one_agent(first), tasks_of_one_agent(second))
    return [(sides[0][name], sides[1][name]) for name in sorted(sides[0].keys() & sides[1].keys())]


def tasks_of_one_agent(rounds: Rounds) -> dict[str, TaskRounds]:
    """Return the tasks by name.

    Raises:
        ValueError: There are records of several agents.
    """
    tasks = as_grid(rounds).tasks
    if len(agents := sorted({task.agent for task in tasks})) > 1:
        raise ValueError(f"one agent on each side can be compared, and not {', '.join(agents)} at once")
    return {task.task: task for task in tasks}


def _selected_in_both(*sides: dict[str, TaskRounds]) -> tuple[dict[str, TaskRounds], ...]:
    """Return the tasks of each side, with the rounds of partial ones that count on the other side too."""
    found = tuple(dict(side) for side in sides)
    for name in sides[0].keys() & sides[1].keys():
        tasks = [side[name] for side in sides]
        # Of equally many declared rounds, one side may lack some that no verdict could be had of.
        if any(task.partial for task in tasks) or tasks[0].declared == tasks[1].declared:
            common = tuple(index for index in tasks[0].indices if index in tasks[1].indices)
            for side, task in zip(found, tasks, strict=True):
                side[name] = narrowed(task, common)
    return tuple({name: task for name, task in side.items() if task.indices} for side in found)


def _flips(first: TaskRounds, second: TaskRounds) -> list[Flip]:
    flips: list[Flip] = []
    undecided: set[int] = set()
    for each in (first, second):
        left = each.decided
        undecided |= {*each.indices} - {*(left.indices if left is not None else ())}
    for index in sorted({*first.indices, *second.indices} - undecided):
        shares = [task.share(index) for task in (first, second)]
        if (shares[0] > 0.5) != (shares[1] > 0.5):
            attempts = (*second.attempts.values(), *first.attempts.values())
            name = next((attempt[index].round for attempt in attempts if index in attempt), "")
            flips.append(Flip(first.task, index, name, *shares))
    return flips


class Range(NamedTuple):
    """A number by the variances as observed, and the larger one by upper bounds of them, which keeps the power.

    None is a number that is not known, or that is too large.
    """

    observed: float | None
    bound: float | None


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """What differences of the Dataset Score can be seen, and what a wanted one takes; differences are 0 to 100."""

    tasks: int
    """How many tasks the variance was observed at."""
    attempts: tuple[int, int]
    """How many attempts there were at each of them and side: the fewest and the most."""
    seen: PairedVariance
    """Of the difference of two agents at a task, with the attempts that there were."""
    variance: PairedVariance | None
    """The same with any number of attempts; None where one attempt does not show how attempts vary."""
    alpha: float
    power: float

    @property
    def why_not(self) -> str:
        """Why nothing can be planned; empty where it can."""
        if self.variance is not None and self.variance.is_cut:
            return (
                "attempts vary so much that how far tasks differ cannot be told from nothing: "
                "make more attempts, or add tasks"
            )
        if not self.seen.sd(1):
            return "nothing varies here, so it is not known what differences could be seen"
        if self.variance is None:
            return "one attempt does not tell how attempts vary: make two or more of either side"
        return ""

    @property
    def detectable(self) -> Range:
        """The smallest difference that these tasks and attempts show; None for too few tasks, or without variance."""
        return self._difference(self.seen, self.tasks, 1)

    def difference(self, tasks: int, attempts: int) -> Range:
        """Return the smallest difference that so many tasks and attempts of either agent would show."""
        if self.variance is None or self.why_not:
            return Range(None, None)
        return self._difference(self.variance, tasks, attempts)

    def _difference(self, variance: PairedVariance, tasks: int, attempts: int) -> Range:
        effect = self._effect(tasks)
        if effect is None or not self.seen.sd(1):
            return Range(None, None)
        return Range(effect * variance.sd(attempts), effect * variance.upper_sd(attempts))

    def _effect(self, tasks: int) -> float | None:
        return detectable_difference(1, tasks, alpha=self.alpha, power=self.power)

    def attempts_for(self, difference: float) -> Range:
        """Return how many attempts at these tasks a difference takes; None if no number suffices, or none is known."""
        return self._needed(MOST_ATTEMPTS, lambda number: self.difference(self.tasks, number), difference)

    def tasks_for(self, difference: float, attempts: int) -> Range:
        """Return how many tasks a difference takes; None for more than a thousand, or if that is not known."""
        return self._needed(MOST_PAIRS, lambda number: self.difference(number, attempts), difference)

    def _needed(self, most: int, seen: Callable[[int], Range], difference: float) -> Range:
        def is_seen(number: int, place: int) -> bool:
            found = seen(number)[place]
            return found is not None and found <= difference

        return Range(*(fewest(most, partial(is_seen, place=place)) for place in (0, 1)))


def plan(
    first: Rounds,
    second: Rounds | None = None,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    correlation: float = 0.5,
) -> ComparisonPlan | None:
    """Return what can be planned from the rounds of two agents, or of one.

    Args:
        first: The rounds of one agent.
        second: Those of the other. Without them, it is taken to vary as much as the first over tasks and attempts.
        alpha: The p-value up to which a difference counts as seen.
        power: How often it is to be seen, 0 to 1.
        correlation: Without a second agent, how closely its values at the tasks go with those of the first, 0 to 1.

    Returns:
        None for fewer than five tasks, which do not show how tasks vary.

    Raises:
        ValueError: One side has records of several agents.
    """
    pairs = (
        paired_tasks(first, second) if second is not None else [(each,) for each in tasks_of_one_agent(first).values()]
    )
    if len(pairs) < FEWEST_TASKS:
        return None
    values = [
        [list(attempt_shares(task.decided or task).values()) for task in side] for side in zip(*pairs, strict=True)
    ]
    return plan_from(values, alpha=alpha, power=power, correlation=correlation)


def plan_from(
    sides: Sequence[Sequence[Sequence[float]]], *, alpha: float = 0.05, power: float = 0.8, correlation: float = 0.5
) -> ComparisonPlan:
    """Return the same from the scores of one or two sides: of each task, in one order, those of its attempts."""
    means = [[fmean(values) for values in side] for side in sides]
    counts = [len(values) for side in sides for values in side]
    components = [variance_components(side) for side in sides]
    # Of the mean over the attempts at a task, chance is this part of the variance of one attempt.
    chance = [fmean(1 / len(values) for values in side) for side in sides]
    freedom = len(means[0]) - 1
    within = [
        MeanSquare(each.within, each.values - each.groups, fixed=-part, by_attempt=1)
        for each, part in zip(components, chance, strict=True)
        if each is not None
    ]
    seen: tuple[MeanSquare, ...]
    if len(sides) == 2:
        total = MeanSquare(variance([high - low for low, high in zip(*means, strict=True)]), freedom, fixed=1)
        seen = (total,)
        squares = (total, *within)
    else:
        # Of what is not chance, so much is common to both agents and falls out of their difference.
        own = 2 * (1 - correlation)
        # What is common to both is not known where chance is not.
        total = MeanSquare(variance(means[0]), freedom, fixed=own if within else 2)
        seen = (total, *(replace(each, fixed=2 * correlation * chance[0], by_attempt=0) for each in within))
        squares = (total, *(replace(each, fixed=-own * chance[0], by_attempt=2) for each in within))
    return ComparisonPlan(
        tasks=len(means[0]),
        attempts=(min(counts), max(counts)),
        seen=PairedVariance(seen),
        variance=PairedVariance(squares) if len(within) == len(sides) else None,
        alpha=alpha,
        power=power,
    )
