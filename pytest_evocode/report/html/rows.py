"""The rows of scores of a report, compared and on fronts: ``Row``, ``Comparisons`` and ``Pareto`` in ``data.d.ts``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

from pytest_evocode.metrics.analyses import first_failures, pass_rates
from pytest_evocode.metrics.breakdown import Dimension, Group, breakdown
from pytest_evocode.metrics.comparison import BEST_OF_ATTEMPTS, Comparison, compare
from pytest_evocode.metrics.efficiency import AMOUNTS, Efficiency, efficiency, front, standings
from pytest_evocode.metrics.faults import Faults
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import Scores, case_score
from pytest_evocode.metrics.task_values import MEANS, Metric
from pytest_evocode.report.html.cells import FoundFailures, failure_values
from pytest_evocode.report.html.ids import row_id
from pytest_evocode.report.leaderboard import best_first, can_be_compared, rankings
from pytest_evocode.report.notes import changed_tasks, row_notes
from pytest_evocode.report.score_columns import REPORT, WITHOUT_FAULTS
from pytest_evocode.report.score_lines import describe_faults, trusting_rounds
from pytest_evocode.report.tables import join_first, values_of
from pytest_evocode.report.views import ends
from pytest_evocode.results.identity import AgentIdentity


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

    Rows of single rounds that the leaderboard shows as columns of other rows are rankings of their own, and at last so
    is each control.
    """
    rows = best_first(table), best_first(table, columns=True)
    return [*rankings(rows[0]), *rankings(rows[1]), *([row] for each in rows for row in each if row.is_control)]


def _row(
    table: ScoreTable,
    row: ScoreRow,
    ranking: int,
    process: Mapping[str, Any] | None,
    failures: FoundFailures | None,
) -> dict[str, Any]:
    scores, faults, intervals = table.scores(row), table.faults(row), table.intervals(row)
    found = failure_values(row, failures)
    return {
        "id": row_id(row),
        **values_of(row, "name", "agent", "mode", "from_round"),
        "harness": _harness(row.subject.agent),
        **values_of(row.subject.conditions, "environment", "strict"),
        "ranking": ranking,
        "scores": score_values(scores),
        "intervals": {name: ends(each) for name, each in intervals.items() if each is not None and name in REPORT},
        "without_faults": None if faults is None else values_of(faults, *WITHOUT_FAULTS),
        "spending": _spending(row, scores),
        "groups": {by: _groups(table, row, by) for by in get_args(Dimension)},
        "survival": _survival(row),
        "failures": found,
        "faults": found["rounds"]["agent error"] + found["rounds"]["infrastructure"],
        "partial": len(row.partial),
        "missing": [{"task": task, "attempt": number} for task, number in row.missing],
        "process": process,
        "notes": list(_notes(row, scores, faults, any_version=table.any_version)),
    }


def _harness(agent: AgentIdentity) -> str:
    """Return what drives an agent's model or tool, ``none`` where it has neither, and "" where records do not say."""
    parts = dict(agent.parts)
    said = " ".join(filter(None, (parts.get("harness"), parts.get("version"))))
    return said or ("none" if agent.is_control else "")


def score_values(scores: Scores) -> dict[str, Any]:
    """Return the scores that a report shows, and k."""
    return {
        **values_of(scores, *REPORT, "trusting"),
        "attempts_min": scores.fewest_attempts,
        "attempts_max": scores.attempts,
    }


def _spending(row: ScoreRow, scores: Scores) -> dict[str, float | None]:
    """Return what an attempt at a task takes, the mean over tasks.

    Output tokens are those of the leaderboard, scaled to all rounds of a task.
    """
    if not row.grid.tasks:
        return dict.fromkeys(("cost_usd", "tokens", "output_tokens", "agent_seconds"))
    taken = efficiency(row.grid, single=row.mode == "single-round")
    amounts = {field: taken.per_attempt(field) for field in AMOUNTS.values()}
    return {**amounts, "output_tokens": scores.output_tokens}


def _groups(table: ScoreTable, row: ScoreRow, by: Dimension) -> dict[str, dict[str, Any]]:
    groups = breakdown(row.grid, by, table.facts, single_rounds=row.mode == "single-round")
    return {name: _group_values(group) for name, group in groups.items()}


def _group_values(group: Group) -> dict[str, Any]:
    values = {name: getattr(group, name, None) for name in REPORT}
    return {name: value for name, value in values.items() if value is not None}


def _survival(row: ScoreRow) -> list[dict[str, Any]]:
    """Return how far chains get; single rounds are independent of each other, so that none of them fails first."""
    if row.mode == "single-round":
        return []
    first = Counter(failure.index for failure in first_failures(row.grid))
    return [
        {"round": index, "passed": share.passed, "of": share.of, "first_failures": first[index]}
        for index, share in pass_rates(row.grid).items()
    ]


def _notes(row: ScoreRow, scores: Scores, faults: Faults | None, *, any_version: bool) -> Iterator[str]:
    yield from row_notes(row)
    if row.changed:
        yield changed_tasks(row, any_version=any_version)
    if faults is not None:
        yield f"infrastructure errors count as not passed: {describe_faults(faults)}"
    if scores.trusting:
        yield trusting_rounds(scores.trusting)
    if flaky := [f"{each.task} {each.round}" for each in row.flaky]:
        yield f"flaky, verdicts differ although nothing else does: {join_first(flaky, 5)}"


