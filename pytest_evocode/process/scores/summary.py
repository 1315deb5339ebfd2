"""Average pillars over rounds, then attempts, then tasks, as the outcome scores are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.metrics.intervals import Interval, interval_of_differences
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
    """How much of each pillar was measured, and judged by a model."""
    idle: tuple[int, int] = (0, 0)
    """The number of rounds with an edit in which nothing was run, and of all rounds with an edit."""
    interval: Interval | None = None
    """The 95 % interval of the mean of the tasks' RigorScores; None for a task, and for too few tasks."""


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
    return ProcessSummary(values, score, len(attempts), _extended(attempts), mean_known(outcomes), shares, idle)


def summarise_agent(
    tasks: Mapping[str, Iterable[AttemptProcess]], weights: Mapping[str, float] = WEIGHTS
) -> ProcessSummary:
    """Summarise all tasks of an agent: each pillar is the mean over the tasks in which it was measured.

    The RigorScore is computed from these means, so that its coverage is that of the pillars shown beside it.
    """
    summaries = [summarise_task(attempts, weights) for attempts in tasks.values()]
    values = mean_pillars(summary.values for summary in summaries)
    shares = mean_shares(summary.shares for summary in summaries)
    score = rigor_score(values, weights, shares) if any(summary.score is not None for summary in summaries) else None
    more = {name: mean_known([summary.extended[name] for summary in summaries]) for name in EXTENDED}
    outcome = mean_known([summary.outcome for summary in summaries])
    idle = (sum(summary.idle[0] for summary in summaries), sum(summary.idle[1] for summary in summaries))
    known_scores = [summary.score.value for summary in summaries if summary.score is not None]
    interval = interval_of_differences(known_scores, 1) if known_scores else None
    attempts = sum(summary.attempts for summary in summaries)
    return ProcessSummary(values, score, attempts, more, outcome, shares, idle, interval)


def _extended(attempts: Iterable[AttemptProcess]) -> Values:
    rounds = [round_ for attempt in attempts for round_ in attempt.rounds]
    return {
        name: mean_known([round_.extended[name].value for round_ in rounds if name in round_.extended])
        for name in EXTENDED
    }


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
            "interval": [summary.interval.low, summary.interval.high] if summary.interval is not None else None,
            "rounds_without_a_run": summary.idle[0],
            "edited_rounds": summary.idle[1],
            "attempts": summary.attempts,
        }
        for agent, summary in agents.items()
    ]
