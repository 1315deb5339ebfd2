"""What ``evocode results`` prints: scores by row or group, what several attempts say of them, times; also as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from math import sqrt
from typing import Any

from pytest_evocode.metrics.breakdown import Dimension, Group, Times, breakdown, times, times_by
from pytest_evocode.metrics.intervals import NO_INTERVAL
from pytest_evocode.metrics.over_attempts import Headline, OverAttempts
from pytest_evocode.metrics.score_table import ApartAttempt, ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import mean_rewards, mt_at_k
from pytest_evocode.metrics.spending import spending
from pytest_evocode.report.leaderboard import different_tasks
from pytest_evocode.report.notes import identity_json, price_lines
from pytest_evocode.report.score_columns import COLUMNS
from pytest_evocode.report.score_lines import (
    apart_lines,
    attempts_lines,
    cut_lines,
    flaky_lines,
    groups_table,
    interval_lines,
    intervals_json,
    notes_below,
    scores_table,
)
from pytest_evocode.report.tables import NOT_MEASURED, format_number, join_first, values_of
from pytest_evocode.report.views import Column, Row, Table, View, ends
from pytest_evocode.results.loading import StoredAttempt

_SHOWN = 8


def over_attempts_table(rows: Mapping[str, Mapping[Headline, OverAttempts]]) -> Table:
    """Return a table with a line for each score of each row that has several attempts."""
    values = [
        {
            "agent": name,
            "first": number == 0,
            "score": COLUMNS[metric].title,
            **over_attempts_json(found),
            "by_attempt": [f"{score:.1f}" for score in found.by_attempt.values()],
            **ends(found.interval),
        }
        for name, scores in rows.items()
        for number, (metric, found) in enumerate(scores.items())
    ]
    few = f"95 %: {NO_INTERVAL}"
    notes = [few] if any(each["interval"] is None for each in values) else []
    return Table("over-attempts", "Scores over attempts", _OVER_ATTEMPTS, values, titled=True, notes=notes)


def _root(field: str) -> Callable[[Row], str]:
    return lambda row: format_number(None if row[field] is None else sqrt(row[field]))


def _within(row: Row) -> str:
    share = row["within_share"]
    return format_number(None if share is None else 100 * share, " %", digits=0)


_OVER_ATTEMPTS = (
    Column("agent", lambda row: row["agent"] if row["first"] else "", fields=("agent",), left=True),
    Column.text("score", "score"),
    Column.number("mean", "mean", "The mean over the attempts that all tasks have."),
    Column.number("SE", "se", "The standard error of that mean."),
    Column(
        "each attempt",
        lambda row: join_first(row["by_attempt"], _SHOWN) or NOT_MEASURED,
        help="The score of each attempt over all tasks.",
        fields=("by_attempt",),
    ),
    Column(
        "SD within",
        _root("variance_within"),
        help="The standard deviation from attempt to attempt within tasks.",
        fields=("variance_within",),
    ),
    Column(
        "SD between",
        _root("variance_between"),
        help="The standard deviation between tasks.",
        fields=("variance_between",),
    ),
    Column("within", _within, help="The share of the variance that is within tasks.", fields=("within_share",)),
    Column.interval("95 %", "low", "high", "The 95 % interval of the score, over tasks and attempts.", nothing=""),
)


def over_attempts_json(found: OverAttempts) -> dict[str, Any]:
    """Return all numbers of a score over attempts as JSON values; variances are in points squared."""
    spread, parts, interval = found.spread, found.components, found.interval
    return {
        "by_attempt": found.by_attempt,
        "mean": spread.mean if spread else None,
        "sd": spread.sd if spread else None,
        "se": spread.se if spread else None,
        "rerun_error": found.rerun_error,
        "variance_within": parts.within if parts else None,
        "variance_between": parts.between if parts else None,
        "within_share": parts.within_share if parts else None,
        "interval": [interval.low, interval.high] if interval else None,
    }


_TIMES = {
    "agent": "The agent's turn.",
    "verifier": "The suite, with what was brought into its environment and read from it.",
    "waiting": "How long the suite was queued for a slot.",
    "overhead": "What a round cost beside its setup and the agent's turn.",
}


def time_view(table: ScoreTable, by: Dimension | None, *, with_intervals: bool = False) -> View:
    """Return a row for each agent, or with ``by`` for each of its groups: medians over rounds."""
    times_of = {row.name: _times_of(row) for row in table.rows}
    groups = {row.name: times_by(row.grid, by, table.facts) for row in table.rows} if by is not None else {}
    rows = [_time_row(name, "", each) for name, each in times_of.items()]
    rows = [_time_row(name, key, each) for name, found in groups.items() for key, each in found.items()] or rows
    columns = [_section(table), Column.text(by, "group")] if by is not None else [Column.text("agent", "agent")]
    for name, help_ in _TIMES.items():
        title = "queued" if name == "waiting" else name
        columns.append(Column.number(f"{title} (median s)", f"{name}_seconds", help_, digits=2))
    columns.append(Column.count("rounds", "rounds", "How many rounds were begun."))
    notes = []
    if silent := sum(each.silent for each in times_of.values()):
        of = sum(each.rounds for each in times_of.values())
        notes = [f"not recorded of {silent} of {of} rounds, and left out: queued and overhead"]
    title = f"Where the time went{f', by {by}' if by is not None else ''}"
    return View(
        [Table("time", title, columns, rows, by_section=by is not None, notes=notes)],
        json=lambda: results_json(table, by=by, with_intervals=with_intervals, with_times=True),
    )


def _time_row(agent: str, group: str, found: Times) -> Row:
    medians = {f"{name}_seconds": each.median for name, each in found.durations.items() if name in _TIMES}
    unknown = dict.fromkeys(f"{name}_seconds" for name in _TIMES)
    return {"agent": agent, "group": group, **unknown, **medians, "rounds": found.rounds}


def _section(table: ScoreTable) -> Column:
    """Return the column of agents, which people need not see where there is one."""
    alone = len(table.rows) == 1 and table.rows[0].name == table.rows[0].agent
    return Column("agent", lambda row: "" if alone else row["agent"], fields=("agent",), left=True)


def time_json(table: ScoreTable, row: ScoreRow, by: Dimension | None) -> dict[str, Any]:
    """Return where the time of a row's rounds went, in all and by group, ready for JSON."""
    values: dict[str, Any] = {"time": asdict(_times_of(row))}
    if by is not None:
        values["time_groups"] = {name: asdict(each) for name, each in times_by(row.grid, by, table.facts).items()}
    return values


