"""How often comparisons as large as ``evocode plan`` says find the true difference: the real power of what is planned.

A truth is two agents and a population of tasks. A pilot draws tasks and attempts from it; from the pilot it is planned
how many attempts the true difference takes, and how many tasks. Comparisons of that size are drawn and tested as
``evocode compare`` does, at these very tasks, with the difference there, or at new ones, with that of the population.
80 of 100 are to find the difference.

- normal: tasks' differences and attempts vary normally, between 3 and 30 points (SD) each. The true difference takes 1
  to 8 attempts at as many tasks as the pilot has, or 10 to 100 tasks.
- published: pairs of the ten agents of ``benchmarks/published.py``, of those with a difference over 10 points. The
  attempts at a task pass its rounds with a chance from a Beta distribution around the published share whose intraclass
  correlation is 0.2, so that shares are 0 or 1 at many tasks.

A cell is the mean over all plans that gave a number, and in brackets how many of 100 pilots gave one. "as observed" is
without upper bounds, and without the rules that give no number. The seeds are fixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from math import sqrt
from random import Random
from statistics import NormalDist, fmean

from benchmarks.published import Outcome, agents
from benchmarks.tables import Table
from pytest_evocode.metrics.comparison import ComparisonPlan, Range, plan_from
from pytest_evocode.metrics.statistics.intervals import t_quantile
from pytest_evocode.metrics.statistics.significance import sign_flips, smallest_p_value
from pytest_evocode.metrics.statistics.variance import MOST_ATTEMPTS, MOST_PAIRS, detectable_difference, fewest, power

PILOTS = ((7, 2), (7, 4), (12, 2), (12, 4), (26, 2), (26, 4))
"""Tasks, and attempts of either side at each."""
COLUMNS = tuple(f"{what}{how}" for what in ("attempts", "attempts, new tasks", "tasks") for how in (" as observed", ""))
_EXACT = 12
"""Up to how many pairs are tested by the permutation test; the t-test, which takes less time, finds as much of more."""
_DRAWN = 30
"""Up to how many tasks comparisons of the published truths are drawn; of more, the formula has the power."""
_COMPARISONS, _AT_A_PILOT = 400, 40
"""How many comparisons are drawn at new tasks, and how many at those of one pilot."""
_MANY = 16
_LEAST = 10
"""Points that the true difference has at least."""


class Powers(Table):
    """Means over pilots, with how many of 100 gave a number."""

    summary = "means, in brackets how many of 100 pilots gave a number"

    def _cell(self, row: str, column: str) -> str:
        values = self.rows[row][column]
        given = [value for value in values if value >= 0]
        return f"{fmean(given):.1f} ({100 * len(given) / len(values):.0f})" if given else "none (0)"


Attempted = Callable[[Random], tuple[float, float]]
"""One attempt of either side at a task: their scores, in points."""


@dataclass(frozen=True)
class Task:
    """A task as it is for two agents."""

    difference: float
    """Of the expected scores, in points."""
    variance: float
    """Of the difference of one attempt of either."""
    attempt: Attempted

    def mean_difference(self, attempts: int, random: Random) -> float:
        """Draw the difference of the means over attempts; of many it is a normal variable."""
        if attempts > _MANY:
            return random.gauss(self.difference, sqrt(self.variance / attempts))
        drawn = [self.attempt(random) for _ in range(attempts)]
        return fmean(high - low for low, high in drawn)


@dataclass(frozen=True)
class Normal:
    """Differences and attempts vary normally, in points."""

    between: float
    within: float
    difference: float

    def tasks(self, number: int, random: Random, *, centred: bool = False) -> list[Task]:
        """Draw tasks, with the true difference as their mean where it is to be ``centred``."""
        drawn = [random.gauss(0, self.between) for _ in range(number)]
        off = self.difference - (fmean(drawn) if centred else 0)
        return [self._task(off + each) for each in drawn]

    def _task(self, difference: float) -> Task:
        def attempt(random: Random) -> tuple[float, float]:
            return random.gauss(0, self.within), random.gauss(difference, self.within)

        return Task(difference, 2 * self.within**2, attempt)

    def power(self, tasks: int, attempts: int) -> float:
        """Return how often a comparison at so many new tasks finds the difference."""
        return known_power(self.difference / sqrt(self.between**2 + 2 * self.within**2 / attempts), tasks)


@dataclass(frozen=True)
class Published:
    """Two agents at the published tasks."""

    population: Sequence[Task]
    known: dict[tuple[int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, first: Sequence[Outcome], second: Sequence[Outcome]) -> Published:
        """Return the truth of two agents."""
        return cls([_published(low, high) for low, high in zip(first, second, strict=True)])

    @property
    def difference(self) -> float:
        """The true difference, in points."""
        return abs(fmean(task.difference for task in self.population))

    def tasks(self, number: int, random: Random, *, centred: bool = False) -> list[Task]:
        """Draw tasks; the difference there is what it is, ``centred`` or not."""
        del centred
        return random.choices(self.population, k=number)

    def power(self, tasks: int, attempts: int) -> float:
        """Return how often a comparison at so many new tasks finds the difference."""
        if (tasks, attempts) not in self.known:
            random = Random(f"{tasks} tasks, {attempts} attempts")
            mean = fmean(task.difference for task in self.population)
            square = fmean((task.difference - mean) ** 2 + task.variance / attempts for task in self.population)
            self.known[tasks, attempts] = (
                known_power(self.difference / sqrt(square), tasks)
                if tasks > _DRAWN
                else fmean(is_found(self.tasks(tasks, random), attempts, random) for _ in range(_COMPARISONS))
            )
        return self.known[tasks, attempts]


def _published(first: Outcome, second: Outcome) -> Task:
    def attempt(random: Random) -> tuple[float, float]:
        return _attempt(first, random), _attempt(second, random)

    return Task(100 * (_share(second) - _share(first)), _variance(first) + _variance(second), attempt)


def _share(task: Outcome) -> float:
    return task.passed / task.rounds


def _variance(task: Outcome) -> float:
    """Return the variance of the score of one attempt at a task."""
    share = _share(task)
    return 1e4 * share * (1 - share) * (0.2 + 0.8 / task.rounds)


def _attempt(task: Outcome, random: Random) -> float:
    share = _share(task)
    chance = random.betavariate(4 * share, 4 * (1 - share)) if 0 < share < 1 else share
    return 100 * sum(random.random() < chance for _ in range(task.rounds)) / task.rounds


@cache
def known_power(effect: float, tasks: int) -> float:
    """Return the power of a comparison, with a difference of so many standard deviations that are normal."""
    smallest = smallest_p_value(min(tasks, 60))
    if smallest > 0.05:
        return 0.0
    if smallest > 0.025:  # All differences must have one direction.
        return NormalDist().cdf(effect) ** tasks
    return power(effect, tasks, 0.05 // smallest * smallest)


def is_found(tasks: Sequence[Task], attempts: int, random: Random) -> bool:
    """Draw a comparison at these tasks, and return whether it finds its difference."""
    differences = [task.mean_difference(attempts, random) for task in tasks]
    if len(differences) <= _EXACT:
        return sign_flips(differences).p_value <= 0.05
    mean = fmean(differences)
    square = sum((each - mean) ** 2 for each in differences) / (len(differences) - 1) / len(differences)
    return mean * mean > square * t_quantile(0.975, len(differences) - 1) ** 2


Truth = Normal | Published


def normal_truths(number: int, tasks: int, attempts: int, random: Random) -> list[tuple[Truth, Truth]]:
    """Return truths whose difference so many attempts, or so many tasks, show."""
    found: list[tuple[Truth, Truth]] = []
    for _ in range(number):
        between, within = random.uniform(3, 30), random.uniform(3, 30)
        differences = [
            1.001 * sqrt(between**2 + 2 * within**2 / each) * (detectable_difference(1, size) or 0.0)
            for size, each in ((tasks, random.choice((1, 2, 4, 8))), (random.choice((10, 20, 50, 100)), attempts))
        ]
        found.append((Normal(between, within, differences[0]), Normal(between, within, differences[1])))
    return found


def published_truths(number: int, random: Random) -> list[tuple[Truth, Truth]]:
    """Return pairs of agents, the same for both questions."""
    pairs = [Published.of(one, two) for one, two in combinations(agents(), 2)]
    pairs = [pair for pair in pairs if pair.difference > _LEAST]
    return [(pair, pair) for pair in random.sample(pairs, min(number, len(pairs)))]


def measure(runs: int, pilots: Sequence[tuple[int, int]] = PILOTS) -> Table:
    """Per cent; -1 in JSON is a pilot that gave no number."""
    truths, each = (10, 4) if runs == 1 else (30, 4 * runs)
    table = Powers("comparisons that find the difference that they were planned for, of 80 promised", "%", COLUMNS)
    random = Random(40)
    drawn = published_truths(truths, random)
    for tasks, attempts in pilots:
        for name, found in (("normal", normal_truths(truths, tasks, attempts, random)), ("published", drawn)):
            for column, values in _powers(found, tasks, attempts, each, random).items():
                table.add(f"{name}, {tasks} tasks x {attempts}", column, values)
    return table


def _powers(
    truths: Sequence[tuple[Truth, Truth]], tasks: int, attempts: int, pilots: int, random: Random
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for of_attempts, of_tasks in truths:
        for _ in range(pilots):
            these = of_attempts.tasks(tasks, random, centred=True)
            difference = abs(fmean(task.difference for task in these))
            if difference > _LEAST:
                made = _plan(these, attempts, random)
                for how, number in _planned("attempts", made, difference, attempts):
                    power = None if number is None else _found_at(these, number, random)
                    found[f"attempts{how}"].append(_per_cent(power))
            made = _plan(of_attempts.tasks(tasks, random), attempts, random)
            for how, number in _planned("attempts", made, of_attempts.difference, attempts):
                power = None if number is None else of_attempts.power(tasks, number)
                found[f"attempts, new tasks{how}"].append(_per_cent(power))
            made = _plan(of_tasks.tasks(tasks, random), attempts, random)
            for how, number in _planned("tasks", made, of_tasks.difference, attempts):
                power = None if number is None else of_tasks.power(number, attempts)
                found[f"tasks{how}"].append(_per_cent(power))
    return found


def _per_cent(power: float | None) -> float:
    return -1.0 if power is None else 100 * power


def _plan(tasks: Sequence[Task], attempts: int, random: Random) -> ComparisonPlan:
    """Return what a pilot of so many attempts at these tasks says."""
    drawn = [[task.attempt(random) for _ in range(attempts)] for task in tasks]
    return plan_from([[[each[side] for each in of_task] for of_task in drawn] for side in (0, 1)])


def _found_at(tasks: Sequence[Task], attempts: int, random: Random) -> float:
    return fmean(is_found(tasks, attempts, random) for _ in range(_AT_A_PILOT))


def _planned(what: str, made: ComparisonPlan, difference: float, attempts: int) -> list[tuple[str, int | None]]:
    needed: Range = made.attempts_for(difference) if what == "attempts" else made.tasks_for(difference, attempts)
    return [(" as observed", _as_observed(what, made, difference, attempts)), ("", _whole(needed.bound))]


def _as_observed(what: str, made: ComparisonPlan, difference: float, attempts: int) -> int | None:
    """Return what the variances themselves say, the between one cut off at 0."""
    assert made.variance is not None
    between, within = max(0.0, made.variance.between), made.variance.within
    if not between + within:
        return None

    def is_enough(tasks: int, each: int) -> bool:
        found = detectable_difference(sqrt(between + within / each), tasks)
        return found is not None and found <= difference

    if what == "attempts":
        return fewest(MOST_ATTEMPTS, lambda number: is_enough(made.tasks, number))
    return fewest(MOST_PAIRS, lambda number: is_enough(number, attempts))


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
