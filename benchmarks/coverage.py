"""How often 95 % intervals hold the true number, and how often ``evocode compare`` takes noise for a regression.

Tasks are drawn with replacement from what EvoCode-Bench published of them (``benchmarks/published.py``), where the true
number is known, and the interval of each draw either holds it or not. A cell is the share that does, on the mean over
all agents or pairs of agents, and in brackets for the worst of them, where there are enough draws to find it.

- Dataset Score and Case Score: the values of ten agents at 26 tasks. SR: their rounds, pooled. Differences: of all 45
  pairs, by task.
- Four attempts: each passes a task's rounds with a chance of its own, from a Beta distribution around the published
  share whose intraclass correlation is 0.2.
- MT@4, fitted: of 13 agents only mean and Comp are published. A task is 1 with the probability of Comp, else from a
  Beta distribution with a + b = 2 that gives the published mean.
- Shares of tasks: Perfect Tasks and Hard tasks of the ten, Comp of the 13; not drawn, but computed from the binomial
  distribution.
- False alarms: of each pair the sides of a task are swapped at random, so that no side is better. The nominal rate is
  2.5 for intervals that are below 0, and 5 for "noise", of up to 30 tasks, where its p is exact.

Methods named "ours" are what :mod:`pytest_evocode.metrics.intervals` uses, which gives none below five tasks.
Bootstraps draw 400 times. The seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import combinations
from math import comb, sqrt
from random import Random
from statistics import NormalDist, fmean
from typing import Any

from benchmarks.published import LEGACY, Outcome, agents
from benchmarks.tables import Table
from pytest_evocode.metrics.intervals import FEWEST_TASKS, interval_of_differences
from pytest_evocode.metrics.statistics.intervals import (
    bounded_interval,
    hierarchical_interval,
    jackknife_interval,
    t_interval,
)
from pytest_evocode.metrics.statistics.significance import MOST_EXACT, sign_flips

SIZES = (3, 5, 7, 12, 26, 100)
RESAMPLES = 400
_ALARMS, _SHARES = "false alarms, ", "share of tasks"
_ROUGH = {"percentile bootstrap", "BCa", "bootstrap-t", "noise"}
"""Those that take long, so that each population has an eighth of the samples, which is too few to find the worst."""
_NORMAL = NormalDist()

Bounds = tuple[float, float]
Sample = tuple[Any, ...]
"""What was drawn, in order, so that equal ones are known: values, or parts and wholes of a ratio."""
Method = Callable[[Sample], Bounds]
Shares = dict[str, list[float]]
"""By the name of a row: of each population, how often it held, in per cent."""


class Coverages(Table):
    """Means over populations, with the worst in brackets."""

    summary = "means, in brackets the worst"

    def _cell(self, row: str, column: str) -> str:
        values = self.rows[row].get(column)
        if not values:
            return "n/a"
        title, method = row.split(": ")
        if method in _ROUGH and title != _SHARES:
            return f"{fmean(values):.1f}"
        worst = max if row.startswith(_ALARMS) else min
        return f"{fmean(values):.1f} ({worst(values):.1f})"


def measure(runs: int) -> Table:
    """Per cent."""
    samples = 16 if runs == 1 else 48 * runs
    table = Coverages("95 % intervals that hold the true number, by tasks", "%", [str(size) for size in SIZES])
    # A hundred tasks take longest, and there all methods agree.
    jobs = [
        (job, size, samples if size < 100 else samples // 4)
        for size in reversed(SIZES)
        for job in (_scores, _attempts, _ratios, _differences, _shares)
    ]
    with ProcessPoolExecutor() as pool:
        done = list(pool.map(_run, jobs))
    for (_, size, _), shares in zip(jobs, done, strict=True):
        for row, values in shares.items():
            table.add(row, str(size), values)
    table.rows = dict(sorted(table.rows.items(), key=lambda row: row[0].startswith(_ALARMS)))
    return table


def _run(job: tuple[Callable[[int, int], Shares], int, int]) -> Shares:
    function, size, samples = job
    return function(size, samples)


# What is drawn from.


def _scores(size: int, samples: int) -> Shares:
    methods: dict[str, Method] = {
        "percentile bootstrap": _percentile,
        "BCa": lambda values: _resampled(values)["BCa"],
        "bootstrap-t": lambda values: _resampled(values)["bootstrap-t"],
        "Student's t": _students,
        "ours": _bounded,
    }
    found: Shares = {}
    for title, value in (("Dataset Score", _passed), ("Case Score", _cases)):
        for number, agent in enumerate(agents()):
            values = [value(task) for task in agent]
            draws = _draws(partial(_choice, values), size, samples, f"{title} {number}")
            _add(found, title, methods, draws, fmean(values), size)
    fitted = {name: methods[name] for name in ("percentile bootstrap", "Student's t", "ours")}
    for number, (score, complete) in enumerate(LEGACY):
        draws = _draws(partial(_fitted, score / 100, complete / 100), size, samples // 4, f"MT@4 {number}")
        _add(found, "MT@4, fitted", fitted, draws, score / 100, size)
    return found


def _attempts(size: int, samples: int) -> Shares:
    found: Shares = {}
    methods: dict[str, Method] = {"ours": lambda groups: hierarchical_interval(groups, 0, 1, resamples=RESAMPLES)}
    for number, agent in enumerate(agents()):
        draws = _draws(partial(_attempted, agent), size, samples // 4, f"attempts {number}")
        _add(found, "Dataset Score of 4 attempts", methods, draws, fmean(map(_passed, agent)), size)
    return found


def _ratios(size: int, samples: int) -> Shares:
    methods: dict[str, Method] = {
        "percentile bootstrap": _resampled_ratio,
        "jackknife": _jackknife,
        "ours": _bounded_ratio,
    }
    found: Shares = {}
    for number, agent in enumerate(agents()):
        pairs = [(float(task.passed), float(task.rounds)) for task in agent]
        draws = _draws(partial(_choice, pairs), size, samples, f"SR {number}")
        _add(found, "SR", methods, draws, _ratio(pairs), size)
    return found


def _differences(size: int, samples: int) -> Shares:
    methods: dict[str, Method] = {"percentile bootstrap": _percentile, "Student's t": t_interval, "ours": _ours}
    rules = {"percentile bootstrap": _resampled_below, "interval": _below, "noise": _noise}
    found: Shares = {}
    for title, value in (("Dataset Score", _passed), ("Case Score", _cases)):
        for number, (first, second) in enumerate(combinations(agents(), 2)):
            differences = [value(one) - value(other) for one, other in zip(first, second, strict=True)]
            draws = _draws(partial(_choice, differences), size, samples, f"difference {title} {number}")
            _add(found, f"difference of {title}", methods, draws, fmean(differences), size)
            draws = _draws(partial(_swapped, differences), size, samples, f"swapped {title} {number}")
            for name, rule in rules.items():
                if rule is _resampled_below or FEWEST_TASKS <= size <= (MOST_EXACT if rule is _noise else size):
                    some = draws[:: 8 if name in _ROUGH else 1]
                    row = f"{_ALARMS}{title}: {name}"
                    found.setdefault(row, []).append(100 * fmean(rule(each) for each in some))
    return found


def _shares(size: int, samples: int) -> Shares:
    """Return how often intervals of a number of tasks over all tasks hold, over all numbers that there can be."""
    shares = {fmean(task.passed == task.rounds for task in agent) for agent in agents()}
    shares |= {fmean(2 * task.passed <= task.rounds for task in agent) for agent in agents()}
    shares |= {complete / 100 for _, complete in LEGACY}
    methods: dict[str, Callable[[int, int], Bounds]] = {"percentile bootstrap": _binomial, "Wilson": _wilson}
    if size >= FEWEST_TASKS:
        methods["ours"] = lambda ones, size: bounded_interval([1.0] * ones + [0.0] * (size - ones), 0, 1)
    found: Shares = {}
    for name, method in methods.items():
        bounds = [method(ones, size) for ones in range(size + 1)]
        for share in sorted(shares - {0.0, 1.0}):
            held = sum(
                comb(size, ones) * share**ones * (1 - share) ** (size - ones)
                for ones, each in enumerate(bounds)
                if _holds(each, share)
            )
            found.setdefault(f"{_SHARES}: {name}", []).append(100 * held)
    return found


def _passed(task: Outcome) -> float:
    return task.passed / task.rounds


def _cases(task: Outcome) -> float:
    return task.cases


def _choice(values: Sequence[Any], random: Random) -> Any:
    return random.choice(values)


def _swapped(differences: Sequence[float], random: Random) -> float:
    return random.choice(differences) * random.choice((-1, 1))


def _attempted(agent: Sequence[Outcome], random: Random) -> tuple[float, ...]:
    task = random.choice(agent)
    share = _passed(task)
    chances = [random.betavariate(4 * share, 4 * (1 - share)) if 0 < share < 1 else share for _ in range(4)]
    return tuple(sum(random.random() < chance for _ in range(task.rounds)) / task.rounds for chance in chances)


def _fitted(mean: float, complete: float, random: Random) -> float:
    rest = (mean - complete) / (1 - complete)
    return 1.0 if random.random() < complete else random.betavariate(2 * rest, 2 * (1 - rest))


def _draws(draw: Callable[[Random], Any], size: int, samples: int, seed: str) -> list[Sample]:
    random = Random(f"{seed} of {size}")
    return [tuple(sorted(draw(random) for _ in range(size))) for _ in range(samples)]


def _add(found: Shares, title: str, methods: dict[str, Method], draws: list[Sample], true: float, size: int) -> None:
    """Add how often each method holds the true number."""
    for name, method in methods.items():
        if name != "ours" or size >= FEWEST_TASKS:
            some = draws[:: 8 if name in _ROUGH else 1]
            held = 100 * fmean(_holds(method(sample), true) for sample in some)
            found.setdefault(f"{title}: {name}", []).append(held)


def _holds(bounds: Bounds, true: float) -> bool:
    return bounds[0] - 1e-9 <= true <= bounds[1] + 1e-9


# Methods.


@cache
def _bounded(values: Sample) -> Bounds:
    return bounded_interval(values, 0, 1)


@cache
def _bounded_ratio(pairs: Sample) -> Bounds:
    parts, wholes = zip(*pairs, strict=True)
    return bounded_interval(parts, 0, 1, sizes=wholes)


@cache
def _ours(values: Sample) -> Bounds:
    found = interval_of_differences(values, 1)
    assert found is not None
    return found.low, found.high


def _students(values: Sample) -> Bounds:
    low, high = t_interval(values)
    return max(0.0, low), min(1.0, high)


def _jackknife(pairs: Sample) -> Bounds:
    found = jackknife_interval(pairs, _ratio)
    assert found is not None
    return found


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(part for part, _ in pairs) / sum(whole for _, whole in pairs)


def _resampled_ratio(pairs: Sample) -> Bounds:
    return _percentiles(sorted(map(_ratio, _redrawn(pairs))))


def _redrawn(values: Sample) -> Iterator[list[Any]]:
    random = Random(repr(values))
    return (random.choices(values, k=len(values)) for _ in range(RESAMPLES))


def _percentile(values: Sample) -> Bounds:
    return _resampled(values)["percentile bootstrap"]


@cache
def _resampled(values: Sample) -> dict[str, Bounds]:
    """Return the intervals of one set of draws (Efron and Tibshirani, chapters 12 to 14)."""
    mean, spread = _moments(values)
    moments = [_moments(draw) for draw in _redrawn(values)]
    means = sorted(each for each, _ in moments)
    if spread < 1e-6:
        return dict.fromkeys(("percentile bootstrap", "BCa", "bootstrap-t"), (mean, mean))
    centre = _NORMAL.inv_cdf(
        min(max(fmean((each < mean - 1e-9) + (abs(each - mean) <= 1e-9) / 2 for each in means), 0.002), 0.998)
    )
    skew = sum((value - mean) ** 3 for value in values) / (6 * sum((value - mean) ** 2 for value in values) ** 1.5)
    sides = [centre + _NORMAL.inv_cdf(side) for side in (0.025, 0.975)]
    moved = [_NORMAL.cdf(centre + side / (1 - skew * side)) for side in sides]
    scaled = sorted((each - mean) / (error or 1e-9) for each, error in moments)
    low, high = _percentiles(scaled)
    return {
        "percentile bootstrap": _percentiles(means),
        "BCa": (_at(means, moved[0]), _at(means, moved[1])),
        "bootstrap-t": (max(0.0, mean - high * spread), min(1.0, mean - low * spread)),
    }


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation, many times as fast as the exact ones of the standard library."""
    count = len(values)
    mean = sum(values) / count
    return mean, sqrt(max(0.0, sum(value * value for value in values) - count * mean * mean) / (count - 1))


def _percentiles(ordered: Sequence[float]) -> Bounds:
    return _at(ordered, 0.025), _at(ordered, 0.975)


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def _binomial(ones: int, size: int) -> Bounds:
    """The percentiles of infinitely many draws."""
    share, total, found = ones / size, 0.0, []
    for number in range(size + 1):
        total += comb(size, number) * share**number * (1 - share) ** (size - number)
        found.append(total)
    low, high = (sum(each < side - 1e-12 for each in found) / size for side in (0.025, 0.975))
    return low, high


def _wilson(ones: int, size: int) -> Bounds:
    z = _NORMAL.inv_cdf(0.975)
    middle, below = ones + z * z / 2, size + z * z
    reach = z * sqrt(ones * (size - ones) / size + z * z / 4)
    return (middle - reach) / below, (middle + reach) / below


# Rules.


def _resampled_below(differences: Sample) -> bool:
    return _percentile(differences)[1] < -1e-9


def _below(differences: Sample) -> bool:
    return _ours(differences)[1] < 0


def _noise(differences: Sample) -> bool:
    return sign_flips(differences).p_lower <= 0.05
