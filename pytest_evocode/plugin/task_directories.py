"""Which directories are tasks, which tests are of tasks, and how pytest is kept out, in sessions of any kind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_evocode.names import TASK_FILE
from pytest_evocode.plugin.datasets import path_of
from pytest_evocode.plugin.foreign_projects import foreign_projects
from pytest_evocode.plugin.options import directories_of_tests
from pytest_evocode.plugin.pytest_private import keep_out_conftest

_TABLE_OF_TASKS = re.compile(r"^\s*\[+\s*(steps|agent|environment|verifier|solution|metadata)\b", re.MULTILINE)
_UNASKED = "evocode-unasked-tasks"


def is_task(directory: Path) -> bool:
    """Tell whether a directory is a task that is complete enough for pytest to be kept out of it.

    Other tools have files called task.toml as well, beside tests that are to be run. None of them has a request to an
    agent there, which every round of ours needs: ``instruction.md`` beside the file, or in a directory of ``steps/``.
    The file itself is not read, so a session without tasks pays for one look at each directory.
    """
    root = str(directory)
    return os.path.isfile(f"{root}/{TASK_FILE}") and (
        os.path.isfile(f"{root}/instruction.md") or _has_request(f"{root}/steps")
    )


def is_meant_as_task(directory: Path) -> bool:
    """Tell whether a directory is a task, or one that its author has only begun, as tables of its task.toml say.

    Sessions that run tasks go by this: what is missing is an error there, and no reason to pass over the task.
    """
    file = directory / TASK_FILE
    if not os.path.isfile(file):
        return False
    return is_task(directory) or _says_so(file)


def outside_tasks(config: pytest.Config, paths: Sequence[str], holds_task: Callable[[Path], bool]) -> list[str]:
    """Return paths as on the command line, with those inside a task replaced by the directory that holds the task.

    From the paths it is called with pytest loads the conftest files there and in ``test*`` below, before it collects;
    in a task those are the verifier's own and belong into a container, and in a foreign project they are not the
    user's.
    """
    foreign = foreign_projects(config)
    moved = []
    for path in paths:
        task = next(_tasks_around(config, path, holds_task), None)
        start = _absolute(config, path) if task is None else task.parent
        if foreign is not None and foreign.hold(start):
            keep_out_conftest(config, start)
            moved.append(str(foreign.stand_in(start)))
        else:
            moved.append(path if task is None else str(start))
        for directory in map(Path, directories_of_tests(str(_absolute(config, moved[-1])))):
            if holds_task(directory) or (foreign is not None and foreign.hold(directory)):
                keep_out_conftest(config, directory)
    return moved


def refuse_paths_inside(config: pytest.Config) -> None:
    """Raise pytest.UsageError where a session that runs no tasks is called with what lies inside of one."""
    for path in config.args:
        task = next(_tasks_around(config, path, is_task), None)
        absolute = _absolute(config, path)
        if task is None or task == absolute:
            continue
        if absolute == task / TASK_FILE:
            raise pytest.UsageError(f"{path}: {_what_runs(path.partition('::')[2])}")
        shown = os.path.relpath(task, config.invocation_params.dir)
        raise pytest.UsageError(
            f"{path} belongs to the task {task}, and what is in a task is not collected by pytest itself: its suites "
            f"run in containers; run it with: pytest --evocode-agent=oracle {shown}"
        )


class UnaskedTask(pytest.Directory):
    """A task in a session that runs none: nothing below it is looked at, let alone imported."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Yield nothing, and have the summary of a session without any test say why."""
        plugins = self.config.pluginmanager
        if not plugins.hasplugin(_UNASKED):
            plugins.register(_UnaskedTasks(), _UNASKED)
        return ()


def unasked_task(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector of a directory in a session that runs no tasks, None where it is no task."""
    if not is_task(path):
        return None
    keep_out_conftest(parent.config, path)
    collector: pytest.Collector = UnaskedTask.from_parent(parent, path=path)
    return collector


class _UnaskedTasks:
    """The hook of sessions that found tasks and were not asked to run them."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Say what to do, where there was nothing else to run."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            from pytest_evocode.plugin.github_refusals import tell_refusal

            what = "tasks run with an agent only: add --evocode-agent=oracle (or another), or --evocode-check"
            terminalreporter.write_line(f"evocode: {what}")
            tell_refusal(terminalreporter.config, pytest.ExitCode.NO_TESTS_COLLECTED, what)


def _has_request(steps: str) -> bool:
    """Tell whether a directory in ``steps`` has an instruction, several times as fast as Path.glob."""
    try:
        with os.scandir(steps) as entries:
            return any(os.path.exists(f"{entry.path}/instruction.md") for entry in entries)
    except OSError:
        return False


def _says_so(file: Path) -> bool:
    try:
        return _TABLE_OF_TASKS.search(file.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:  # Loading the task tells more.
        return True


def _absolute(config: pytest.Config, path: str) -> Path:
    return Path(os.path.abspath(config.invocation_params.dir / path.split("::")[0]))


def _tasks_around(config: pytest.Config, path: str, holds_task: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the tasks that a path on the command line is, or lies in, the outermost first."""
    absolute = _absolute(config, path)
    return (directory for directory in (*reversed(absolute.parents), absolute) if holds_task(directory))


def _what_runs(names: str) -> str:
    """Return what to add to a command that names ``AGENT::ROUND``, ``check::CHECK`` or ``warm::WHAT`` of a task."""
    agent, _, item = names.partition("::")
    if not agent:
        return "tasks run with an agent only; add --evocode-agent=oracle (or another), or --evocode-check"
    what = f"{item} is a round" if item else f"{agent} is an attempt"
    if agent == "check":
        return "this is a check of a task; add --evocode-check"
    if agent == "warm":
        return "this is made ready for later runs; add --evocode-warm"
    name = re.sub(r"\.\d+$", "", agent)
    if name in ("oracle", "nop"):
        return f"{what} of a task, which runs with an agent only; add --evocode-agent={name}"
    return f"{what} of a task, which runs with an agent only; add --evocode-agent=AGENT for the one called {name} here"


def is_in_task(nodeid: str) -> bool:
    """Tell whether a test is a round of an attempt, or a check of a task."""
    return f"{TASK_FILE}::" in nodeid


def task_directory(nodeid: str, config: pytest.Config) -> Path:
    """Return the directory of the task that a test of a session with tasks belongs to."""
    return path_of(config, nodeid).parent.resolve()
