"""The rows of scores of a report; the shapes are ``Row``, ``ScoreValues`` and ``Spending`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pytest_evocode.metrics.analyses import first_failures, survival
from pytest_evocode.metrics.breakdown import Dimension, Group, breakdown
from pytest_evocode.metrics.efficiency import Taken, efficiency
from pytest_evocode.metrics.faults import Faults, FlakyRound
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.report.faults import describe
from pytest_evocode.report.html.ids import row_id
from pytest_evocode.report.html.overview.case_failures import FoundFailures, failure_values
from pytest_evocode.report.identities import changed_tasks
from pytest_evocode.report.notes import row_notes
from pytest_evocode.report.rankings import rankings
from pytest_evocode.report.scores import trusting_rounds
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.identity import AgentIdentity

SCORES = (
    "dataset_score",
    "case_score",
    "avg_rounds",
    "perfect_tasks",
    "mt_at_k",
    "sr",
    "gap",
    "final_round_completion",
    "mean_reward",
    "reliability",
    "tasks",
    "rounds",
    "trusting",
)
"""The fields of :class:`~pytest_evocode.metrics.scores.Scores` that a report shows under the same names."""
_WITHOUT_FAULTS = ("dataset_score", "case_score", "sr")


def rows_of(
    table: ScoreTable,
    rankings: Sequence[Sequence[ScoreRow]],
    processes: Mapping[str, Mapping[str, Any]],
    failures: FoundFailures | None,
) -> list[dict[str, Any]]:
    """Return all rows of a table, by ranking and in each the best first.

    Args:
        table: The table.
        rankings: Its rows as :func:`ranked` returns them.
        processes: The summary of the process of rows, by their ids; rows where nothing was scored are not there.
        failures: What the rounds' cases told, where the records are without them.
    """
    return [
        _row(table, row, number, processes.get(row_id(row)), failures)
        for number, ranking in enumerate(rankings, 1)
        for row in ranking
    ]


def ranked(table: ScoreTable) -> list[list[ScoreRow]]:
    """Return the rows of a table by ranking, numbered as on the leaderboard, and in each the best first.

    Rows of single rounds that the leaderboard shows as columns of other rows are rankings of their own, the last.
    """
    paired = {id(table.single_rounds(row)) for row in table.rows}

    def best_first(row: ScoreRow) -> tuple[float, float, str]:
        found = table.scores(row)
        return -_or_last(found.dataset_score), -_or_last(found.sr), row.name

    board = sorted((row for row in table.rows if id(row) not in paired), key=best_first)
    columns = sorted((row for row in table.rows if id(row) in paired), key=best_first)
    return [*rankings(board), *rankings(columns)]


def _or_last(value: float | None) -> float:
    return -1.0 if value is None else value


def _row(
    table: ScoreTable,
    row: ScoreRow,
    ranking: int,
    process: Mapping[str, Any] | None,
    failures: FoundFailures | None,
) -> dict[str, Any]:
    scores, faults, intervals = table.scores(row), table.faults(row), table.intervals(row)
    found = failure_values(row, failures)
    conditions = row.subject.conditions
    return {
        "id": row_id(row),
        "name": row.name,
        "agent": row.agent,
        "mode": row.mode,
        "from_round": row.from_round,
        "harness": _harness(row.subject.agent),
        "environment": conditions.environment,
        "strict": conditions.strict,
        "ranking": ranking,
        "scores": score_values(scores),
        "intervals": {
            name: {"low": each.low, "high": each.high}
            for name, each in intervals.items()
            if each is not None and name in SCORES
        },
        "without_faults": None if faults is None else {name: getattr(faults, name) for name in _WITHOUT_FAULTS},
        "spending": _spending(row, scores),
        "groups": {by: _groups(table, row, by) for by in get_args(Dimension)},
        "survival": _survival(row),
        "failures": found,
        "faults": found["rounds"]["agent error"] + found["rounds"]["infrastructure"],
        "partial": sum(attempt.partial for attempt in row.attempts),
        "missing": [{"task": task, "attempt": number} for task, number in row.missing],
        "process": process,
        "notes": list(_notes(row, scores, faults, any_version=table.any_version)),
    }


def _harness(agent: AgentIdentity) -> str:
    """Return what drives an agent's model or tool, ``none`` where it has neither, and "" where records do not say."""
    parts = dict(agent.parts)
    said = " ".join(filter(None, (parts.get("harness"), parts.get("version"))))
    return said or ("none" if parts.get("spec", agent.name) in ("oracle", "nop") else "")


def score_values(scores: Scores) -> dict[str, Any]:
    """Return the scores that a report shows, and k."""
    values = {name: getattr(scores, name) for name in SCORES}
    return {**values, "attempts_min": scores.fewest_attempts, "attempts_max": scores.attempts}


def _spending(row: ScoreRow, scores: Scores) -> dict[str, float | None]:
    """Return what an attempt at a task takes: what one pass takes over all tasks, divided by their number.

    Output tokens are those of the leaderboard, scaled to all rounds of a task.
    """
    if not row.grid.tasks:
        return dict.fromkeys(("cost_usd", "tokens", "output_tokens", "agent_seconds"))
    taken = efficiency(row.grid, single=row.mode == "single-round")
    tasks = len(row.grid.tasks)

    def mean(of: Taken) -> float | None:
        return None if of.value is None else of.value / tasks

    return {
        "cost_usd": mean(taken.cost_usd),
        "tokens": mean(taken.tokens),
        "output_tokens": scores.output_tokens,
        "agent_seconds": mean(taken.seconds),
    }


def _groups(table: ScoreTable, row: ScoreRow, by: Dimension) -> dict[str, dict[str, Any]]:
    groups = breakdown(row.grid, by, table.facts, single_rounds=row.mode == "single-round")
    return {name: _group_values(group) for name, group in groups.items()}


def _group_values(group: Group) -> dict[str, Any]:
    values = {name: getattr(group, name, None) for name in SCORES}
    return {name: value for name, value in values.items() if value is not None}


def _survival(row: ScoreRow) -> list[dict[str, Any]]:
    """Return how far chains get; single rounds are independent of each other, so that none of them fails first."""
    if row.mode == "single-round":
        return []
    first = Counter(failure.index for failure in first_failures(row.grid))
    return [
        {"round": index, "passed": share.passed, "of": share.of, "first_failures": first[index]}
        for index, share in survival(row.grid).items()
    ]


def _notes(row: ScoreRow, scores: Scores, faults: Faults | None, *, any_version: bool) -> Iterator[str]:
    yield from row_notes(row)
    if row.changed:
        yield changed_tasks(row, any_version=any_version)
    if faults is not None:
        yield f"infrastructure errors count as not passed: {describe(faults)}"
    if scores.trusting:
        yield trusting_rounds(scores.trusting)
    if flaky := row.flaky:
        yield f"flaky, verdicts differ although nothing else does: {join_first([_flaky(each) for each in flaky], 5)}"


def _flaky(found: FlakyRound) -> str:
    return f"{found.task} {found.round}"