def _times_of(row: ScoreRow) -> Times:
    return times(record for task in row.grid.tasks for record in task.records)


def scores_view(table: ScoreTable, *, with_intervals: bool) -> View:
    """Return a line for each row of the table; with intervals, those of the scores that have one."""
    if not table.rows:
        why = list(apart_lines(table.apart))
        return View(
            [replace(scores_table({}, {}, notes=why), most=0)],
            json=lambda: results_json(table, by=None, with_intervals=with_intervals),
            caveats=why,
        )
    scores = {row.name: table.scores(row) for row in table.rows}
    spent = {row.name: spending(row.records) for row in table.rows}
    found = {row.name: table.intervals_or_reasons(row) for row in table.rows} if with_intervals else None
    faults = {row.name: table.faults(row) for row in table.rows}
    grids = {row.name: row.grid for row in table.rows}
    records = [record for row in table.rows for record in row.records]
    controls = {row.name for row in table.rows if row.is_control}
    compared = {name: row for name, row in scores.items() if name not in controls}
    below = [*apart_lines(table.apart), *interval_lines(found), *attempts_lines(compared)]
    below += notes_below(scores, grids, records, faults, name_marked=False)
    below += [*different_tasks(table.rows), *cut_lines({row.name: row.attempts for row in table.rows})]
    below += price_lines(table.rows)
    waiting = {row.name for row in table.rows if row.waiting}
    partial = {row.name for row in table.rows if row.partial}
    tables = [scores_table(scores, spent, found, faults=faults, notes=below, open_rows=waiting, partial_rows=partial)]
    if several := {row.name: each for row in table.rows if (each := table.over_attempts(row))}:
        tables.append(over_attempts_table(several))
    flaky = list(flaky_lines([each for row in table.rows for each in row.flaky]))
    return View(
        tables,
        json=lambda: results_json(table, by=None, with_intervals=with_intervals),
        notes=["", *flaky] if flaky else (),
    )


