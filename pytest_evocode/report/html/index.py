"""The index of a report: rows of scores, tasks, attempts and runs; its shape is ``Index`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.grouping import known_facts, known_rounds, session_of, session_of_run
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.spending import Amount, spending
from pytest_evocode.names import natural_key
from pytest_evocode.report.html.cells import CaseFailures, FoundFailures, cells_of
from pytest_evocode.report.html.ids import attempt_id, row_id, task_id
from pytest_evocode.report.html.processes import outcome_values, process_values, read_processes
from pytest_evocode.report.html.rows import SR_BY_TASK, pareto_of, ranked, rows_of
from pytest_evocode.report.html.runs import runs_of
from pytest_evocode.report.leaderboard import leaderboard
from pytest_evocode.report.notes import identity_notes, missing_notes, price_lines, superseded_notes
from pytest_evocode.report.pareto import PER_ATTEMPT
from pytest_evocode.report.score_columns import COLUMNS, REPORT, REPORT_MAIN, REPORT_MORE
from pytest_evocode.report.score_lines import TRUSTS, apart_lines
from pytest_evocode.report.tables import join_first, values_of
from pytest_evocode.results.directory import now
from pytest_evocode.results.loading import Results, StoredAttempt
from pytest_evocode.results.merging import missing_shards
from pytest_evocode.results.records import TaskFacts

FORMAT = 1


def index_of(
    table: ScoreTable,
    results: Results,
    *,
    title: str,
    roots: Sequence[Path],
    written: str = "",
    under_way: bool = False,
    cells: Mapping[str, str] | None = None,
    case_failures: Mapping[str, CaseFailures] | None = None,
    only: Collection[str] | None = None,
    tasks: Collection[str] | None = None,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the index of a report as JSON values.

    Args:
        table: The table of scores that the report shows.
        results: What the table was made from; with the cases of rounds, or without them.
        title: The report's title.
        roots: The results directories, as they were given.
        written: When the report is written, ISO 8601; empty is now.
        under_way: Whether a session still writes results.
        cells: A character for each declared round of attempts, by the attempts' ids. It has to be given where records
            were loaded without cases, because the kind of a failed round comes from them; attempts that lack there
            have what their records tell.
        case_failures: The kinds of failing cases by the attempts' ids, likewise; see :func:`case_failures_of`.
        only: The names of the only runs that the table counts; None counts all.
        tasks: The names of the only tasks that the table counts; None counts all.
        problems: What else was left out and why, such as a task that is gone, a line for each.
    """
    known = cells or {}

    def cells_by_id(attempt: StoredAttempt) -> str:
        found = known.get(attempt_id(attempt, roots))
        return found if found is not None else cells_of(attempt, under_way=under_way and not attempt.finished)

    processes, unreadable = read_processes(table)
    failures = FoundFailures(roots, known, case_failures) if case_failures is not None else None
    rankings = ranked(table)
    table = _without_open_attempts(table, results) if under_way else table
    return {
        "format": FORMAT,
        "title": title,
        "written": written or now(),
        "version": version("pytest-evocode"),
        "under_way": under_way,
        "directories": [str(root) for root in roots],
        "rows": rows_of(table, rankings, {id_: process_values(each) for id_, each in processes.items()}, failures),
        "tasks": tasks_of(table, results),
        "attempts": attempts_of(table, results, roots, cells_by_id, only=only, tasks=tasks),
        "runs": runs_of(results, roots),
        "pareto": pareto_of(rankings),
        "notes": list(_notes(table)),
        "problems": list(dict.fromkeys([*results.problems, *unreadable, *_left_out(table, results), *problems])),
        "columns": {"main": [*REPORT_MAIN], "more": [*REPORT_MORE]},
        "titles": titles(),
        "process_outcome": outcome_values(processes, table.rows),
    }


def _without_open_attempts(table: ScoreTable, results: Results) -> ScoreTable:
    """Return the table without telling of attempts that a session is still at."""
    open_runs = {stored.record.run for stored in results.runs if stored.record.finished is None}
    return replace(table, apart=tuple(each for each in table.apart if each.run not in open_runs))


def _notes(table: ScoreTable) -> Iterator[str]:
    """Yield what is to be known before rows are compared; what is of one row is in its own notes."""
    if table.rows:
        yield from leaderboard(table, with_intervals=True).notes
        yield from identity_notes(table)
        yield from price_lines(table.rows)
    yield from apart_lines(table.apart)
    yield from superseded_notes(table)


