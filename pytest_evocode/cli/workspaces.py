"""Workspaces as they are after a round: ``evocode show TASK ROUND``, and ``evocode shell``, which opens a shell."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

import click

from pytest_evocode.cli.printing import Trouble, echo
from pytest_evocode.cli.shared_options import (
    DEFAULT_RESULTS,
    changes_options,
    ending_orderly,
    environment_option,
    given_images,
    named_task,
)
from pytest_evocode.environments import Command, Environment, choose_engine
from pytest_evocode.environments.task_environment import VERIFIER_DIRECTORIES
from pytest_evocode.errors import EvocodeError, UsageError
from pytest_evocode.names import TASK_FILE, attempt_name
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import aligned
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import SnapshotFile
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.round_changes import suite_changes
from pytest_evocode.trajectories.file_changes import File
from pytest_evocode.trajectories.patches import Tree, host_tree, tree_patches, workspace_tree
from pytest_evocode.trial.recorded import recorded_workspace
from pytest_evocode.trial.references import ReferenceWorkspaces

_STARTER = "starter"
"""What the state is called that the first round begins with."""
_STDIN = 0
_COLOURS = {"@": "cyan", "+": "green", "-": "red"}


@click.command("diff")
@click.argument("directory", metavar="TASK", type=click.Path(path_type=Path))
@click.argument("rounds", metavar="ROUND [ROUND]", nargs=-1, required=True)
@changes_options
@environment_option
def diff_command(directory: Path, rounds: tuple[str, ...], environment: str, **asked: bool) -> None:
    """Show what changes from one round of TASK to another, as evocode show TASK ROUND does."""
    show_changes(directory, rounds, environment, asked)


def show_changes(directory: Path, rounds: Sequence[str], environment: str, asked: Mapping[str, bool]) -> NoReturn:
    """Print as a diff what changes from one round to another, or to one from the round before, and exit as diff does.

    ``asked`` are the options of :func:`~pytest_evocode.cli.shared_options.changes_options`.
    """
    try:
        what, *others = [each for each, is_asked in asked.items() if is_asked] or ["workspace"]
        if others:
            raise click.UsageError(f"--{what} and --{others[0]} are two diffs; ask for one at a time")
        task = load_task(named_task(directory), to_show=True)
        if len(rounds) > 2:
            raise click.UsageError(f"name one round or two, not {len(rounds)}")
        last = _find_round(task, rounds[-1])
        first = _find_round(task, rounds[0]) if len(rounds) == 2 else last - 1
        if first < 0:
            raise click.UsageError(f"there is nothing before the {_STARTER}; name a round after it")
        if what == "workspace":
            old, new = _workspaces(task, first, last, environment)
            notes = []
        else:
            old, new = (_TREES[what](task, task.rounds[index - 1]) if index else {} for index in (first, last))
            notes = _suite_lines(task, first, last) if what == "suite" else []
        sys.exit(1 if _print(notes, tree_patches(old, new)) else 0)
    except (EvocodeError, OSError) as error:
        raise Trouble(printable(str(error))) from None


def _workspaces(task: Task, first: int, last: int, environment: str) -> tuple[Tree, Tree]:
    """Return the files after two rounds; the earlier comes first, so that its state is there for the later one."""
    hidden = [Path.cwd(), task.directory.resolve()]
    engine, _ = choose_engine(environment, hidden=hidden, images=given_images())
    with contextlib.closing(engine):
        states = ReferenceWorkspaces(task, engine, playing=_tell_playing)
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
    place = round_.instruction
    return {place.name: File(mode=0o644, content=place.read_bytes())} if place.is_file() else {}


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


@click.command("shell")
@click.argument("place", metavar="TASK[::ROUND]")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--agent", metavar="RUN", help="Take what an agent left: its name, a run's, or an attempt's directory.")
@click.option(
    "--results",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=DEFAULT_RESULTS,
    hidden=True,
    help="What earlier versions have in place of the argument DIR.",
)
@click.option("--suite", is_flag=True, help="Put the tests of the round's suite into /tests.")
@environment_option
def shell_command(
    place: str, directory: Path | None, agent: str | None, results: Path, suite: bool, environment: str
) -> None:
    """Open a shell in the workspace as it is after a round of TASK, passed or failed, by default the last.

    It is what the reference solutions lead to, or with --agent what an agent left in a run with --evocode-snapshots on
    this machine, in the results directory DIR or evocode-results. The round "starter" is what the first round begins
    with. Files only: no process of the round runs.

    What is changed in the shell is thrown away. The exit status is the shell's.

    In place of TASK, a directory that --evocode-keep left is a sandbox to open, in which changes stay.
    """
    if not os.isatty(_STDIN):
        raise click.UsageError("standard input is no terminal, and a shell needs one")
    if _is_kept(Path(place)):
        from pytest_evocode.environments.sandbox.engine import enter_kept_sandbox

        sys.exit(enter_kept_sandbox(Path(place), _STDIN))
    path, *names = place.split("::")
    task = load_task(named_task(Path(path)))
    if len(names) == 2:  # A node id, as pytest prints it.
        agent = agent or (names[0] if names[0] != "oracle" else None)
    elif len(names) > 2:
        raise click.UsageError(f"{place}: write it as TASK, TASK::ROUND or as a node id, TASK::AGENT::ROUND")
    index = _find_round(task, names[-1]) if names else len(task.rounds)
    round_ = task.rounds[max(index, 1) - 1]
    if suite and round_.suite_environment is not None:
        raise UsageError(
            f"the suite of {round_.name} has an environment for itself, and this is the agent's; leave out --suite"
        )
    when, kept = f"after {round_.name} of the reference solutions" if index else f"as {round_.name} begins", None
    if agent is not None:
        attempt, kept = _find_attempt(directory or results, task, index, agent)
        when = f"after {round_.name} of {attempt}"
        if environment not in ("auto", kept.environment):
            raise UsageError(f"{attempt} was made in {kept.environment}; leave out --env")
        environment = kept.environment
    hidden = [Path.cwd(), task.directory.resolve()]
    engine, _ = choose_engine(environment, hidden=hidden, images=given_images())
    with contextlib.closing(engine), ending_orderly(), contextlib.ExitStack() as life:
        if kept is None:
            workspace = life.enter_context(ReferenceWorkspaces(task, engine, playing=_tell_playing).after(index))
        else:
            workspace = life.enter_context(recorded_workspace(task, engine, kept))
        if suite:
            _bring_suite(workspace.environment, task, round_)
        if workspace.fault:
            echo(f"note: these are the files that it left behind: {workspace.fault}", err=True)
        echo(f"{task.name} {when} ({engine.name}); what you change here is thrown away")
        echo(f"the request of {round_.name}: {os.path.relpath(round_.instruction)}; exit or Ctrl-D ends the shell")
        sys.exit(_interact(workspace.environment, round_))


def _is_kept(directory: Path) -> bool:
    """Return whether a directory is a sandbox that was kept."""
    if not directory.is_dir() or (directory / TASK_FILE).is_file():
        return False
    from pytest_evocode.environments.sandbox.leftovers import read_kept

    try:
        read_kept(directory)
    except UsageError:
        return False
    return True


def _find_attempt(results: Path, task: Task, index: int, which: str) -> tuple[Path, SnapshotFile]:
    """Return the newest attempt of that name, or in that run, which has kept the files of a round, and where they are.

    Raises :class:`~pytest_evocode.errors.UsageError` where there is none, or more than one in the run.
    """
    if not index:
        raise UsageError(f"the {_STARTER} is nobody's work; leave out --agent")
    round_name = task.rounds[index - 1].name
    if (Path(which) / "steps").is_dir():
        found = [Path(which)]
    else:
        every = results.glob(f"{glob.escape(task.name)}/harbor_jobs/*/*/*__a[0-9]*")
        by_run = sorted(every, key=lambda path: path.parts[-2])
        found = [path for path in by_run if which in (path.parts[-2], _name_of(path))]
    if not found:
        raise UsageError(
            f"{results}: there is no attempt at {task.name} by an agent or in a run named {which}; "
            "name another results directory behind the task"
        )
    snapshots = ((path, AttemptDirectory(path).read_snapshot(round_name)) for path in found)
    kept = [(path, snapshot) for path, snapshot in snapshots if snapshot is not None]
    if not kept:
        raise UsageError(
            f"{found[-1]}: the files that {round_name} was left with were not kept, which takes a run with "
            "--evocode-snapshots"
        )
    if len(kept) > 1 and which == kept[-1][0].parts[-2]:
        attempts = ", ".join(str(path) for path, _ in kept)
        raise UsageError(f"{which} made several attempts; name one of them with --agent: {attempts}")
    return kept[-1]


def _name_of(attempt: Path) -> str:
    return attempt_name(attempt.parts[-3], int(attempt.name.rpartition("__a")[2]))


def _bring_suite(environment: Environment, task: Task, round_: Round) -> None:
    environment.make_directories(VERIFIER_DIRECTORIES)
    places = [*round_.tests] if round_.has_script else [(path, place) for place, path in task.suite(round_).items()]
    environment.upload(places, VERIFIER_DIRECTORIES[0], writable=True)


def _interact(environment: Environment, round_: Round) -> int:
    return environment.interact(Command(("bash", "--norc"), user=round_.agent_user), _STDIN)


def _find_round(task: Task, name: str) -> int:
    """Return the index of a round, 0 for :data:`_STARTER`; raises click.UsageError where there is none of that name."""
    # A round may have that name itself.
    indexes = {_STARTER: 0} | {round_.name: round_.index for round_ in task.rounds}
    if name not in indexes:
        near = get_close_matches(name, indexes, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise click.UsageError(f"{task.file}: there is no round {name!r}; {guess}There are {', '.join(indexes)}")
    return indexes[name]


def _tell_playing(round_: Round) -> None:
    echo(f"playing the solution of {round_.name}", err=True)
