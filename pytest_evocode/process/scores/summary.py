"""Compare agents: means over rounds, attempts and tasks, correlation with the outcome, and what the weights decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import atanh, sqrt, tanh
from statistics import fmean
from typing import Any

from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval
from pytest_evocode.metrics.statistics.intervals import jackknife_interval
from pytest_evocode.process.evidence import Certainty
from pytest_evocode.process.protocols import Judgement
from pytest_evocode.process.scores.rigor_score import (
    EXTENDED,
    PILLARS,
    WEIGHTS,
    AttemptProcess,
    RigorScore,
    Shares,
    mean_known,
    mean_pillars,
    mean_shares,
    rigor_score,
)

Point = tuple[float, float]
"""RigorScore and outcome."""
Pairs = Mapping[str, Mapping[str, Point]]
"""By agent and task."""

_NEARLY_ONE = 1 - 1e-12  # Of which atanh is finite.


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r, and what it stands on."""

    r: float | None
    tasks: int
    interval: Interval | None
    """The 95 % interval, by leaving out one task at a time."""
    reason: str = ""
    """Why there is no r or no interval."""


def within_agent(pairs: Mapping[str, Point]) -> Correlation:
    """Correlate over the tasks of one agent.

    >>> points = {f"task-{n}": (0.1 * n, 0.1 * n + 0.3 * (n % 2)) for n in range(6)}
    >>> within_agent(points).r > 0.7, within_agent(points | {"more": (9.0, 0.0)}).r < 0
    (True, True)
    >>> within_agent(dict(list(points.items())[:4]))
    Correlation(r=None, tasks=4, interval=None, reason='no correlation below 5 tasks')
    """
    return _correlation([{"": point} for _, point in sorted(pairs.items())], by_task=False)


def within_tasks(pairs: Pairs) -> Correlation:
    """Correlate over all agents how far each is from what its task and itself lead one to expect.

    Both sides are centred by task and by agent: what is left of a point are the differences that neither a task which
    is hard for all agents makes, nor an agent which is better at all tasks. Tasks that only one agent attempted are
    left out.
    """
    tasks: dict[str, dict[str, Point]] = {}
    for agent, points in sorted(pairs.items()):
        for task, point in points.items():
            tasks.setdefault(task, {})[agent] = point
    return _correlation([tasks[task] for task in sorted(tasks) if len(tasks[task]) > 1], by_task=True)


def _correlation(tasks: Sequence[Mapping[str, Point]], *, by_task: bool) -> Correlation:
    """Return the correlation of some tasks' points by agent."""
    if len(tasks) < FEWEST_TASKS:
        return Correlation(None, len(tasks), None, f"no correlation below {FEWEST_TASKS} tasks")

    def transformed(some: Sequence[Mapping[str, Point]]) -> float | None:
        r = _pearson(some, by_task=by_task)
        return None if r is None else atanh(max(-_NEARLY_ONE, min(_NEARLY_ONE, r)))

    r = _pearson(tasks, by_task=by_task)
    if r is None:
        return Correlation(None, len(tasks), None, "one side does not vary")
    # On Fisher's scale, where a correlation is nearly normal. Its own formula for the width would count points, and
    # the points of one task are not independent.
    found = jackknife_interval(tasks, transformed)
    if found is None:
        return Correlation(r, len(tasks), None, "without one of the tasks one side does not vary")
    low, high = map(tanh, found)
    return Correlation(r, len(tasks), Interval(low, high, "jackknife over tasks"))


# Not statistics.correlation, which takes noise from rounding for variation.
def _pearson(tasks: Sequence[Mapping[str, Point]], *, by_task: bool) -> float | None:
    """Return Pearson's correlation of the centred points; None where one side does not vary."""
    left, right = (_centred([{agent: point[side] for agent, point in task.items()} for task in tasks], by_task=by_task)
                   for side in (0, 1))  # fmt: skip
    scale = sqrt(sum(x * x for x in left) * sum(y * y for y in right))
    if scale <= 1e-9:
        return None
    return max(-1.0, min(1.0, sum(x * y for x, y in zip(left, right, strict=True)) / scale))


