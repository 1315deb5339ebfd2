"""A report's attempts in short, and its tasks: ``AttemptSummary`` and ``TaskSummary`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.grouping import known_facts, known_rounds
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.spending import Amount, spending
from pytest_evocode.names import natural_key
from pytest_evocode.report.html.ids import attempt_id, row_id, task_id
from pytest_evocode.results.loading import Results, StoredAttempt
from pytest_evocode.results.task_facts import TaskFacts

CellsOf = Callable[[StoredAttempt], str]


def attempts_of(
    table: ScoreTable,
    results: Results,
    roots: Sequence[Path],
    cells_of: CellsOf,
    *,
    run: str | None,
    tasks: Collection[str] | None,
) -> list[dict[str, Any]]:
    """Return all attempts that were loaded, whether they count or not, by task, agent and number.

    Args:
        table: The table, whose names and numbers the attempts that count have.
        results: What was loaded.
        roots: The directories that were loaded.
        cells_of: Returns a character for each declared round of an attempt.
        run: The only run that the table counts; None counts all.
        tasks: The only tasks that the table counts; None counts all.
    """
    counting = {attempt.path: (row, attempt) for row in table.rows for attempt in row.attempts}
    beside = {attempt.path: row for row in table.rows for attempt in row.beside}
    found = []
    for stored in results.attempts:
        row, attempt = counting.get(stored.path, (None, stored))
        why = "" if row else _why_left_out(stored, beside.get(stored.path), run, tasks)
        # A table counts partial attempts in full where a whole one was to be made; here they are as they were made.
        attempt = replace(attempt, selected=stored.selected, finished=stored.finished)
        found.append(_attempt(attempt, row, attempt_id(stored, roots), cells_of(attempt), why))
    return sorted(found, key=lambda each: (each["task"], each["agent"], each["attempt"], each["run"], each["id"]))


def _attempt(attempt: StoredAttempt, row: ScoreRow | None, id_: str, cells: str, left_out: str) -> dict[str, Any]:
    record = attempt.record
    rounds = {each.index: each for each in record.rounds}
    indices = range(1, len(record.declared_rounds) + 1)
    return {
        "id": id_,
        "row": row_id(row) if row else "",
        "task": record.task,
        "agent": record.agent,
        "attempt": record.attempt,
        "run": attempt.run,
        "mode": record.mode,
        "finished": attempt.finished,
        "cells": cells,
        "cases": [list(rounds[index].case_counts) if index in rounds else [0, 0] for index in indices],
        "trusts": [each.index for each in record.rounds if each.verdict and each.verdict.trusts_agent],
        **_taken(attempt),
        "left_out": left_out,
    }


def _taken(attempt: StoredAttempt) -> dict[str, float | None]:
    """Return what an attempt took; a sum that lacks rounds would make it look cheaper than it is, and is unknown."""
    spent = spending(attempt.record.rounds)
    prompts, replies = map(_complete, (spent.prompt_tokens, spent.completion_tokens))
    seconds = [amount for amount in (spent.agent_seconds, spent.verifier_seconds) if amount is not None]
    return {
        "cost_usd": _complete(spent.cost_usd),
        "tokens": None if prompts is None or replies is None else prompts + replies,
        "seconds": sum(amount.value for amount in seconds) if seconds else None,
    }


def _complete(amount: Amount | None) -> float | None:
    return amount.value if amount is not None and amount.complete else None


def _why_left_out(
    attempt: StoredAttempt, beside: ScoreRow | None, run: str | None, tasks: Collection[str] | None
) -> str:
    if beside is not None:
        return "only a part of its rounds was selected, and an attempt of its number with all rounds counts"
    if run is not None and attempt.run != run:
        return f"only the run {run} counts"
    if tasks is not None and attempt.record.task not in tasks:
        return "its task is not among those that count"
    return "a newer attempt of its number counts; --all-runs counts all"


def task_names(table: ScoreTable, results: Results) -> list[str]:
    """Return the names of the tasks that a report has: of attempts, of runs and of the table."""
    selected = {name for run in results.runs for name in run.record.selected}
    return sorted({*(each.record.task for each in results.attempts), *selected, *table.facts}, key=natural_key)


def tasks_of(table: ScoreTable, results: Results) -> list[dict[str, Any]]:
    """Return the tasks of a report, by name."""
    facts = {**known_facts(results.attempts, (stored.record for stored in results.runs)), **table.facts}
    rounds = known_rounds(results.attempts, facts)
    return [_task(name, facts.get(name), rounds.get(name, ())) for name in task_names(table, results)]


def _task(name: str, facts: TaskFacts | None, rounds: Sequence[str]) -> dict[str, Any]:
    names = [each or f"round {index}" for index, each in enumerate((facts.rounds if facts else ()) or rounds, 1)]
    texts: Mapping[str, str] = {
        field: getattr(facts, field, "") for field in ("activity", "interaction", "category", "difficulty")
    }
    return {
        "id": task_id(name),
        "name": name,
        "rounds": names,
        "change_types": [list(facts.changes(index)) if facts else [] for index in range(1, len(names) + 1)],
        **texts,
    }
