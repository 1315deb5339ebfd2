"""``evocode diff``: what changes from one round of a task to another."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo, tell_playing
from pytest_evocode.cli.shared_options import STARTER, environment_option, find_round, named_task
from pytest_evocode.environments import choose_engine
from pytest_evocode.errors import EvocodeError
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import aligned
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.round_changes import suite_changes
from pytest_evocode.trajectories.file_changes import File
from pytest_evocode.trajectories.patches import Tree, host_tree, tree_patches, workspace_tree
from pytest_evocode.trial.references import ReferenceWorkspaces

_COLOURS = {"@": "cyan", "+": "green", "-": "red"}


class _Trouble(click.ClickException):
    exit_code = 2


@click.command("diff")
@click.argument("directory", metavar="TASK", type=click.Path(path_type=Path))
@click.argument("rounds", metavar="ROUND [ROUND]", nargs=-1, required=True)
@click.option("--workspace", is_flag=True, help="The working directory (the default).")
@click.option("--solution", is_flag=True, help="The rounds' directories solution/.")
@click.option("--suite", is_flag=True, help="The cumulative suites: which tests, and their files.")
@click.option("--instruction", is_flag=True, help="What the rounds ask for.")
@environment_option
def diff_command(directory: Path, rounds: tuple[str, ...], environment: str, **asked: bool) -> None:
    """Show what changes from one round of TASK to another, or to one from the round before it.

    Workspaces are those that the reference solutions lead to, passed or failed. The round "starter" is what the first
    round begins with.

    The output is a unified diff with the prefixes a/ and b/. Caches, and what Git keeps in .git, are left out. The exit
    status is diff's own: 0 for no difference, 1 for some, 2 for trouble.
    """
    try:
        what, *others = [each for each, is_asked in asked.items() if is_asked] or ["workspace"]
        if others:
            raise click.UsageError(f"--{what} and --{others[0]} are two diffs; ask for one at a time")
        task = load_task(named_task(directory))
        if len(rounds) > 2:
            raise click.UsageError(f"name one round or two, not {len(rounds)}")
        last = find_round(task, rounds[-1])
        first = find_round(task, rounds[0]) if len(rounds) == 2 else last - 1
        if first < 0:
            raise click.UsageError(f"there is nothing before the {STARTER}; name a round after it")
        if what == "workspace":
            old, new = _workspaces(task, first, last, environment)
            notes = []
        else:
            old, new = (_TREES[what](task, task.rounds[index - 1]) if index else {} for index in (first, last))
            notes = _suite_lines(task, first, last) if what == "suite" else []
        sys.exit(1 if _print(notes, tree_patches(old, new)) else 0)
    except (EvocodeError, OSError) as error:
        raise _Trouble(printable(str(error))) from None


def _workspaces(task: Task, first: int, last: int, environment: str) -> tuple[Tree, Tree]:
    """Return the files after two rounds; the earlier comes first, so that its state is there for the later one."""
    engine, _ = choose_engine(environment, hidden=[Path.cwd(), task.directory.resolve()])
    with contextlib.closing(engine):
        states = ReferenceWorkspaces(task, engine, playing=tell_playing)
        trees: dict[int, Tree] = {}
        for index in sorted({first, last}):
            with states.after(index) as workspace:
                trees[index] = workspace_tree(workspace.environment)
            if workspace.fault:
                echo(f"note: these are the files that it left behind: {workspace.fault}", err=True)
    return trees[first], trees[last]


def _solution(task: Task, round_: Round) -> Tree:
    return host_tree(round_.solution) if round_.solution is not None else {}


def _suite(task: Task, round_: Round) -> Tree:
    """Return the files of a suite as they are below /tests."""
    if round_.has_script:
        return {path: file for directory in round_.tests for path, file in host_tree(directory).items()}
    places = task.suite(round_)
    return {path: file for place, directory in places.items() for path, file in host_tree(directory, place).items()}


def _instruction(task: Task, round_: Round) -> Tree:
    return {round_.instruction.name: File(mode=0o644, content=round_.instruction.read_bytes())}


_TREES: dict[str, Callable[[Task, Round], Tree]] = {
    "solution": _solution,
    "suite": _suite,
    "instruction": _instruction,
}


def _suite_lines(task: Task, first: int, last: int) -> list[str]:
    """Return a line for each test that is in one suite only; ``patch`` passes over what stands before a diff."""
    if not last:
        return []
    changes = suite_changes(task, task.rounds[first - 1] if first else None, task.rounds[last - 1])
    rows = [
        (each.kind, each.requirement or "-", each.test + (f", was {each.before}" if each.before else ""))
        for each in changes
    ]
    return [*aligned(rows, left=(0, 1, 2)), ""] if rows else []


def _print(notes: list[str], patches: Iterator[str]) -> bool:
    """Print a diff, and return whether there is any."""
    found = bool(notes)
    # click asks neither for NO_COLOR.
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for note in notes:
        echo(note)
    for patch in map(Scrubber().for_many(), patches):
        found = True
        if not sys.stdout.isatty():
            # Byte for byte: it may be for a program.
            click.echo(patch.encode("utf-8", "surrogateescape"), nl=False)
            continue
        head = True
        for line in printable(patch).removesuffix("\n").split("\n"):
            head &= not line.startswith("@@")
            click.echo(_painted(line, head) if coloured else line, color=coloured)
    return found


def _painted(line: str, head: bool) -> str:
    return click.style(line, bold=True) if head else click.style(line, fg=_COLOURS.get(line[:1]))
