"""What ``evocode results`` prints: scores by row or group, what several attempts say of them, times; also as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from math import sqrt
from typing import Any

from pytest_evocode.metrics.breakdown import Dimension, Group, Times, breakdown, times, times_by
from pytest_evocode.metrics.intervals import NO_INTERVAL
from pytest_evocode.metrics.over_attempts import Headline, OverAttempts
from pytest_evocode.metrics.score_table import ApartAttempt, ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import mean_rewards, mt_at_k
from pytest_evocode.metrics.spending import spending
from pytest_evocode.report.notes import identity_json
from pytest_evocode.report.score_columns import COLUMNS, format_interval
from pytest_evocode.report.score_lines import (
    apart_lines,
    attempts_lines,
    flaky_lines,
    group_lines,
    interval_lines,
    intervals_json,
    notes_below,
    score_rows,
)
from pytest_evocode.report.tables import aligned, format_number, join_first
from pytest_evocode.results.loading import StoredAttempt

_HEAD = ("over attempts", "score", "mean", "SE", "each attempt", "SD within", "SD between", "within", "95 %")
_SHOWN = 8


def over_attempts_lines(rows: Mapping[str, Mapping[Headline, OverAttempts]]) -> Iterator[str]:
    """Yield a table with a line for each score of each row that has several attempts, and what its columns are."""
    cells = [
        _attempts_cells(name if number == 0 else "", COLUMNS[metric].title, found)
        for name, scores in rows.items()
        for number, (metric, found) in enumerate(scores.items())
    ]
    yield from aligned([_HEAD, *cells], left=(0, 1))
    few = any(found.interval is None for scores in rows.values() for found in scores.values())
    yield "mean, SE: over the attempts that all tasks have, and its standard error; SD: from attempt to attempt within"
    yield "tasks, and between tasks; within: its share of the variance; 95 %: over tasks and attempts" + (
        f", {NO_INTERVAL}" if few else ""
    )


def _attempts_cells(name: str, title: str, found: OverAttempts) -> tuple[str, ...]:
    spread, parts = found.spread, found.components
    share = parts.within_share if parts else None
    return (
        name,
        title,
        format_number(spread.mean if spread else None),
        format_number(spread.se if spread else None),
        join_first([f"{score:.1f}" for score in found.by_attempt.values()], _SHOWN) or "n/a",
        format_number(sqrt(parts.within) if parts else None),
        format_number(sqrt(parts.between) if parts else None),
        format_number(None if share is None else 100 * share, " %", digits=0),
        format_interval(found.interval),
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


_COLUMNS = ("agent", "verifier", "waiting", "overhead")


def time_lines(table: ScoreTable, by: Dimension | None) -> Iterator[str]:
    """Yield a row for each agent, or with ``by`` a table for each with a row for each group; medians over rounds."""
    rows = {row.name: _times_of(row) for row in table.rows}
    if by is None:
        yield from _time_rows("agent", rows)
    else:
        yield from _row_by_row(table, lambda row: _time_rows(by, times_by(row.grid, by, table.facts)))
    if silent := sum(each.silent for each in rows.values()):
        of = sum(each.rounds for each in rows.values())
        yield f"not recorded of {silent} of {of} rounds, and left out: waiting and overhead"


def _time_rows(title: str, found: Mapping[str, Times]) -> Iterator[str]:
    rows = [(title, *(f"{name} (median s)" for name in _COLUMNS), "rounds")]
    rows += [(name, *_time_cells(each), str(each.rounds)) for name, each in found.items()]
    yield from aligned(rows)


def _time_cells(found: Times) -> Iterator[str]:
    for name in _COLUMNS:
        duration = found.durations.get(name)
        yield format_number(duration.median if duration is not None else None, digits=2)


def time_json(table: ScoreTable, row: ScoreRow, by: Dimension | None) -> dict[str, Any]:
    """Return where the time of a row's rounds went, in all and by group, ready for JSON."""
    values: dict[str, Any] = {"time": asdict(_times_of(row))}
    if by is not None:
        values["time_groups"] = {name: asdict(each) for name, each in times_by(row.grid, by, table.facts).items()}
    return values


def _times_of(row: ScoreRow) -> Times:
    return times(record for task in row.grid.tasks for record in task.records())


def results_lines(table: ScoreTable, *, with_intervals: bool) -> Iterator[str]:
    """Yield a line for each row of the table; with intervals, those of the Dataset Score and SR."""
    if not table.rows:
        yield from apart_lines(table.apart)
        return
    scores = {row.name: table.scores(row) for row in table.rows}
    spent = {row.name: spending(row.records) for row in table.rows}
    found = {row.name: table.intervals_or_reasons(row) for row in table.rows} if with_intervals else None
    faults = {row.name: table.faults(row) for row in table.rows}
    yield from aligned(score_rows(scores, spent, found, faults=faults))
    yield from apart_lines(table.apart)
    yield from interval_lines(found)
    yield from attempts_lines(scores)
    grids = {row.name: row.grid for row in table.rows}
    records = [record for row in table.rows for record in row.records]
    yield from notes_below(scores, grids, records, faults, name_marked=False)
    if several := {row.name: each for row in table.rows if (each := table.over_attempts(row))}:
        yield ""
        yield from over_attempts_lines(several)
    if flaky := [each for row in table.rows for each in row.flaky]:
        yield ""
        yield from flaky_lines(flaky)


def breakdown_lines(table: ScoreTable, by: Dimension) -> Iterator[str]:
    """Yield a table of scores by group for each row, with an empty line between them."""
    return _row_by_row(table, lambda row: group_lines(by, _groups(table, row, by)))


def _groups(table: ScoreTable, row: ScoreRow, by: Dimension) -> Mapping[str, Group]:
    return breakdown(row.grid, by, table.facts, single_rounds=row.mode == "single-round")


def _row_by_row(table: ScoreTable, lines: Callable[[ScoreRow], Iterator[str]]) -> Iterator[str]:
    for number, row in enumerate(table.rows):
        if number:
            yield ""
        if len(table.rows) > 1 or row.name != row.agent:
            yield f"{row.name}:"
        yield from lines(row)


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
    values: dict[str, Any] = {
        name: getattr(apart, name) for name in ("task", "agent", "attempt", "run", "state", "why")
    }
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
        "partial": [_part(each, counts=True) for each in row.attempts if each.partial]
        + [_part(each, counts=False) for each in row.beside],
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
