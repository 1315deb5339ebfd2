"""Results as tables for other programs, CSV or Parquet, with a row for each round or for each case."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.score_table import ApartAttempt, ScoreRow
from pytest_evocode.report.tables import values_of
from pytest_evocode.results.identity import Conditions, conditions_hash, conditions_of
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.phases import PHASES
from pytest_evocode.results.records import RoundRecord


def _phase_column(name: str) -> str:
    return name if name.endswith("_seconds") else f"{name}_seconds"


#: Columns and their types, in order; every one may be empty.
#: What a text begins with that spreadsheets take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

ROUND_COLUMNS: dict[str, type] = {
    "agent": str, "mode": str, "from_round": str, "task": str, "attempt": int, "run": str, "finished": bool,
    "partial": bool, "waiting": bool,
    "round": str, "index": int, "declared_rounds": int, "outcome": str, "passed": bool, "fault": str,
    "timed_out": str, "stopped": str, "cause": str, "reward": float, "cases_passed": int, "cases": int,
    "pinned_passed": int, "pinned": int, "tool_calls": int, "prompt_tokens": int, "cached_tokens": int,
    "completion_tokens": int, "requests": int, "cost_usd": float, "agent_seconds": float, "verifier_seconds": float,
    "activity": str, "interaction": str, "category": str, "difficulty": str, "change_types": str,
    "environment": str, "started": str, "directory": str, "label": str, "identity": str, "task_hash": str,
    "strict": bool, "verify": str, "overhead_seconds": float, "unscored": str,
    "conditions": str, "version": str, "image": str, "name": str, "counts": bool,
    **{_phase_column(name): float for name in PHASES},
}  # fmt: skip
CASE_COLUMNS: dict[str, type] = {
    "agent": str, "mode": str, "from_round": str, "task": str, "attempt": int, "run": str, "round": str, "index": int,
    "case": str, "status": str, "failure": str, "origin": str, "requirement": str, "kind": str, "intent": str,
    "scenario": str, "input": str, "expected": str, "actual": str, "reason": str, "label": str, "identity": str,
    "name": str,
}  # fmt: skip


def round_rows(rows: Iterable[ScoreRow]) -> Iterator[dict[str, Any]]:
    """Yield a row for each round, by :data:`ROUND_COLUMNS`; None is unknown.

    Rounds that count without a record, because nothing was left of them, follow those that have one.
    """
    for row in rows:
        counting = {id(record) for record in row.records}
        for attempt in row.attempts:
            for record in attempt.record.rounds:
                # Of a single round that was made anew only the newest counts.
                yield _round_row(row, attempt, record) | {"counts": id(record) in counting}
        for record in _without_record(row):
            of_number = (each for each in row.attempts if _is_of(record, each))
            yield _round_row(row, next(of_number, None), record) | {"counts": True}


def apart_rows(apart: Iterable[ApartAttempt]) -> Iterator[dict[str, Any]]:
    """Yield a row for each round of attempts that no score counts, which ``unscored`` says why; none has passed.

    None ``counts``, so that sums over those that do are those of results. What turns without a record used is in a row
    without a round.
    """
    for each in apart:
        if (stored := each.stored) is None:
            continue
        record = stored.record
        known = values_of(each, "task", "agent", "attempt", "run")
        known |= {"counts": False, "mode": record.mode, "from_round": record.start, "finished": stored.finished}
        known |= {
            **_about_conditions(conditions_of(record), stored),
            "unscored": each.state,
            "directory": str(stored.path),
            "environment": record.environment,
        }
        for round_ in record.rounds:
            values = {**round_values(round_), "index": round_.index, "declared_rounds": round_.declared_rounds, **known}
            yield {name: values.get(name) for name in ROUND_COLUMNS} | {"cause": round_.cause or None, "passed": None}
        if stored.unrecorded is not None:
            values = {**dict(stored.unrecorded), **known}
            yield {name: values.get(name) for name in ROUND_COLUMNS} | {"cause": each.why}


def _is_of(record: RoundRecord, attempt: StoredAttempt) -> bool:
    return (attempt.record.task, attempt.record.attempt) == (record.task, record.attempt)


def _without_record(row: ScoreRow) -> Iterator[RoundRecord]:
    recorded = {(each.task, each.attempt, each.index) for attempt in row.attempts for each in attempt.record.rounds}
    for task in row.grid.tasks:
        names = row.declared.get(task.task, ())
        for number in task.attempts:
            for index in task.own(number):
                if (task.task, number, index) not in recorded:
                    yield RoundRecord(
                        task=task.task,
                        agent=row.agent,
                        attempt=number,
                        round=names[index - 1] if index <= len(names) else "",
                        index=index,
                        declared_rounds=task.declared,
                        outcome="not reached",
                        cause="nothing was recorded of this round",
                    )


def case_rows(rows: Iterable[ScoreRow]) -> Iterator[dict[str, Any]]:
    """Yield a row for each case of each round, by :data:`CASE_COLUMNS`."""
    for row in rows:
        for attempt in row.attempts:
            for record in attempt.record.rounds:
                for case in record.verdict.cases if record.verdict else ():
                    values = {**_which(row, attempt, record), "case": case.id, **case.model_dump()}
                    yield {name: values[name] for name in CASE_COLUMNS}


def _which(row: ScoreRow, attempt: StoredAttempt | None, record: RoundRecord) -> dict[str, Any]:
    return {
        **values_of(record, "agent", "task", "attempt", "round", "index"),
        "mode": row.mode,
        "from_round": attempt.record.start if attempt else row.from_round,
        "run": attempt.run if attempt else None,
        "label": row.label or row.agent,
        "name": row.name,
        "identity": row.subject.agent.hash,
    }


def _round_row(row: ScoreRow, attempt: StoredAttempt | None, record: RoundRecord) -> dict[str, Any]:
    facts, conditions = row.facts.get(record.task), row.subject.conditions
    pinned_passed, pinned = record.verdict.pinned if record.verdict and record.verdict.pinned else (None, None)
    phases = record.phases.known if record.phases is not None else {}
    values = {
        **{_phase_column(name): seconds for name, seconds in phases.items()},
        **round_values(record),
        **values_of(record, "overhead_seconds", "declared_rounds", "passed"),
        **_which(row, attempt, record),
        "finished": attempt.finished if attempt else False,
        "waiting": attempt.waiting if attempt else False,
        "partial": attempt.is_part if attempt else (record.task, record.attempt) in row.missing_parts,
        "cause": record.cause or None,
        "pinned_passed": pinned_passed,
        "pinned": pinned,
        "environment": conditions.environment or (attempt.record.environment if attempt else None),
        "strict": conditions.strict,
        "verify": conditions.verify or (None if conditions.strict is None else "task"),
        **_about_conditions(conditions, attempt),
        "task_hash": (attempt.record.task_hash if attempt else row.contents.get(record.task)) or None,
        "started": (attempt.record.started if attempt else None) or None,
        "directory": str(attempt.path) if attempt else None,
    }
    if facts is not None:
        values |= values_of(facts, "activity", "interaction", "category", "difficulty")
        values["change_types"] = " ".join(facts.changes(record.index))
    return {name: values.get(name) for name in ROUND_COLUMNS}


def _about_conditions(conditions: Conditions, attempt: StoredAttempt | None) -> dict[str, str | None]:
    """Return the hash of conditions, and what of an attempt's keeps attempts not apart."""
    told = (attempt.record.conditions if attempt is not None else None) or {}
    return {"conditions": conditions_hash(conditions), **{name: told.get(name) for name in ("version", "image")}}