def groups_view(table: ScoreTable, by: Dimension, *, with_intervals: bool) -> View:
    """Return the scores of each row by group."""
    groups = {row.name: _groups(table, row, by) for row in table.rows}
    return View(
        [groups_table(by, _section(table), groups)],
        json=lambda: results_json(table, by=by, with_intervals=with_intervals),
    )


def _groups(table: ScoreTable, row: ScoreRow, by: Dimension) -> Mapping[str, Group]:
    return breakdown(row.grid, by, table.facts, single_rounds=row.mode == "single-round")


def results_json(
    table: ScoreTable, *, by: Dimension | None, with_intervals: bool, with_times: bool = False
) -> dict[str, Any]:
    """Return the rows of a table as JSON values; with ``by``, each with its scores, and times, by group."""
    rows = []
    for row in table.rows:
        values = _row(table, row, by, with_intervals)
        rows.append(values | time_json(table, row, by) if with_times else values)
    return {"rows": rows, "unscored": list(map(apart_json, table.apart))}


def apart_json(apart: ApartAttempt) -> dict[str, Any]:
    """Return an attempt that no score counts as JSON values."""
    values = values_of(apart, "task", "agent", "attempt", "run", "state", "why")
    rounds = apart.stored.record.rounds if apart.stored is not None else ()
    return values | {
        "rounds": {each.round: each.outcome for each in rounds},
        "usage": apart.usage.model_dump() if apart.usage is not None else None,
        "directory": str(apart.stored.path) if apart.stored is not None else None,
    }


def _row(table: ScoreTable, row: ScoreRow, by: Dimension | None, with_intervals: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": row.name,
        **identity_json(row),
        "mode": row.mode,
        "from_round": row.from_round,
        "scores": asdict(table.scores(row)),
        "without_faults": asdict(found) if (found := table.faults(row)) else None,
        # MT@k as EvoCode-Bench's compute_metrics.py has it, which lets a chain go on behind a failed round.
        "best_of_attempts": mt_at_k(row.grid, fail_stop=False),
        "rewards": mean_rewards(row.grid, row.strategies),
        "spending": asdict(spending(row.records)),
        "over_attempts": {name: over_attempts_json(each) for name, each in table.over_attempts(row).items()} or None,
        "flaky": [asdict(each) for each in row.flaky],
        "partial": [_part(each, counts=True) for each in row.partial]
        + [_part(each, counts=False) for each in row.beside],
        "waiting": [_part(each, counts=True) for each in row.waiting],
        "missing": [
            {"task": task, "attempt": number, "rounds": len(row.declared.get(task, ())) or None}
            for task, number in row.missing
        ],
    }
    if with_intervals:
        values |= intervals_json(table.intervals_or_reasons(row))
    if by is not None:
        values["by"] = by
        values["groups"] = {name: asdict(group) for name, group in _groups(table, row, by).items()}
    return values


def _part(attempt: StoredAttempt, *, counts: bool) -> dict[str, Any]:
    record = attempt.record
    return {
        "task": record.task,
        "attempt": record.attempt,
        "run": attempt.run,
        "rounds": attempt.round_names,
        "counts": counts,
    }
