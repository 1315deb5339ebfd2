"""``evocode shell``: a shell in the workspace as it is after a round."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo, tell_playing
from pytest_evocode.cli.shared_options import (
    DEFAULT_RESULTS,
    STARTER,
    environment_option,
    find_round,
    named_task,
)
from pytest_evocode.cli.signals import ending_orderly
from pytest_evocode.environments import Command, Environment, choose_engine
from pytest_evocode.environments.task_environment import VERIFIER_DIRECTORIES
from pytest_evocode.errors import UsageError
from pytest_evocode.names import attempt_name
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import SnapshotFile
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.trial.recorded import recorded_workspace
from pytest_evocode.trial.references import ReferenceWorkspaces

_STDIN = 0


@click.command("shell")
@click.argument("place", metavar="TASK[::ROUND]")
@click.option("--agent", metavar="RUN", help="Take what an agent left: its name, a run's, or an attempt's directory.")
@click.option(
    "--results",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=DEFAULT_RESULTS,
    show_default=True,
    help="Where --agent looks.",
)
@click.option("--suite", is_flag=True, help="Put the tests of the round's suite into /tests.")
@environment_option
def shell_command(place: str, agent: str | None, results: Path, suite: bool, environment: str) -> None:
    """Open a shell in the workspace as it is after a round of TASK, passed or failed, by default the last.

    It is what the reference solutions lead to, or with --agent what an agent left in a run with --evocode-snapshots on
    this machine. The round "starter" is what the first round begins with. Files only: no process of the round runs.

    What is changed in the shell is thrown away. The exit status is the shell's.
    """
    if not os.isatty(_STDIN):
        raise click.UsageError("standard input is no terminal, and a shell needs one")
    path, *names = place.split("::")
    task = load_task(named_task(Path(path)))
    if len(names) == 2:  # A node id, as pytest prints it.
        agent = agent or (names[0] if names[0] != "oracle" else None)
    elif len(names) > 2:
        raise click.UsageError(f"{place}: write it as TASK, TASK::ROUND or as a node id, TASK::AGENT::ROUND")
    index = find_round(task, names[-1]) if names else len(task.rounds)
    round_ = task.rounds[max(index, 1) - 1]
    if suite and round_.suite_environment is not None:
        raise UsageError(
            f"the suite of {round_.name} has an environment for itself, and this is the agent's; leave out --suite"
        )
    when, kept = f"after {round_.name} of the reference solutions" if index else f"as {round_.name} begins", None
    if agent is not None:
        attempt, kept = _find_attempt(results, task, index, agent)
        when = f"after {round_.name} of {attempt}"
        if environment not in ("auto", kept.environment):
            raise UsageError(f"{attempt} was made in {kept.environment}; leave out --env")
        environment = kept.environment
    engine, _ = choose_engine(environment, hidden=[Path.cwd(), task.directory.resolve()])
    with contextlib.closing(engine), ending_orderly(), contextlib.ExitStack() as life:
        if kept is None:
            workspace = life.enter_context(ReferenceWorkspaces(task, engine, playing=tell_playing).after(index))
        else:
            workspace = life.enter_context(recorded_workspace(task, engine, kept))
        if suite:
            _bring_suite(workspace.environment, task, round_)
        if workspace.fault:
            echo(f"note: these are the files that it left behind: {workspace.fault}", err=True)
        echo(f"{task.name} {when} ({engine.name}); what you change here is thrown away")
        echo(f"the request of {round_.name}: {os.path.relpath(round_.instruction)}; exit or Ctrl-D ends the shell")
        sys.exit(_interact(workspace.environment, round_))


def _find_attempt(results: Path, task: Task, index: int, which: str) -> tuple[Path, SnapshotFile]:
    """Return the newest attempt of that name, or in that run, which has kept the files of a round, and where they are.

    Raises :class:`~pytest_evocode.errors.UsageError` where there is none, or more than one in the run.
    """
    if not index:
        raise UsageError(f"the {STARTER} is nobody's work; leave out --agent")
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
            "--results names another results directory"
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