def round_values(record: RoundRecord) -> dict[str, Any]:
    """Return a round as names and plain values, for one cell each; None is unknown."""
    verdict, usage = record.verdict, record.usage
    passed, cases = record.case_counts if verdict else (None, None)
    failing = [case.id for case in verdict.cases if case.failing] if verdict else []
    return {
        **values_of(record, "task", "agent", "attempt", "round", "outcome", "fault", "timed_out"),
        "stopped": record.stopped or None,
        "reward": verdict.reward if verdict else None,
        "cases_passed": passed,
        "cases": cases,
        "failed_cases": ", ".join(failing) or None,
        **(dict(usage) if usage else {}),
        **values_of(record, "tool_calls", "agent_seconds", "verifier_seconds"),
    }


def csv_cell(value: Any) -> Any:
    """Return a value as a cell of a table: no text that a spreadsheet takes for a formula, and truth as a word.

    >>> csv_cell("=1+1"), csv_cell("gpt"), csv_cell(-1.5), csv_cell(True)
    ("'=1+1", 'gpt', -1.5, 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def write_csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str], file: IO[str], *, exact: bool = False) -> None:
    """Write a header and these columns of the rows; what is unknown is empty, and lists have spaces.

    With ``exact``, a text that spreadsheets take for a formula is as it is.
    """
    writer = csv.DictWriter(file, list(columns), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        cells = {name: " ".join(each) if isinstance(each, list | tuple) else each for name, each in row.items()}
        writer.writerow(cells if exact else {name: csv_cell(value) for name, value in cells.items()})


def write_parquet(rows: Iterable[dict[str, Any]], columns: dict[str, type], path: Path) -> None:
    """Write a Parquet file; what is unknown is null. Raises UsageError without pyarrow, and OSError."""
    pyarrow = require_pyarrow()
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), path)


def require_pyarrow() -> Any:
    """Return pyarrow with what reads and writes Parquet; raises UsageError where it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'pytest-evocode[parquet]'") from None
    return pyarrow