def _centred(tasks: Sequence[Mapping[str, float]], *, by_task: bool) -> list[float]:
    """Return what is left of values without the means of their agents, and with ``by_task`` of their tasks.

    Where not all agents attempted all tasks, the one centring undoes a part of the other, and both are repeated.
    """
    left = [dict(task) for task in tasks]
    counts = Counter(agent for task in left for agent in task)
    for _ in range(1000):
        if by_task:
            for task in left:
                mean = fmean(task.values())
                task.update({agent: value - mean for agent, value in task.items()})
        means = {agent: sum(task.get(agent, 0.0) for task in left) / count for agent, count in counts.items()}
        for task in left:
            task.update({agent: value - means[agent] for agent, value in task.items()})
        if not by_task or max(map(abs, means.values())) < 1e-13:
            break
    return [value for task in left for value in task.values()]


@dataclass(frozen=True, slots=True)
class Variation:
    """One weight multiplied by ``factor``, and the agents from best to worst under it."""

    pillar: str
    factor: float
    order: tuple[str, ...]
    kept: bool
    """Whether that is the order under the unchanged weights."""


def sensitivity(
    agents: Mapping[str, Mapping[str, float | None]], weights: Mapping[str, float] = WEIGHTS
) -> list[Variation]:
    """Return the rank order of agents, given their pillars, with each weight at 50 % and at 150 %.

    Agents without a RigorScore are left out; equal scores are ranked by name, so that ties do not count as changes.
    """
    order = _order(agents, weights)
    variations = []
    for pillar in weights:
        for factor in (0.5, 1.5):
            changed = _order(agents, {**weights, pillar: weights[pillar] * factor})
            variations.append(Variation(pillar, factor, changed, changed == order))
    return variations


def _order(agents: Mapping[str, Mapping[str, float | None]], weights: Mapping[str, float]) -> tuple[str, ...]:
    scores = {agent: rigor_score(pillars, weights) for agent, pillars in agents.items()}
    known = {agent: round(score.value, 9) for agent, score in scores.items() if score is not None}
    return tuple(sorted(known, key=lambda agent: (-known[agent], agent)))


Values = Mapping[str, float | None]

JACKKNIFE = "jackknife"


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """The means of several attempts."""

    values: Values
    """The pillars."""
    score: RigorScore | None
    attempts: int
    extended: Values
    outcome: float | None
    """The share of cases that passed, 0 to 1."""
    shares: Mapping[str, Shares] = field(default_factory=dict)
    """How much of each pillar was measured, judged by a model, and executed."""
    idle: tuple[int, int] = (0, 0)
    """The number of rounds with an edit in which nothing was run, and of all rounds with an edit."""
    interval: Interval | None = None
    """The 95 % interval of the RigorScore over tasks; None for a task, and for too few tasks."""
    certainties: Mapping[str, frozenset[Certainty]] = field(default_factory=dict)
    """How the values of each extended metric came about."""


def by_task(attempts: Iterable[AttemptProcess]) -> dict[str, dict[str, list[AttemptProcess]]]:
    """Group attempts by agent, then by task, both sorted by name."""
    found: dict[str, dict[str, list[AttemptProcess]]] = {}
    for attempt in sorted(attempts, key=lambda each: (each.agent, each.task, each.attempt)):
        found.setdefault(attempt.agent, {}).setdefault(attempt.task, []).append(attempt)
    return found


def summarise_task(attempts: Iterable[AttemptProcess], weights: Mapping[str, float] = WEIGHTS) -> ProcessSummary:
    """Summarise an agent's attempts at one task: each pillar is the mean over those in which it was measured."""
    attempts = list(attempts)
    values = mean_pillars(attempt.values for attempt in attempts)
    shares = mean_shares(attempt.shares for attempt in attempts)
    score = rigor_score(values, weights, shares) if any(attempt.edited for attempt in attempts) else None
    outcomes = [attempt.outcome for attempt in attempts]
    edited = [round_ for attempt in attempts for round_ in attempt.rounds if round_.edited]
    idle = (sum(not round_.ran for round_ in edited), len(edited))
    more, certainties = _extended(attempts)
    return ProcessSummary(
        values, score, len(attempts), more, mean_known(outcomes), shares, idle, certainties=certainties
    )


