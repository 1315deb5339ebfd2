"""Average pillars over rounds, then attempts, then tasks, as the outcome scores are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_evocode.process.pillars.extended import EXTENDED
from pytest_evocode.process.protocols import Judgement
from pytest_evocode.process.scores.records import AttemptProcess
from pytest_evocode.process.scores.rigor_score import (
    PILLARS,
    WEIGHTS,
    RigorScore,
    mean_known,
    mean_pillars,
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
    score = rigor_score(values, weights) if any(attempt.edited for attempt in attempts) else None
    outcomes = [attempt.outcome for attempt in attempts]
    return ProcessSummary(values, score, len(attempts), _extended(attempts), mean_known(outcomes))


def summarise_agent(
    tasks: Mapping[str, Iterable[AttemptProcess]], weights: Mapping[str, float] = WEIGHTS
) -> ProcessSummary:
    """Summarise all tasks of an agent: each pillar is the mean over the tasks in which it was measured.

    The RigorScore is computed from these means, so that its coverage is that of the pillars shown beside it.
    """
    known = {task: list(attempts) for task, attempts in tasks.items()}
    summaries = [summarise_task(attempts, weights) for attempts in known.values()]
    values = mean_pillars(summary.values for summary in summaries)
    score = rigor_score(values, weights) if any(summary.score is not None for summary in summaries) else None
    more = {name: mean_known([summary.extended[name] for summary in summaries]) for name in EXTENDED}
    outcome = mean_known([summary.outcome for summary in summaries])
    return ProcessSummary(values, score, sum(summary.attempts for summary in summaries), more, outcome)


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
            "attempts": summary.attempts,
        }
        for agent, summary in agents.items()
    ]
