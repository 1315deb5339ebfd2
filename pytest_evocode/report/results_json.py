"""What ``evocode results --json`` prints: all that is known of each row, in full precision."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pytest_evocode.metrics.breakdown import Dimension, breakdown
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import mean_rewards, mt_at_k
from pytest_evocode.metrics.spending import spending
from pytest_evocode.report.identities import identity_json
from pytest_evocode.report.over_attempts import over_attempts_json
from pytest_evocode.report.scores import intervals_json
from pytest_evocode.report.times import time_json
from pytest_evocode.results.loading import StoredAttempt


def results_json(
    table: ScoreTable, *, by: Dimension | None, with_intervals: bool, with_times: bool = False
) -> dict[str, Any]:
    """Return the rows of a table as JSON values; with ``by``, each with its scores, and times, by group."""
    rows = []
    for row in table.rows:
        values = _row(table, row, by, with_intervals)
        rows.append(values | time_json(table, row, by) if with_times else values)
    return {"rows": rows}


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
        groups = breakdown(row.grid, by, table.facts, single_rounds=row.mode == "single-round")
        values["groups"] = {name: asdict(group) for name, group in groups.items()}
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