def summarise_agent(
    tasks: Mapping[str, Iterable[AttemptProcess]], weights: Mapping[str, float] = WEIGHTS
) -> ProcessSummary:
    """Summarise all tasks of an agent: each pillar is the mean over the tasks in which it was measured.

    The RigorScore is computed from these means, so that its coverage is that of the pillars shown beside it.
    """
    summaries = [summarise_task(attempts, weights) for attempts in tasks.values()]
    more = {name: mean_known([summary.extended[name] for summary in summaries]) for name in EXTENDED}
    outcome = mean_known([summary.outcome for summary in summaries])
    idle = (sum(summary.idle[0] for summary in summaries), sum(summary.idle[1] for summary in summaries))
    return ProcessSummary(
        values=mean_pillars(summary.values for summary in summaries),
        score=_score_over(summaries, weights),
        attempts=sum(summary.attempts for summary in summaries),
        extended=more,
        outcome=outcome,
        shares=mean_shares(summary.shares for summary in summaries),
        idle=idle,
        interval=_interval_over(summaries, weights),
        certainties={
            name: frozenset[Certainty]().union(*(summary.certainties.get(name, ()) for summary in summaries))
            for name in EXTENDED
        },
    )


def _score_over(summaries: Sequence[ProcessSummary], weights: Mapping[str, float]) -> RigorScore | None:
    if all(summary.score is None for summary in summaries):
        return None
    values = mean_pillars(summary.values for summary in summaries)
    return rigor_score(values, weights, mean_shares(summary.shares for summary in summaries))


def _interval_over(summaries: Sequence[ProcessSummary], weights: Mapping[str, float]) -> Interval | None:
    """Return the interval of the score over tasks, by leaving out one task at a time.

    The score is no mean over tasks: its weights depend on what was measured in which.
    """
    if sum(summary.score is not None for summary in summaries) < FEWEST_TASKS:
        return None

    def score(some: Sequence[ProcessSummary]) -> float | None:
        found = _score_over(some, weights)
        return None if found is None else found.value

    known = [summary for summary in summaries if any(value is not None for value in summary.values.values())]
    found = jackknife_interval(known, score)
    return None if found is None else Interval(max(0.0, found[0]), min(1.0, found[1]), JACKKNIFE)


def _extended(attempts: Iterable[AttemptProcess]) -> tuple[Values, dict[str, frozenset[Certainty]]]:
    rounds = [round_ for attempt in attempts for round_ in attempt.rounds]
    measures = {name: [round_.extended[name] for round_ in rounds if name in round_.extended] for name in EXTENDED}
    return (
        {name: mean_known(measure.value for measure in some) for name, some in measures.items()},
        {name: frozenset(each.certainty for each in some if each.certainty) for name, some in measures.items()},
    )


def judged(attempts: Iterable[AttemptProcess]) -> dict[str, list[Judgement]]:
    """Return all judgements by sub-metric."""
    found: dict[str, list[Judgement]] = {}
    for attempt in attempts:
        for round_ in attempt.rounds:
            for name, judgement in round_.judgements.items():
                found.setdefault(name, []).append(judgement)
    return found


def as_json(agents: Mapping[str, ProcessSummary]) -> list[dict[str, Any]]:
    """Return what ``evocode process --json`` prints: a row for each agent, 0 to 1, null where not measured."""
    return [
        {
            "agent": agent,
            **{name: summary.values[name] for name in PILLARS},
            "rigor_score": summary.score.value if summary.score is not None else None,
            "coverage": summary.score.coverage if summary.score is not None else None,
            "judged": summary.score.judged if summary.score is not None else None,
            "executed": summary.score.executed if summary.score is not None else None,
            "claimed": summary.score.claimed if summary.score is not None else None,
            "interval": [summary.interval.low, summary.interval.high] if summary.interval is not None else None,
            "rounds_without_a_run": summary.idle[0],
            "edited_rounds": summary.idle[1],
            "attempts": summary.attempts,
        }
        for agent, summary in agents.items()
    ]
