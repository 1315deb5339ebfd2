"""``evocode``: everything that is not a test run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_evocode.cli.compare import compare
from pytest_evocode.cli.export import export
from pytest_evocode.cli.failures import failures
from pytest_evocode.cli.leaderboard import leaderboard
from pytest_evocode.cli.merge import merge
from pytest_evocode.cli.process import process
from pytest_evocode.cli.results import results
from pytest_evocode.cli.selection import directories_argument, json_option, print_json, read_results

if TYPE_CHECKING:
    from pytest_evocode.trial.regrading import Regraded


@click.group()
@click.version_option(package_name="pytest-evocode")
def main() -> None:
    """Tools around pytest-evocode. Benchmarks themselves are run by pytest: pytest --evocode-agent=AGENT tasks/"""


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
def enter(directory: Path) -> None:
    """Open a shell in a sandbox that --evocode-keep has left in DIRECTORY."""
    from pytest_evocode.environments.sandbox.enter_kept import enter_kept_sandbox
    from pytest_evocode.errors import EvocodeError

    if not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal")
    try:
        sys.exit(enter_kept_sandbox(directory, sys.stdin.fileno()))
    except EvocodeError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--kept", is_flag=True, help="Remove also what --evocode-keep left and --evocode-resume needs.")
def clean(dry_run: bool, kept: bool) -> None:
    """Remove what sessions left that were killed, and the cached states of reference solutions.

    Nothing that a living session owns is touched. Containers, networks, snapshots and sandboxes of dead ones every new
    session removes by itself.
    """
    from pytest_evocode.environments.cleanup import leftovers
    from pytest_evocode.errors import EvocodeError

    failed = False
    with leftovers(kept=kept, references=True) as found:
        for leftover in found:
            if dry_run:
                click.echo(f"would remove {leftover.what}")
                continue
            try:
                leftover.remove()
                click.echo(f"removed {leftover.what}")
            except EvocodeError as error:
                failed = True
                click.echo(f"could not remove {leftover.what}: {error}", err=True)
        if not found:
            click.echo("nothing is left over")
    sys.exit(1 if failed else 0)


@main.command()
@click.argument("directory", metavar="NAME", type=click.Path(path_type=Path))
@click.option("--rounds", type=click.IntRange(1, 99), default=2, show_default=True, help="How many rounds it has.")
@click.option("--native/--script", default=True, help="Tests for pytest (the default), or a test.sh as in Harbor.")
def new(directory: Path, rounds: int, native: bool) -> None:
    """Write a small task, complete and passing, as NAME.

    NAME is a directory that does not exist yet. Its files say what to change to make the task one of your own.
    """
    from pytest_evocode.cli.new_task import write_task
    from pytest_evocode.errors import UsageError
    from pytest_evocode.report.tables import aligned

    try:
        write_task(directory, rounds=rounds, form="native" if native else "script")
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    task = shlex.quote(str(directory))
    commands = [
        (f"pytest --evocode-check {task}", "whether it is sound"),
        (f"pytest --evocode-agent=oracle {task}", "its reference solutions against its suites"),
        (f"pytest --evocode-pin {task}", "write down the cases that these pass"),
    ]
    click.echo(
        f"made {directory}, {rounds} round{'s' if rounds > 1 else ''} verified by {'pytest' if native else 'test.sh'}"
    )
    click.echo(f"{directory / 'task.toml'} says what is where; next:")
    click.echo("\n".join(f"  {line}" for line in aligned(commands, left=(0, 1))))


@main.command()
@click.argument("directory", metavar="TASK", type=click.Path(path_type=Path))
def show(directory: Path) -> None:
    """Print the rounds and requirements of TASK, a directory."""
    from pytest_evocode.errors import TaskError
    from pytest_evocode.report.task import task_lines
    from pytest_evocode.tasks import load_task
    from pytest_evocode.tasks.lockfile import read_pins

    try:
        task = load_task(directory)
        pins = read_pins(directory)
    except (TaskError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo("\n".join(task_lines(task, pins.rounds, stale=pins.stale is not None)))


@main.command()
@directories_argument
@click.option("--run", metavar="RUN", help="Verify the attempts of this run only.")
@click.option(
    "--tasks",
    "task_directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the tasks are now; without it they are where they were.",
)
@json_option
def regrade(directories: tuple[Path, ...], run: str | None, task_directory: Path | None, as_json: bool) -> None:
    """Verify finished rounds again with today's tests, in the files that they were left with.

    No agent is run. It takes a session with --evocode-snapshots, on this machine. The verdicts that were there are kept
    in each attempt's directory, in earlier/1 and so on. The status is 1 where a round could not be verified.
    """
    from pytest_evocode.errors import EvocodeError
    from pytest_evocode.trial.regrading import Regrader, tasks_below

    attempts = [each for each in read_results(directories).attempts if each.layout == "evocode"]
    attempts = [each for each in attempts if run in (None, each.run)]
    if not attempts:
        raise click.ClickException("there are no attempts of pytest-evocode" + (f" of the run {run}" if run else ""))
    try:
        tasks = tasks_below(task_directory) if task_directory is not None else {}
        with Regrader(tasks) as regrader:
            found = [regrader.regrade(attempt) for attempt in attempts]
    except EvocodeError as error:
        raise click.ClickException(str(error)) from None
    _print_regraded(found, as_json)
    sys.exit(1 if any(each.problems for each in found) else 0)


def _print_regraded(found: Sequence[Regraded], as_json: bool) -> None:
    from pytest_evocode.report.regraded import change_lines, changes, score_changes

    pairs = [pair for each in found for pair in zip(each.before, each.after, strict=True)]
    verified = sum(each.verified for each in found)
    problems = [(each.attempt.path, problem) for each in found for problem in each.problems]
    if as_json:
        values = {
            "attempts": sum(bool(each.verified) for each in found),
            "rounds": verified,
            "changes": changes(pairs),
            "dataset_scores": score_changes(pairs),
            "problems": [{"attempt": str(path), "problem": problem} for path, problem in problems],
        }
        print_json(values)
        return
    click.echo(f"verified {verified} rounds again")
    if verified:
        click.echo("\n".join(change_lines(pairs)))
    for path, problem in problems:
        click.echo(f"kept as it was: {path}: {problem}", err=True)


for command in (results, compare, merge, leaderboard, failures, export, process):
    main.add_command(command)