_SCORES: tuple[Metric, ...] = ("dataset_score", "case_score")


def pareto_of(rankings: Sequence[Sequence[ScoreRow]]) -> list[dict[str, Any]]:
    """Return the points of all chains; each ranking has a front of its own.

    What a score took is for one attempt at a task, the mean over tasks, as in the spending of rows.
    """
    groups = [
        {row_id(row): _by_score(row) for row in rows if row.mode != "single-round" and row.grid.tasks}
        for rows in rankings
    ]
    grids = {row_id(row): row.grid for rows in rankings for row in rows}
    return [
        {
            "score": score,
            "against": field,
            "points": [each for group in groups for each in _points(group, score, amount, grids)],
        }
        for score in _SCORES
        for amount, field in AMOUNTS.items()
    ]


def _by_score(row: ScoreRow) -> dict[str, Efficiency]:
    found = efficiency(row.grid, control=row.is_control)
    cases = case_score(row.grid)
    return {"dataset_score": found} | ({} if cases is None else {"case_score": replace(found, score=cases)})


def _points(
    group: Mapping[str, Mapping[str, Efficiency]], score: Metric, amount: str, grids: Mapping[str, Grid]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one ranking of which the amount is known of every round."""
    rows = {id_: found[score] for id_, found in group.items() if score in found}
    best = front(rows, [amount]).front
    value, _ = MEANS[score]
    sure = standings(rows, grids, [amount], value=value) if len(rows) <= MOST else {}
    for id_, row in rows.items():
        x = row.per_attempt(AMOUNTS[amount])
        if x is not None and row.score is not None:
            said = f"{sure[id_].standing} ({100 * sure[id_].on_front:.0f} %)" if id_ in sure else ""
            yield {"row": id_, "x": x, "y": row.score, "front": id_ in best, "standing": said}


MOST = 16
"""How many rows, in all and of each ranking, are all compared; others are with the best of their ranking only."""
_METRICS: tuple[Metric, ...] = ("dataset_score", "case_score", "mt_at_k")
SR_BY_TASK = "sr_by_task"
"""The field of the share of single rounds passed as the mean over tasks, which SR itself is not."""
_NOTE = (
    "Rows of one mode are compared, under the same conditions and at the same contents of tasks, over the rounds that "
    "were selected for both"
)


def comparisons_of(table: ScoreTable) -> dict[str, Any]:
    """Return the comparisons of rows that can be compared, as JSON values.

    In each pair the row of the first ranking comes first, and in one ranking the better row.
    """
    rankings = ranked(table)
    pairs = [pair for rows in _pairs(rankings) if (pair := _compared(table, *rows)) is not None]
    many = sum(map(len, rankings)) > MOST
    note = f"{_NOTE}; of more than {MOST} rows, those behind only with the best of their ranking" if many else _NOTE
    return {"pairs": pairs, "note": note}


def _pairs(rankings: Sequence[Sequence[ScoreRow]]) -> Iterator[tuple[ScoreRow, ScoreRow]]:
    for best, *others in rankings:
        yield from combinations([best, *others[: MOST - 1]], 2)
        yield from ((best, row) for row in others[MOST - 1 :])
    rows = [(number, row) for number, ranking in enumerate(rankings) for row in ranking]
    for (one, first), (other, second) in combinations(rows[:MOST], 2):
        if one != other and can_be_compared(first, second):
            yield first, second


def _compared(table: ScoreTable, first: ScoreRow, second: ScoreRow) -> dict[str, Any] | None:
    """Return a pair; None where the two have no task in common."""
    found = dict(_differences(table, first, second))
    headline = found.get("dataset_score") or found.get(SR_BY_TASK)
    if headline is None:
        return None
    return {
        "first": row_id(first),
        "second": row_id(second),
        "differences": [
            _difference(field, each)
            for field, each in found.items()
            if each.same_attempts or each.metric not in BEST_OF_ATTEMPTS
        ],
        "flips": [{"round": flip.index, **values_of(flip, "task", "first", "second")} for flip in headline.flips],
        **values_of(headline, "flips_p_value", "flips_by_task_p_value", "only_first", "only_second", "same_attempts"),
    }


def _differences(table: ScoreTable, first: ScoreRow, second: ScoreRow) -> Iterator[tuple[str, Comparison]]:
    """Yield the comparisons by field that there are; the single rounds of chains are compared beside them."""
    chains, singles = zip(*map(table.grids, (first, second)), strict=True)
    compared: list[tuple[str, Metric, tuple[Grid, Grid]]] = [(metric, metric, chains) for metric in _METRICS]
    compared.append((SR_BY_TASK, "dataset_score", singles))
    for field, metric, grids in compared:
        if all(grid.tasks for grid in grids):
            try:
                yield field, compare(*grids, metric)
            except ValueError:  # There is no task that both have.
                continue


def _difference(field: str, found: Comparison) -> dict[str, Any]:
    shown = values_of(found, "first", "second", "difference", "p_value", "won", "lost", "tied", "tasks")
    return {"field": field, **shown, "interval": found.interval and ends(found.interval)}
