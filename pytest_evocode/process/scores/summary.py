"""Average pillars over rounds, then attempts, then tasks, as the outcome scores are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval
from pytest_evocode.metrics.statistics.jackknife import jackknife_interval
from pytest_evocode.process.evidence import Certainty
from pytest_evocode.process.pillars.extended import EXTENDED
from pytest_evocode.process.protocols import Judgement
from pytest_evocode.process.scores.records import AttemptProcess
from pytest_evocode.process.scores.rigor_score import (
    PILLARS,
    WEIGHTS,
    RigorScore,
    Shares,
    mean_known,
    mean_pillars,
    mean_shares,
    rigor_score,
)

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
            "interval": [summary.interval.low, summary.interval.high] if summary.interval is not None else None,
            "rounds_without_a_run": summary.idle[0],
            "edited_rounds": summary.idle[1],
            "attempts": summary.attempts,
        }
        for agent, summary in agents.items()
    ]
