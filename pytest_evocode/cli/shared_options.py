"""Arguments and options that several commands share, reading the results that they choose, and how commands end."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from pytest_evocode.cli.printing import echo, tell_note
from pytest_evocode.environments.choice import NAMES
from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, score_table
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.leaderboard import different_tasks
from pytest_evocode.report.notes import price_lines, table_notes
from pytest_evocode.report.score_lines import apart_lines, cut_lines
from pytest_evocode.report.tables import counted, join_first
from pytest_evocode.results.foreign import read_task_directories
from pytest_evocode.results.loading import Results, load_results
from pytest_evocode.results.merging import missing_shards
from pytest_evocode.results.records import TaskFacts

DEFAULT_RESULTS = Path("evocode-results")

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
"""The type of a parameter that is an existing directory."""

directories_argument = click.argument("directories", metavar="[DIR]...", nargs=-1, type=DIRECTORY)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_IMAGES = f"{__name__}.images"


def _keep_images(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> None:
    if given:
        from pytest_evocode.environments.sandbox.given_images import parse_given

        context.meta[_IMAGES] = {name: path.resolve() for name, path in map(parse_given, given)}


image_option = click.option(
    "--image",
    metavar="NAME=PATH",
    multiple=True,
    expose_value=False,
    callback=_keep_images,
    help="Have PATH, an OCI layout or archive, for FROM NAME in the sandbox; repeatable.",
)
"""The option ``--image``, for :func:`given_images`."""


def environment_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option ``--env``, as ``environment``, and ``--image``."""
    environment = click.option(
        "--env",
        "environment",
        type=click.Choice(NAMES),
        default="auto",
        show_default=True,
        help="Where to run what has to be run; auto is Docker where a daemon answers, else the sandbox.",
    )
    decorated: Callable[..., None] = environment(image_option(command))
    return decorated


def given_images() -> dict[str, Path]:
    """Return where the images are that ``--image`` gives the running command, by name."""
    images: dict[str, Path] = click.get_current_context().meta.get(_IMAGES, {})
    return images


def changes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say what of two rounds is compared."""
    for name, help in (
        ("instruction", "What changes in what the rounds ask for."),
        ("suite", "What changes in the cumulative suites: which tests, and their files."),
        ("solution", "What changes in the rounds' directories solution/."),
        ("workspace", "What changes in the working directory (the default)."),
    ):
        command = click.option(f"--{name}", is_flag=True, help=help)(command)
    return command


def named_task(directory: Path) -> Path:
    """Return the directory of a task that is named by it or by its ``task.toml``."""
    return directory.parent if directory.name == TASK_FILE else directory


any_version_option = click.option(
    "--any-version", is_flag=True, help="Mix attempts at different contents of a task, which are otherwise kept apart."
)


named_in_option = click.option(
    "--results",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_RESULTS,
    hidden=True,
    help="Where to look for agents and runs given by name.",
)
"""What earlier versions have in place of the argument DIR of commands that are given names, as ``directory``."""


def tasks_option(help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--tasks``, which a command receives as ``task_directory``."""
    return click.option("--tasks", "task_directory", metavar="DIR", type=DIRECTORY, help=help)


@dataclass(frozen=True, slots=True)
class AttemptSelection:
    """The attempts that count, as the parameters of :func:`selection_options` say."""

    directories: tuple[Path, ...]
    run: str | None
    all_runs: bool
    any_version: bool
    task_directory: Path | None
    agents: tuple[str, ...] = ()
    """Labels, names or identities of the only agents that are shown; all where there are none."""

    def only(self, results: Results) -> frozenset[str] | None:
        """Return the only runs that count; None counts all."""
        return None if self.run is None else named_runs(results, self.run)

    def read(self, *, cases: bool = False, with_apart: bool = False, own_notes: bool = False) -> ScoreTable:
        """Read the records of the attempts, with ``cases`` those of their cases too.

        What does not count and what is missing is told on standard error; with ``with_apart`` the command itself tells
        which attempts no score counts, and there may be no others. With ``own_notes`` its view has the notes that tell
        which tasks rows cover and what budgets cut.
        """
        return self.read_all(cases=cases, with_apart=with_apart, own_notes=own_notes)[1]

    def shown(self, table: ScoreTable) -> ScoreTable:
        """Return what a table says of the agents that are shown; raises click.UsageError where one is not there."""
        if not (self.agents and table.rows):
            return table
        chosen = {id(row) for agent in self.agents for row in chosen_rows(table.rows, agent)}
        rows = tuple(row for row in table.rows if id(row) in chosen)
        apart = tuple(each for each in table.apart if each.agent in {row.agent for row in rows})
        return replace(table, rows=rows, apart=apart, superseded=0)

    def read_all(
        self, *, cases: bool = False, with_apart: bool = False, own_notes: bool = False
    ) -> tuple[Results, ScoreTable]:
        """Read the same, and return what was loaded too, whether it counts or not."""
        tasks = read_tasks(self.task_directory)
        results = read_results(self.directories, cases=cases, tasks=tasks)
        only = self.only(results)
        table = score_table(results, only=only, all_runs=self.all_runs, any_version=self.any_version, tasks=tasks)
        if not (table.rows or table.apart or table.excluded):
            raise click.ClickException("no result is of these tasks")
        table = self.shown(table)
        print_notes(table, with_apart=with_apart, own_notes=own_notes)
        if not table.rows and not with_apart:
            raise click.ClickException(f"{no_results(self.directories or (DEFAULT_RESULTS,), False)} with a score")
        missing = sum(len(row.missing) for row in table.rows)
        shards = missing_shards(results.runs) if missing else []
        not_run = f"{counted(missing, 'attempt')} not run{' between them' if len(shards) > 1 else ''}"
        for number, of in shards:
            what = f"shard {number} of {of} is not here, and its attempts count as not passed; name it too"
            tell_note(f"{what} ({not_run})")
        return results, table