def _left_out(table: ScoreTable, results: Results) -> Iterator[str]:
    """Yield which attempts left nothing, and which shards are not here."""
    for row in table.rows:
        yield from (f"{row.name}: {note}" for note in missing_notes(row))
    if any(row.missing for row in table.rows):
        for number, of in missing_shards(results.runs):
            yield f"shard {number} of {of} is not here, and its attempts count as not passed; name it too"


CellsOf = Callable[[StoredAttempt], str]


def attempts_of(
    table: ScoreTable,
    results: Results,
    roots: Sequence[Path],
    cells_of: CellsOf,
    *,
    only: Collection[str] | None,
    tasks: Collection[str] | None,
) -> list[dict[str, Any]]:
    """Return all attempts that were loaded, whether they count or not, by task, agent and number.

    Args:
        table: The table, whose names and numbers the attempts that count have.
        results: What was loaded.
        roots: The directories that were loaded.
        cells_of: Returns a character for each declared round of an attempt.
        only: The only runs that the table counts; None counts all.
        tasks: The only tasks that the table counts; None counts all.
    """
    counting = {attempt.path: (row, attempt) for row in table.rows for attempt in row.attempts}
    beside = {attempt.path: row for row in table.rows for attempt in row.beside}
    excluded = {session_of_run(each) for each in results.runs if each.record.excluded}
    apart = {each.stored.path: f"{each.state}: {each.why}" for each in table.apart if each.stored is not None}
    found = []
    for stored in results.attempts:
        row, attempt = counting.get(stored.path, (None, stored))
        why = "its run is excluded" if session_of(stored) in excluded else apart.get(stored.path, "")
        why = why if row or why else _why_left_out(stored, beside.get(stored.path), only, tasks)
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
        **values_of(record, "task", "agent", "attempt", "mode"),
        **values_of(attempt, "run", "finished"),
        "cells": cells,
        "cases": [list(rounds[index].case_counts) if index in rounds else [0, 0] for index in indices],
        "trusts": [each.index for each in record.rounds if each.verdict and each.verdict.trusts_agent],
        **_taken(attempt),
        "left_out": left_out,
    }


def _taken(attempt: StoredAttempt) -> dict[str, float | None]:
    """Return what an attempt took; a sum that lacks rounds would make it look cheaper than it is, and is unknown."""
    spent = spending(attempt.record.rounds)
    if attempt.unscored is not None and attempt.usage is not None:  # In an interrupted turn more may have been used.
        return {"cost_usd": attempt.usage.cost_usd, "tokens": attempt.usage.tokens, "seconds": None}
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
    attempt: StoredAttempt, beside: ScoreRow | None, only: Collection[str] | None, tasks: Collection[str] | None
) -> str:
    if attempt.unscored is not None:
        return "it has not ended yet"
    if beside is not None:
        return "only a part of its rounds was selected, and an attempt of its number with all rounds counts"
    if only is not None and attempt.run not in only:
        return f"only the run{'s' * (len(only) > 1)} {join_first(sorted(only))} count{'s' * (len(only) == 1)}"
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


#: Title, unit and sentence of the numbers that are no columns of scores.
_OTHERS = {
    "attempts_min": ("k, fewest", "attempts", "The fewest attempts at any round."),
    "attempts_max": ("k", "attempts", "The most attempts at any task: the k of MT@k."),
    "trusting": ("Trusting", "rounds", f"Rounds whose verdict trusts {TRUSTS}."),
    "cost_usd": (
        PER_ATTEMPT["cost"], "USD",
        "What an attempt at a task costs, the mean over tasks; unknown where a round's cost is.",
    ),
    "tokens": (
        PER_ATTEMPT["tokens"], "tokens", "Prompt and completion tokens of an attempt at a task, the mean over tasks.",
    ),
    "output_tokens": (
        "Output tokens per attempt", "tokens",
        "Completion tokens of an attempt at a task, the mean over tasks, scaled to all its rounds.",
    ),
    "agent_seconds": (
        PER_ATTEMPT["time"], "s", "Wall-clock time of the agent's turns in an attempt at a task, the mean over tasks.",
    ),
    SR_BY_TASK: ("SR, by task", "%", "The share of a task's single rounds that passed, the mean over tasks."),
}  # fmt: skip


def titles() -> dict[str, dict[str, str]]:
    """Return title, sentence and unit of each number, by its field."""
    scores = ((field, COLUMNS[field]) for field in REPORT)
    return {
        **{field: values_of(column, "title", "help", "unit") for field, column in scores},
        **{field: {"title": title, "help": help_, "unit": unit} for field, (title, unit, help_) in _OTHERS.items()},
    }
