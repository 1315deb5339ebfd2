"""How many tasks and attempts a comparison takes, from how two agents, or one, varied so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from pytest_evocode.metrics.comparison import paired_tasks, tasks_of_one_agent
from pytest_evocode.metrics.grid import Rounds, TaskRounds
from pytest_evocode.metrics.intervals import FEWEST_TASKS
from pytest_evocode.metrics.over_attempts import attempt_shares
from pytest_evocode.metrics.statistics.power import (
    PairedVariance,
    attempts_needed,
    detectable_difference,
    pairs_needed,
)
from pytest_evocode.metrics.statistics.variance import variance_components
from pytest_evocode.metrics.task_values import passed_share


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """What differences of the Dataset Score can be seen, and what a wanted one takes; differences are 0 to 100."""

    tasks: int
    """How many tasks the variance was observed at."""
    attempts: tuple[int, int]
    """How many attempts there were at each of them and side: the fewest and the most."""
    variance: PairedVariance
    """Of the difference of two agents at a task."""
    measured: bool
    """Whether several attempts of each agent show how attempts vary. Otherwise they were taken to vary as if each round
    of a task passed independently of the others.
    """
    sd: float
    """The standard deviation of the differences with the attempts that there were."""
    alpha: float
    power: float

    @property
    def detectable(self) -> float | None:
        """The smallest difference that these tasks and attempts show; None for too few tasks, or without variance."""
        return detectable_difference(self.sd, self.tasks, alpha=self.alpha, power=self.power) if self.sd else None

    def difference(self, tasks: int, attempts: int) -> float | None:
        """Return the smallest difference that so many tasks and attempts of either agent would show."""
        sd = self.variance.sd(attempts)
        return detectable_difference(sd, tasks, alpha=self.alpha, power=self.power) if self.sd else None

    def attempts_for(self, difference: float) -> int | None:
        """Return how many attempts at these tasks a difference takes; None if no number suffices, or nothing varies."""
        if not self.sd:
            return None
        return attempts_needed(difference, self.variance, self.tasks, alpha=self.alpha, power=self.power)

    def tasks_for(self, difference: float, attempts: int) -> int | None:
        """Return how many tasks a difference takes; None for more than a thousand, or if nothing varies."""
        if not self.sd:
            return None
        return pairs_needed(difference, self.variance.sd(attempts), alpha=self.alpha, power=self.power)


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
    sides = [_Side(tasks) for tasks in zip(*pairs, strict=True)]
    within = sum(side.within for side in sides)
    by_chance = sum(side.by_chance for side in sides)
    if second is None:
        within, by_chance = 2 * within, 2 * by_chance
        total = 2 * variance(sides[0].means)
        # Of what is not chance, so much is common to both agents and falls out of their difference.
        between = (1 - correlation) * max(0.0, total - by_chance)
    else:
        total = variance([high - low for low, high in zip(sides[0].means, sides[1].means, strict=True)])
        between = max(0.0, total - by_chance)
    measured = all(side.measured for side in sides)
    if not measured and by_chance > total:
        # What is guessed of a part cannot be more than the whole.
        within, by_chance = within * total / by_chance, total
    counts = [len(values) for side in sides for values in side.values]
    return ComparisonPlan(
        tasks=len(pairs),
        attempts=(min(counts), max(counts)),
        variance=PairedVariance(between, within),
        measured=measured,
        sd=sqrt(between + by_chance),
        alpha=alpha,
        power=power,
    )


class _Side:
    """How one agent's attempts vary, in points of the Dataset Score."""

    def __init__(self, tasks: Sequence[TaskRounds]) -> None:
        tasks = [task.decided() or task for task in tasks]
        self.values = [list(attempt_shares(task).values()) for task in tasks]
        self.means = [100 * (passed_share(task) or 0.0) for task in tasks]
        components = variance_components(self.values)
        self.measured = components is not None
        self.within = components.within if components else fmean(map(_variance_of_independent_rounds, tasks))
        """The variance of one attempt at one task."""
        self.by_chance = self.within * fmean(1 / len(values) for values in self.values)
        """The same of the mean over the attempts that there are."""


def _variance_of_independent_rounds(task: TaskRounds) -> float:
    """Return how much the share of passed rounds would vary if each round passed independently of the others.

    That is p (1 - p) / N, without bias from the rounds of one attempt; of a task with one round it cannot be known.
    """
    share, rounds = passed_share(task) or 0.0, len(task.indices)
    return 100 * 100 * share * (1 - share) / (rounds - 1) if rounds > 1 else 0.0
