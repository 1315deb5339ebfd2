"""What ``evocode paper`` writes: tables, the data of figures, how the numbers were made, and what the tasks are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pytest_evocode.metrics.analyses import analyse
from pytest_evocode.metrics.intervals import FEWEST_TASKS
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.report.analyses import analyses_view
from pytest_evocode.report.datasets import DatasetFacts, croissant, dataset_files, datasheet_lines
from pytest_evocode.report.failures import failures_view
from pytest_evocode.report.hazard import hazard_view
from pytest_evocode.report.leaderboard import leaderboard_view
from pytest_evocode.report.neighbours import FROM_RECORDS, metrics_view, neighbour_metrics
from pytest_evocode.report.notes import price_lines, price_tables, table_notes
from pytest_evocode.report.pareto import pareto_view
from pytest_evocode.report.results import groups_view, scores_view, time_view
from pytest_evocode.report.score_columns import format_range
from pytest_evocode.report.score_lines import apart_lines
from pytest_evocode.report.tables import counted, markdown_table, plain
from pytest_evocode.report.views import View, csv_text, latex_text, markdown_text
from pytest_evocode.results.loading import Results, StoredAttempt, StoredRun
from pytest_evocode.tasks import Task

NOT_RECORDED = "not recorded"
_MOST = 20
_FIGURES = {
    "scores-by-round": "score-by-round",
    "survival": "survival",
    "hazard": "hazard",
    "hazard-curves": "kept-and-repaired",
    "pareto": "pareto",
}
"""The data of figures, by the tables that have it."""


def paper_views(table: ScoreTable) -> Iterator[View]:
    """Yield every view of results but that of the model, which takes an extra and up to minutes."""
    yield scores_view(table, with_intervals=True)
    yield leaderboard_view(table, with_intervals=True)
    for by in ("task", "round", "change", "category"):
        yield groups_view(table, by, with_intervals=False)
    yield time_view(table, None)
    yield failures_view(table.rows, top=_MOST)
    yield analyses_view(analyse(table))
    yield hazard_view(table, table.rows)
    metrics = {row.name: neighbour_metrics(table, row) for row in table.rows}
    yield from (metrics_view(metrics, FROM_RECORDS, by_round=by_round) for by_round in (False, True))
    yield pareto_view(table)


def paper_files(
    results: Results,
    table: ScoreTable,
    tasks: Sequence[Task],
    dataset: DatasetFacts,
    *,
    shown: Callable[[str], str],
    made: str,
    version: str,
) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of all files.

    Args:
        results: All that was loaded.
        table: What counts of it.
        tasks: Those of the results that are to be had here.
        dataset: What tasks do not say of themselves.
        shown: Returns a text without the secrets and the paths of this machine.
        made: The date.
        version: Of pytest-evocode.
    """
    for each in (each for view in paper_views(table) for each in view.tables):
        yield f"tables/{each.name}.tex", f"{latex_text(each)}\n"
        yield f"tables/{each.name}.md", f"{markdown_text(each)}\n"
        yield f"tables/{each.name}.csv", csv_text(each)
        if each.name in _FIGURES:
            yield f"figures/{_FIGURES[each.name]}.csv", csv_text(each)
    blocks = reproducibility_blocks(results, table, tasks, shown=shown, made=made, version=version)
    yield "reproducibility.md", "\n\n".join(blocks) + "\n"
    if tasks:
        files = {f"dataset/{name}": text for name, text in dataset_files(tasks).items()}
        yield from files.items()
        metadata = croissant(tasks, dataset, files, version)
        yield "croissant.json", json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
        yield "datasheet.md", "\n\n".join(datasheet_lines(tasks, dataset, version)) + "\n"


def reproducibility_blocks(
    results: Results,
    table: ScoreTable,
    tasks: Sequence[Task],
    *,
    shown: Callable[[str], str],
    made: str,
    version: str,
) -> Iterator[str]:
    """Yield, block by block, how the numbers were made, as the records tell it; what they do not say is said so."""
    yield "# How these numbers were made"
    yield (
        f"Written on {made} by pytest-evocode {plain(version)}, from the records of "
        f"{counted(len(results.runs), 'run')} and {counted(len(results.attempts), 'attempt')}; what is "
        f"*{NOT_RECORDED}* is not in them."
    )
    runs = [each for each in results.runs if each.record.run in {attempt.run for attempt in _counting(table)}]
    yield "## Agents"
    yield markdown_table([_AGENT_HEAD, *(_agent_row(table, row) for row in table.rows)])
    yield (
        "k: attempts at each task. Whether a model was asked with a seed or a temperature is in its settings, if "
        "anywhere; what its provider did with them is not known."
    )
    yield from _settings(table.rows)
    for row in table.rows:
        if given := [f"{name} (SHA-256 {digest})" for name, digest in price_tables(row) if name]:
            yield f"Prices that cost of {plain(row.name)} is by: {plain('; '.join(given))}"
    yield "## Conditions"
    yield markdown_table(
        [("agent", "environment", "strict", "verify", "other settings"), *map(_conditions_row, table.rows)]
    )
    yield "## Runs"
    yield markdown_table([_RUN_HEAD, *(_run_row(each, shown) for each in runs)]) if runs else f"*{NOT_RECORDED}*"
    if without := sorted({attempt.run for attempt in _counting(table)} - {each.record.run for each in runs}):
        yield f"Of these runs no record is left, nor of their versions and arguments: {plain(', '.join(without))}"
    yield "## Versions"
    yield _versions(runs)
    yield "## Tasks"
    yield markdown_table([("task", "rounds", "contents (SHA-256)"), *_task_rows(table)])
    if absent := sorted(_names(table) - {task.name for task in tasks}):
        yield f"Not found here, and so not in the data set's description: {plain(', '.join(absent))}"
    yield "## Numbers"
    yield (
        f"Intervals are 95 %, over tasks, from {counted(FEWEST_TASKS, 'task')} on, by the method that "
        "`evocode results --intervals --json` names; resamples and drawn permutations have the fixed seed 0. Each "
        "table says what its columns are."
    )
    yield "## Excluded, missing and uncertain"
    excluded = [*apart_lines(table.apart), *table_notes(table), *price_lines(table.rows), *_continued(runs)]
    excluded += results.problems
    yield "\n".join(f"- {plain(shown(note))}" for note in excluded) if excluded else "Nothing."


