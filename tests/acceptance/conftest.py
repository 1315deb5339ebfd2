"""Tiny tasks, written on the spot, and pytest sessions that run them for real."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_evocode.results.directory import AttemptDirectory

# Imported here once: pytester forgets what an inner session imports, and the next one would pay for it again.
from pytest_evocode.results.records import AttemptRecord, RunRecord
from tests.terminals import HANGS, Person

DOCKERFILE = "FROM python:3.11-slim-bookworm\nWORKDIR /app\n"
# For the same reason, and because a package would hold on to the modules of the session before.
for _name in ("checks.lint", "checks.runner", "plugin.checks"):
    importlib.import_module(f"pytest_evocode.{_name}")
# Plugins of libraries, which take a session longer to import than all of ours.
UNUSED = ("-p", "no:hypothesispytest", "-p", "no:anyio")
_PYTEST = [sys.executable, "-m", "pytest", *UNUSED, "--evocode-replay"]


class WriteTask(Protocol):
    """Writes a task below ``tasks/`` and returns its directory.

    Round i appends ``line-i`` to ``log.txt``; its suite has one case for each line up to i. The mappings replace by
    round number: ``solve`` and ``test`` the scripts (None: no solution), ``step`` more keys of its [[steps]] entry,
    ``workdir`` files that the round brings. Rounds in ``native`` have that as their ``test_native.py`` and no script.
    ``toml`` goes to the top of task.toml, ``files`` anywhere in the task.
    """

    def __call__(
        self,
        name: str = "a",
        rounds: int = 2,
        *,
        solve: Mapping[int, str | None] = ...,
        test: Mapping[int, str] = ...,
        native: Mapping[int, str] = ...,
        step: Mapping[int, str] = ...,
        workdir: Mapping[int, Mapping[str, str]] = ...,
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = ...,
    ) -> Path: ...


def suite_up_to(last: int) -> str:
    """A test.sh with one case per line that rounds 1 to ``last`` append."""
    return "\n".join(
        (
            "reward=1",
            "for i in $(seq " + str(last) + "); do",
            '  if grep -qx "line-$i" log.txt; then status=success; else status=fail; reward=0; fi',
            '  echo "CASE_RESULT case_id=has-line-$i origin_step=round-$i case_type=core status=$status'
            ' intent=\\"line $i is kept\\" expected=\\"line-$i\\" actual=\\"$(tail -n1 log.txt)\\""',
            "done",
            "echo $reward > /logs/verifier/reward.txt",
        )
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")


@pytest.fixture
def write_task(pytester: pytest.Pytester) -> WriteTask:
    """See :class:`WriteTask`."""

    def write(
        name: str = "a",
        rounds: int = 2,
        *,
        solve: Mapping[int, str | None] = {},
        test: Mapping[int, str] = {},
        native: Mapping[int, str] = {},
        step: Mapping[int, str] = {},
        workdir: Mapping[int, Mapping[str, str]] = {},
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = {},
    ) -> Path:
        task = pytester.path / "tasks" / name
        entries = [f'[[steps]]\nname = "round-{index}"\n{step.get(index, "")}' for index in range(1, rounds + 1)]
        _write(task / "task.toml", "\n\n".join([toml, *entries]))
        _write(task / "environment/Dockerfile", dockerfile)
        for index in range(1, rounds + 1):
            directory = task / f"steps/round-{index}"
            _write(directory / "instruction.md", f"Append line-{index} to log.txt.")
            script = solve.get(index, f"echo line-{index} >> log.txt")
            if script is not None:
                _write(directory / "solution/solve.sh", script)
            if index in native:
                _write(directory / "tests/test_native.py", native[index])
            else:
                _write(directory / "tests/test.sh", test.get(index, suite_up_to(index)))
            for relative, text in workdir.get(index, {}).items():
                _write(directory / "workdir" / relative, text)
        for relative, text in files.items():
            _write(task / relative, text)
        return task

    return write


class WriteNative(Protocol):
    """Writes a task that native suites verify below ``tasks/`` and returns its directory.

    Round i appends ``line-i`` to ``log.txt``; its test requires that and has ``line-i`` as its requirement. ``solve``
    and ``test`` replace scripts and test modules by round number, ``files`` anything in the task.
    """

    def __call__(
        self,
        name: str = "a",
        rounds: int = 1,
        *,
        solve: Mapping[int, str] = ...,
        test: Mapping[int, str] = ...,
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = ...,
    ) -> Path: ...


def native_test(index: int) -> str:
    """The test module of a round: its line is there."""
    return f"""import pytest