def named_runs(results: Results, name: str) -> frozenset[str]:
    """Return the runs that a name stands for: that run or Harbor job, else those with that tag, as for ``tag:NAME``.

    Raises:
        click.ClickException: There are none.
    """
    if name in results.run_names:
        return frozenset({name})
    tag = name.removeprefix("tag:")
    if found := frozenset(stored.record.run for stored in results.runs if tag in stored.record.tags):
        return found
    tags = sorted({tag for stored in results.runs for tag in stored.record.tags})
    known = f", and the tags {', '.join(tags)}" if tags else ", and no tags"
    what = f"tag {tag}" if name != tag else f"run {name}"
    raise click.ClickException(f"there is no {what}; there are {', '.join(results.run_names)}{known}")


_SHOW = "Show only this agent, by its label, name or identity; repeatable."
agents_option = click.option("--agent", "agents", metavar="NAME", multiple=True, help=_SHOW)
"""The option ``--agent`` of commands with :func:`selection_options`, which come before it."""


def selection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameters that say which attempts count; it receives them as ``selection``."""

    @wraps(command)
    def call(
        *,
        directories: tuple[Path, ...],
        run: str | None,
        all_runs: bool,
        any_version: bool,
        task_directory: Path | None,
        agents: tuple[str, ...] = (),
        **others: Any,
    ) -> None:
        command(selection=AttemptSelection(directories, run, all_runs, any_version, task_directory, agents), **others)

    decorators = (
        directories_argument,
        click.option(
            "--run", metavar="RUN", help="Count only this run, Harbor job or tag (tag:NAME), not the newest attempts."
        ),
        click.option("--all-runs", is_flag=True, help="Count the attempts of all runs, not only the newest."),
        any_version_option,
        tasks_option("Count only the tasks in DIR; those without a result count as not passed."),
    )
    decorated: Callable[..., None] = call
    for decorator in reversed(decorators):
        decorated = decorator(decorated)
    return decorated


def chosen_rows(rows: Sequence[ScoreRow], agent: str | None) -> tuple[ScoreRow, ...]:
    """Return the rows that ``--agent`` names, or all without it; raises click.UsageError where that is none."""
    if chosen := rows_of_agent(rows, agent):
        return chosen
    raise click.UsageError(f"there is no agent {agent}; there are {', '.join(row.name for row in rows)}")


def rows_of_agent(rows: Sequence[ScoreRow], agent: str | None) -> tuple[ScoreRow, ...]:
    """Return the rows of an agent, by its label, its name or the hash of its identity; None is all rows.

    Raises:
        click.UsageError: Several agents have the name.
    """
    if agent is None:
        return tuple(rows)
    chosen = tuple(row for row in rows if agent in (row.name, row.label, row.subject.agent.hash))
    chosen = chosen or tuple(row for row in rows if agent in (row.agent, row.subject.agent.name))
    labels = dict.fromkeys(row.label for row in chosen)
    if len(labels) > 1 and agent not in labels and agent not in {row.subject.agent.hash for row in chosen}:
        raise click.UsageError(f"several agents are called {agent}; name one of {', '.join(labels)}")
    return chosen


def read_tasks(directory: Path | None) -> dict[str, TaskFacts] | None:
    """Return the facts of the tasks that ``--tasks`` names, or None without it."""
    try:
        return None if directory is None else read_task_directories(directory)
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def read_results(
    directories: Sequence[Path], *, cases: bool = False, tasks: dict[str, TaskFacts] | None = None
) -> Results:
    """Return what the directories hold, and tell on standard error what cannot be read.

    Raises:
        click.ClickException: There is no such directory, or neither an attempt nor a run in any of them.
    """
    directories = directories or (DEFAULT_RESULTS,)
    for directory in directories:
        if not directory.is_dir():
            raise click.UsageError(f"there is no directory {directory}; name the results directory")
    results = load_results(directories, cases=cases, tasks=tasks)
    for problem in results.problems:
        echo(f"warning: {problem}", err=True)
    if results.are_empty:
        raise click.ClickException(no_results(directories, bool(results.problems)))
    return results


def no_results(directories: Sequence[Path], problems: bool) -> str:
    """Return what to say where there is nothing to count, with ``problems`` that were told before."""
    where = join_first([str(directory) for directory in directories])
    return f"there are no results in {where}{' that can be counted; the warnings say why' if problems else ''}"


def print_notes(table: ScoreTable, *, with_apart: bool = False, own_notes: bool = False) -> None:
    """Tell on standard error what does not count, what is missing and what is uncertain in the numbers of a table.

    With ``with_apart`` the command itself tells which attempts no score counts; with ``own_notes`` its view has below
    it which tasks rows cover, what budgets cut, and by which prices cost is.
    """
    below: list[str] = []
    if not own_notes:
        below += [*different_tasks(table.rows), *cut_lines({row.name: row.attempts for row in table.rows})]
        below += price_lines(table.rows)
    for note in (*table_notes(table), *below, *([] if with_apart else apart_lines(table.apart))):
        tell_note(note)


@contextlib.contextmanager
def ending_orderly() -> Iterator[None]:
    """Raise SystemExit when the process is told to end or its window is closed, so that what it started is stopped."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
