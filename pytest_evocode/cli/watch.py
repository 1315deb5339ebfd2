"""``evocode watch``: run again what a change of a task affects, until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo
from pytest_evocode.cli.shared_options import ending_orderly, environment_option, given_images, named_task
from pytest_evocode.environments.scratch import Scratch
from pytest_evocode.errors import EvocodeError, UsageError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.tables import join_first
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.content_hash import is_dropping
from pytest_evocode.tasks.lockfile import PARTS
from pytest_evocode.tasks.round_changes import affected_rounds

_LOOK = 200  # milliseconds that a look for changes takes where there are none


@click.command("watch")
@click.argument("directory", metavar="TASK", type=click.Path(path_type=Path))
@click.argument("arguments", metavar="[-- PYTEST_ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)
@environment_option
def watch_command(directory: Path, arguments: tuple[str, ...], environment: str) -> None:
    """Play the reference solutions of TASK, and on each change of its files the rounds that it affects.

    A solution affects its round and those after it, a test module the rounds whose suite has it, task.toml and the
    environment all. Earlier rounds are not played again where the state after them is known. A change during a run is
    heeded when the run has ended.

    Ctrl-C ends it, with status 130. Its runs are not recorded, unless the pytest arguments have --evocode-results=DIR.
    """
    directory = named_task(directory).resolve()
    if not (directory / TASK_FILE).is_file():
        raise click.UsageError(f"{directory} is not a task: there is no {TASK_FILE}")
    if any(argument.partition("=")[0] == "--evocode-agent" for argument in arguments):
        raise click.UsageError("what is played are the reference solutions; leave out --evocode-agent")
    changes = _changes(directory)
    with ending_orderly(), contextlib.closing(Scratch("watch")) as results:
        options = ["--evocode-agent=oracle", f"--evocode-env={environment}", f"--evocode-results={results.path}"]
        options += [f"--evocode-image={name}={path}" for name, path in given_images().items()]
        loop = _Loop(directory, [*options, "-q", "--no-header", *arguments], results)
        try:
            next(changes)  # From here on no change is missed.
            echo(f"watching {directory}; Ctrl-C ends it")
            loop.run({directory / TASK_FILE})
            for changed in changes:
                if changed:
                    echo(f"\nchanged: {join_first(sorted(str(path.relative_to(directory)) for path in changed))}")
                    loop.run(changed)
        except KeyboardInterrupt:
            sys.exit(128 + signal.SIGINT)


def _changes(directory: Path) -> Iterator[set[Path]]:
    """Yield files of the task that have changed since the last time, now and then none.

    Raises :class:`~pytest_evocode.errors.UsageError` where the library for it is not installed.
    """
    try:
        from watchfiles import Change, watch
    except ImportError:
        raise UsageError("this needs watchfiles; install it with: pip install 'pytest-evocode[watch]'") from None

    def counts(change: object, path: str) -> bool:
        parts = Path(path).relative_to(directory).parts
        return bool(parts) and parts[0] in PARTS and not any(map(is_dropping, parts))

    for changed in watch(directory, watch_filter=counts, rust_timeout=_LOOK, yield_on_timeout=True):
        # What came and went at once was an editor's on its way to the file.
        gone = {path for kind, path in changed if kind is Change.added and not os.path.lexists(path)}
        yield {Path(path) for _, path in changed if path not in gone}


class _Loop:
    """Runs pytest for the rounds that changes affect."""

    def __init__(self, directory: Path, arguments: Sequence[str], results: Scratch) -> None:
        self._directory = directory
        self._arguments = arguments
        self._results = results
        self._changed: set[Path] = set()
        """What has changed since the task could last be loaded."""

    def run(self, changed: Collection[Path]) -> None:
        """Run the rounds that some changed files affect, unless the task is broken, and print what comes of it."""
        self._changed.update(changed)
        try:
            task = load_task(self._directory)
        except (EvocodeError, OSError) as error:
            return echo(f"nothing is run until this is corrected: {error}")
        affected = {round_.index for path in self._changed for round_ in affected_rounds(task, path)}
        self._changed.clear()
        rounds = [round_ for round_ in task.rounds if round_.index in affected]
        if not rounds:
            return echo("no round depends on that")
        names = ", ".join(round_.name for round_ in rounds)
        echo(f"running {names}")
        status = _pytest([*self._arguments, *_node_ids(task, rounds)], self._results)
        ending = {0: "passed", 1: "not passed"}.get(status, f"pytest ended with status {status}")
        echo(f"{names}: {ending}; waiting for changes")


def _node_ids(task: Task, rounds: Sequence[Round]) -> list[str]:
    if len(rounds) == len(task.rounds):
        return [str(task.file)]
    return [f"{task.file}::oracle::{round_.name}" for round_ in rounds]


def _pytest(arguments: Sequence[str], results: Scratch) -> int:
    """Run pytest and return its exit status; whatever ends this process first ends pytest, too.

    But for a kill: then pytest holds the directory of its results until it has ended.
    """
    # A process of its own: the package may be what changes, and pytest leaves its modules behind.
    kept_open = [] if results.lock is None else [results.lock]
    process = subprocess.Popen([sys.executable, "-m", "pytest", *arguments], pass_fds=kept_open)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # It was typed at the terminal of both, and pytest removes what it has started.
        raise
    except BaseException:
        process.terminate()
        process.wait()
        raise