@pytest.mark.requirement("line-{index}")
def test_line_{index}():
    with open("log.txt") as log:
        assert "line-{index}" in log.read().split()
"""


@pytest.fixture
def write_native(pytester: pytest.Pytester) -> WriteNative:
    """See :class:`WriteNative`."""

    def write(
        name: str = "a",
        rounds: int = 1,
        *,
        solve: Mapping[int, str] = {},
        test: Mapping[int, str] = {},
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = {},
    ) -> Path:
        task = pytester.path / "tasks" / name
        entries = [f'[[steps]]\nname = "round-{index}"' for index in range(1, rounds + 1)]
        _write(task / "task.toml", "\n\n".join([toml, *entries]))
        _write(task / "environment/Dockerfile", dockerfile)
        for index in range(1, rounds + 1):
            directory = task / f"steps/round-{index}"
            _write(directory / "instruction.md", f"Append line-{index} to the log.")
            script = f"#!/bin/bash\n{solve.get(index, f'echo line-{index} >> log.txt')}"
            _write(directory / "solution/solve.sh", script)
            (directory / "solution/solve.sh").chmod(0o755)
            _write(directory / f"tests/test_line_{index}.py", test.get(index, native_test(index)))
        for relative, text in files.items():
            _write(task / relative, text)
        return task

    return write


@dataclass(frozen=True)
class Session:
    """A pytest session that has ended, and what it left."""

    result: pytest.RunResult
    directory: Path

    @property
    def exit_status(self) -> int:
        """The process's exit code."""
        return int(self.result.ret)

    @cached_property
    def text(self) -> str:
        """All that was printed, the error channel too."""
        return self.result.stdout.str() + "\n" + self.result.stderr.str()

    @property
    def outcomes(self) -> dict[str, int]:
        """The numbers of the last line."""
        return self.result.parseoutcomes()

    @property
    def results(self) -> Path:
        """The results directory."""
        return self.directory / "evocode-results"

    @cached_property
    def run(self) -> RunRecord:
        """The newest record of a run."""
        newest = max((self.results / "runs").glob("*.json"))
        return RunRecord.model_validate_json(newest.read_text(encoding="utf-8"))

    def attempt(self, task: str = "a", agent: str = "oracle", number: int = 1) -> Path:
        """The directory of an attempt of that run."""
        return self.results / task / "harbor_jobs" / agent / self.run.run / f"{task}__a{number}"

    def record(self, task: str = "a", agent: str = "oracle", number: int = 1) -> AttemptRecord:
        """An attempt's record, with all cases."""
        record = AttemptDirectory(self.attempt(task, agent, number)).read_attempt()
        assert record is not None
        return record

    def has(self, *patterns: str) -> None:
        """Assert that lines match, in this order, with others between them."""
        self.result.stdout.fnmatch_lines([*patterns])

    def lacks(self, pattern: str) -> None:
        """Assert that no line matches."""
        self.result.stdout.no_fnmatch_line(pattern)

    def json_report(self) -> dict[str, Any]:
        """What ``--json-report`` wrote."""
        found: dict[str, Any] = json.loads((self.directory / ".report.json").read_text(encoding="utf-8"))
        return found


