"""What verifying again has changed, round by round and in the scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_evocode.metrics.grid import by_agent
from pytest_evocode.metrics.scores import dataset_score
from pytest_evocode.names import attempt_name
from pytest_evocode.report.tables import aligned
from pytest_evocode.results.records import RoundRecord

Pair = tuple[RoundRecord, RoundRecord]
"""A round before and after."""


def changes(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The rounds of which the outcome, the reward or the number of passed cases is another one now."""
    return [
        {
            "task": after.task,
            "agent": after.agent,
            "attempt": after.attempt,
            "round": after.round,
            "before": _said(before),
            "after": _said(after),
        }
        for before, after in pairs
        if _said(before) != _said(after)
    ]


def _said(record: RoundRecord) -> dict[str, Any]:
    passed, cases = record.case_counts
    reward = record.verdict.reward if record.verdict is not None else None
    return {"outcome": record.outcome, "reward": reward, "passed_cases": passed, "cases": cases}


def score_changes(pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """The Dataset Score, 0 to 100, by agent: over all rounds of the attempts, before and after."""
    before, after = by_agent(pair[0] for pair in pairs), by_agent(pair[1] for pair in pairs)
    return {agent: {"before": dataset_score(before[agent]), "after": dataset_score(after[agent])} for agent in after}


def change_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """The table of what is different, and each agent's score."""
    found = changes(pairs)
    if not found:
        yield "no round has another verdict"
    else:
        rows = [
            (each["task"], attempt_name(each["agent"], each["attempt"]), each["round"], _in_words(each["before"]), "->",
             _in_words(each["after"]))
            for each in found
        ]  # fmt: skip
        yield from aligned([("task", "attempt", "round", "before", "", "after"), *rows], left=range(6))
    yield ""
    for agent, score in score_changes(pairs).items():
        yield f"{agent}: Dataset Score {score['before']:.1f} -> {score['after']:.1f}"


def _in_words(said: dict[str, Any]) -> str:
    cases = f" {said['passed_cases']}/{said['cases']}" if said["cases"] else ""
    return f"{said['outcome']}{cases}"