def _counting(table: ScoreTable) -> Iterator[StoredAttempt]:
    return (attempt for row in table.rows for attempt in row.attempts)


def _names(table: ScoreTable) -> set[str]:
    return {task.task for row in table.rows for task in row.grid.tasks}


_AGENT_HEAD = ("agent", "identity", "made by", "harness", "tasks", "k", "rounds", "first attempt", "last attempt")


def _agent_row(table: ScoreTable, row: ScoreRow) -> tuple[str, ...]:
    parts, scores = dict(row.subject.agent.parts), table.scores(row)
    harness = " ".join(filter(None, (parts.get("harness"), parts.get("version"))))
    started = sorted(each.record.started for each in row.attempts if each.record.started)
    finished = sorted(each.record.finished for each in row.attempts if each.record.finished)
    return (
        row.name,
        row.subject.agent.hash,
        parts.get("spec") or parts.get("model") or NOT_RECORDED,
        harness or NOT_RECORDED,
        str(scores.tasks),
        format_range(scores.fewest_attempts, scores.attempts),
        str(scores.rounds),
        started[0] if started else NOT_RECORDED,
        finished[-1] if finished else NOT_RECORDED,
    )


def _settings(rows: Iterable[ScoreRow]) -> Iterator[str]:
    """Yield the settings of each agent that has any."""
    told = set()
    for row in rows:
        agent = row.subject.agent
        shown = dict(agent.parts) | dict(agent.shown)
        known = {name: value for name, value in shown.items() if name not in ("spec", "harness", "version", "model")}
        if known and agent.hash not in told:
            told.add(agent.hash)
            yield f"Settings of {plain(row.label or row.agent)}: " + plain(
                "; ".join(f"{name.removeprefix('options.')} = {value}" for name, value in known.items())
            )


def _conditions_row(row: ScoreRow) -> tuple[str, ...]:
    conditions = row.subject.conditions
    strict = NOT_RECORDED if conditions.strict is None else "yes" if conditions.strict else "no"
    verify = conditions.verify or (NOT_RECORDED if conditions.strict is None else "as the tasks say")
    settings = (
        NOT_RECORDED if conditions.settings is None else ", ".join(map("=".join, conditions.settings)) or "as usual"
    )
    return row.name, conditions.environment or NOT_RECORDED, strict, verify, settings


def _continued(runs: Iterable[StoredRun]) -> Iterator[str]:
    """Yield which runs ended before all their attempts were made, and were continued."""
    for stored in runs:
        if earlier := stored.record.earlier_arguments:
            yield f"run {stored.record.run} did not end by itself, and was continued {counted(len(earlier), 'time')}"


_RUN_HEAD = ("run", "started", "finished", "mode", "environment", "shard", "exit status", "arguments")


def _run_row(stored: StoredRun, shown: Callable[[str], str]) -> tuple[str, ...]:
    run = stored.record
    sessions = [" ".join(map(shown, arguments)) for arguments in (*run.earlier_arguments, run.arguments)]
    return (
        run.run,
        run.started or NOT_RECORDED,
        run.finished or NOT_RECORDED,
        run.mode if run.start is None else f"{run.mode} from {run.start}",
        run.environment or NOT_RECORDED,
        "{}/{}".format(*run.shard) if run.shard else "none",
        NOT_RECORDED if run.exit_status is None else str(run.exit_status),
        "; continued with: ".join(text or NOT_RECORDED for text in sessions),
    )


def _versions(runs: Sequence[StoredRun]) -> str:
    found: dict[str, dict[str, None]] = {}
    for stored in runs:
        for name, versions in stored.record.versions.items():
            found.setdefault(name, {}).update(dict.fromkeys(versions))
    silent = [stored.record.run for stored in runs if not stored.record.versions]
    rows = [(name, ", ".join(versions)) for name, versions in found.items()]
    parts = [markdown_table([("what", "versions"), *rows])] if rows else []
    if silent or not runs:
        of = f" of {plain(', '.join(silent))}" if silent else ""
        parts.append(f"The versions{of} are {NOT_RECORDED}.")
    return "\n\n".join(parts)


def _task_rows(table: ScoreTable) -> Iterator[tuple[str, ...]]:
    contents: dict[str, dict[str, None]] = {}
    for row in table.rows:
        for task in row.grid.tasks:
            contents.setdefault(task.task, {}).setdefault(row.contents.get(task.task) or NOT_RECORDED)
    declared = _declared(table)
    for name, hashes in sorted(contents.items()):
        yield name, str(declared.get(name, NOT_RECORDED)), ", ".join(hashes)


def _declared(table: ScoreTable) -> Mapping[str, int]:
    return {task.task: task.declared for row in table.rows for task in row.grid.tasks}
