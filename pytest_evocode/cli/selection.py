"""What commands that read results have in common: which directories, which attempts, and what is said beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.score_table import ScoreTable, score_table
from pytest_evocode.results.foreign.tasks import read_task_directories
from pytest_evocode.results.loading import Results, load_results
from pytest_evocode.results.task_facts import TaskFacts

DEFAULT_RESULTS = Path("evocode-results")
_SHOWN = 20

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
"""The type of a parameter that is an existing directory."""

Function = TypeVar("Function", bound=Callable[..., Any])

directories_argument = click.argument("directories", metavar="[DIR]...", nargs=-1, type=DIRECTORY)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
tasks_option = click.option(
    "--tasks",
    "task_directory",
    metavar="DIR",
    type=DIRECTORY,
    help="Count the tasks in DIR and no others; those without a result count as not passed.",
)


def selection_options(function: Function) -> Function:
    """The options that say which attempts count."""
    run = click.option("--run", metavar="RUN", help="Count this run only (or Harbor's job), not the newest attempts.")
    all_runs = click.option("--all-runs", is_flag=True, help="Count the attempts of all runs, not only the newest.")
    return run(all_runs(tasks_option(function)))


def read_tasks(directory: Path | None) -> dict[str, TaskFacts] | None:
    """The facts of the tasks that ``--tasks`` names; None without it."""
    if directory is None:
        return None
    try:
        return read_task_directories(directory)
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def read_results(
    directories: Sequence[Path], *, cases: bool = False, tasks: dict[str, TaskFacts] | None = None
) -> Results:
    """What the directories hold, at least one attempt or run; what was skipped is told on standard error."""
    directories = directories or (DEFAULT_RESULTS,)
    for directory in directories:
        if not directory.is_dir():
            raise click.UsageError(f"there is no directory {directory}; name the results directory")
    results = load_results(directories, cases=cases, tasks=tasks)
    for problem in results.problems:
        click.echo(f"warning: {problem}", err=True)
    if not results.attempts and not any(run.record.selected for run in results.runs):
        where = ", ".join(map(str, directories))
        raise click.ClickException(f"there are no results in {where}")
    return results


def read_score_table(
    directories: Sequence[Path],
    *,
    cases: bool = False,
    run: str | None = None,
    all_runs: bool = False,
    task_directory: Path | None = None,
) -> ScoreTable:
    """Read the score table of the directories; what does not count, and what is missing, is told on standard error."""
    tasks = read_tasks(task_directory)
    results = read_results(directories, cases=cases, tasks=tasks)
    table = score_table(results, run=run, all_runs=all_runs, tasks=tasks)
    if not table.rows:
        runs = sorted({attempt.run for attempt in results.attempts})
        what = f"there is no run {run}; there are {', '.join(runs)}" if run else "none of the results is of these tasks"
        raise click.ClickException(what)
    for note in notes(table):
        click.echo(f"note: {note}", err=True)
    return table


def notes(table: ScoreTable) -> list[str]:
    """What whoever reads the numbers has to know besides."""
    found = []
    if table.superseded:
        found.append(
            f"older attempts that newer ones replace do not count ({table.superseded}); --all-runs counts them"
        )
    for row in table.rows:
        unfinished = [attempt for attempt in row.attempts if not attempt.finished]
        if unfinished:
            places = (f"{attempt.record.task} ({attempt.run})" for attempt in unfinished)
            found.append(f"{row.name}: not finished, what is not there counts as not passed: {listed(places)}")
        if row.missing:
            places = (f"{task} attempt {number}" for task, number in row.missing)
            found.append(f"{row.name}: nothing was recorded, which counts as not passed: {listed(places)}")
    unknown = {
        attempt.record.task
        for row in table.rows
        for attempt in row.attempts
        if attempt.layout != "evocode" and attempt.record.facts is None
    }
    if unknown:
        found.append(
            f"how many rounds they have is known from what was run only, name their directory with --tasks: "
            f"{listed(sorted(unknown))}"
        )
    return found


def listed(names: Iterable[object]) -> str:
    """The first of the names, and how many more there are."""
    texts = list(map(str, names))
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def print_json(value: Any, out: Path | None = None) -> None:
    """Print JSON that a person can read, too, or write it to a file."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if out is None:
        click.echo(text)
    else:
        out.write_text(f"{text}\n", encoding="utf-8")
