"""What ``evocode regrade`` prints: the verdicts and scores that are different after verifying again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.grid import by_agent
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.metrics.scores import dataset_score
from pytest_evocode.names import attempt_name
from pytest_evocode.report.tables import aligned, format_number, join_first, values_of
from pytest_evocode.results.records import RoundRecord

Pair = tuple[RoundRecord, RoundRecord]
"""The records of a round before and after it was verified again."""


def changes(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return the rounds whose outcome, reward or number of passed cases has changed, ready for JSON."""
    return [
        {
            **values_of(after, "task", "agent", "attempt", "round"),
            "before": _verdict(before),
            "after": _verdict(after),
        }
        for before, after in pairs
        if _verdict(before) != _verdict(after)
    ]


def _verdict(record: RoundRecord) -> dict[str, Any]:
    passed, cases = record.case_counts
    reward = record.verdict.reward if record.verdict is not None else None
    return {"outcome": record.outcome, "reward": reward, "passed_cases": passed, "cases": cases}


def flaky_line(pairs: Sequence[Pair]) -> str:
    """Return which rounds of tasks that have not changed have another verdict now, in one line; empty without any."""
    found = [
        f"{each['task']} {attempt_name(each['agent'], each['attempt'])} {each['round']}" for each in changes(pairs)
    ]
    if not found:
        return ""
    return f"flaky, because their tasks have not changed since: {join_first(found)}"


def scored_together(rows: Iterable[ScoreRow], regraded: Mapping[Path, Sequence[Pair]]) -> list[Pair]:
    """Return the rounds of attempts that count, as those of the rows that the attempts are in.

    Args:
        rows: The rows of all runs' attempts, as they were before.
        regraded: The rounds of each attempt by its directory.
    """
    found = []
    for row in rows:
        for attempt in row.attempts:
            of_row = {"agent": row.name, "attempt": attempt.record.attempt}
            for before, after in regraded.get(attempt.path, ()):
                found.append((before.model_copy(update=of_row), after.model_copy(update=of_row)))
    return found


def score_changes(pairs: Sequence[Pair]) -> dict[str, dict[str, float | None]]:
    """Return each row's Dataset Score, 0 to 100, before and after, over what :func:`scored_together` returned."""
    before, after = by_agent(pair[0] for pair in pairs), by_agent(pair[1] for pair in pairs)
    return {agent: {"before": dataset_score(before[agent]), "after": dataset_score(after[agent])} for agent in after}


def change_lines(pairs: Sequence[Pair], scored: Sequence[Pair]) -> Iterator[str]:
    """Yield the table of changed rounds, and the Dataset Score before and after of each row that is ``scored``."""
    found = changes(pairs)
    if not found:
        yield "no verdict has changed"
    else:
        rows = [
            (each["task"], attempt_name(each["agent"], each["attempt"]), each["round"], _in_words(each["before"]), "->",
             _in_words(each["after"]))
            for each in found
        ]  # fmt: skip
        yield from aligned([("task", "attempt", "round", "before", "", "after"), *rows], left=range(6))
    yield ""
    for agent, score in score_changes(scored).items():
        yield f"{agent}: Dataset Score {format_number(score['before'])} -> {format_number(score['after'])}"


def _in_words(verdict: dict[str, Any]) -> str:
    cases = f" {verdict['passed_cases']}/{verdict['cases']}" if verdict["cases"] else ""
    return f"{verdict['outcome']}{cases}"