class RunTasks(Protocol):
    """Runs pytest with ``--evocode-agent=AGENT --evocode-env=ENV``; None leaves the option out.

    Unless ``replay`` is false it plays all rounds: tests have tasks of the same content.
    """

    def __call__(
        self,
        *arguments: str,
        agent: str | None = "oracle",
        env: str | None = "sandbox",
        subprocess: bool = False,
        replay: bool = True,
    ) -> Session: ...


@pytest.fixture
def run_tasks(pytester: pytest.Pytester) -> RunTasks:
    """See :class:`RunTasks`."""

    def run(
        *arguments: str,
        agent: str | None = "oracle",
        env: str | None = "sandbox",
        subprocess: bool = False,
        replay: bool = True,
    ) -> Session:
        ours = [f"--evocode-agent={agent}"] if agent else []
        ours += [f"--evocode-env={env}"] if env else []
        ours += ["--evocode-replay"] if agent and replay else []
        start = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
        return Session(start("-W", "error", *UNUSED, *ours, *arguments), pytester.path)

    return run


class AtTerminal(Person):
    """Somebody who starts a session and answers what it opens."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.resize(50, 200)
        self._directory = directory
        self.session: subprocess.Popen[bytes] | None = None

    def pytest(self, *arguments: str, what: str = "--evocode-agent=oracle", env: str = "sandbox") -> None:
        """Start a session."""
        self.session = self.start([*_PYTEST, what, f"--evocode-env={env}", *arguments], self._directory)

    def asks(self, script: str) -> str:
        """Have the shell that is open run a script, and return what it printed."""
        self.sees("bash-")
        self.type(f"stty -echo; echo be''gin; {script}; echo e''nd; stty echo\n")
        self.sees("begin\r\n")
        return self.sees("end\r\n").replace("\r\n", "\n")

    def ends(self) -> tuple[int, str]:
        """Wait for the session's end: its exit code, and what it printed since."""
        assert self.session is not None
        return self.session.wait(HANGS), self.seen()


@pytest.fixture
def person(pytester: pytest.Pytester) -> Iterator[AtTerminal]:
    """See :class:`AtTerminal`."""
    with AtTerminal(pytester.path) as somebody:
        yield somebody
        if somebody.session is not None and somebody.session.poll() is None:
            somebody.session.kill()
            somebody.session.wait()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that the image of the tiny tasks is built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _environment(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(shared_cache))
    monkeypatch.setenv("COLUMNS", "160")  # Wide enough for whole messages in summaries.
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@dataclass(frozen=True)
class Checked:
    """A session of ``--evocode-check`` that has ended."""

    session: Session

    @property
    def outcomes(self) -> dict[str, str]:
        """By the checks' names, in order."""
        return {name: str(test["outcome"]) for name, test in self._tests.items()}

    @property
    def messages(self) -> dict[str, str]:
        """What the checks that did not pass say."""
        return {
            name: str(shown).strip()
            for name, test in self._tests.items()
            if (shown := (test.get("call") or test["setup"]).get("longrepr")) is not None
        }

    @property
    def warnings(self) -> list[str]:
        """What the session was warned of."""
        return [str(warning["message"]) for warning in self.session.json_report().get("warnings", [])]

    @property
    def _tests(self) -> dict[str, dict[str, Any]]:
        return {test["nodeid"].partition("::check::")[2]: test for test in self.session.json_report()["tests"]}


class CheckTasks(Protocol):
    """Runs ``pytest --evocode-check`` for ``tasks/a``, or for what the arguments name."""

    def __call__(self, *arguments: str, env: str = "sandbox", subprocess: bool = False) -> Checked: ...


@pytest.fixture
def check_tasks(run_tasks: RunTasks) -> CheckTasks:
    """See :class:`CheckTasks`."""

    def check(*arguments: str, env: str = "sandbox", subprocess: bool = False) -> Checked:
        tasks = [] if any(argument.startswith("tasks") for argument in arguments) else ["tasks/a"]
        options = ("--evocode-check", "--json-report", "-Wdefault::pytest.PytestWarning")
        return Checked(run_tasks(*options, *arguments, *tasks, agent=None, env=env, subprocess=subprocess))

    return check
