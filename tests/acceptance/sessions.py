"""Pytest sessions that run tasks for real: what they are started with, and what they left."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptRecord, RunRecord
from tests.inner_sessions import UNUSED
from tests.terminals import HANGS, Person

_PYTEST = [sys.executable, "-m", "pytest", *UNUSED, "--evocode-replay"]


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


def sandboxes_left(cache: Path) -> list[Path]:
    """The directories of sandboxes' files in a cache."""
    return [path for path in (cache / "sandboxes").iterdir() if path.is_dir()]


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


class AtTerminal(Person):
    """Somebody who starts a session and answers what it opens."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.resize(50, 200)
        self._directory = directory
        self.session: subprocess.Popen[bytes] | None = None

    def pytest(
        self, *arguments: str, what: str = "--evocode-agent=oracle", env: str = "sandbox", before: Sequence[str] = ()
    ) -> None:
        """Start a session, by the program ``before`` where one is given."""
        self.session = self.start([*before, *_PYTEST, what, f"--evocode-env={env}", *arguments], self._directory)

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
        """What the checks that did not pass say, and why others were skipped."""
        return {
            name: _skip_reason(str(shown)) if test["outcome"] == "skipped" else str(shown).strip()
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


def _skip_reason(shown: str) -> str:
    """The reason in what pytest says of a skipped test: its file, its line and why."""
    _, _, why = ast.literal_eval(shown)
    return str(why).removeprefix("Skipped: ")


class CheckTasks(Protocol):
    """Runs ``pytest --evocode-check`` for ``tasks/a``, or for what the arguments name.

    With ``anew`` no check counts that another session made.
    """

    def __call__(
        self, *arguments: str, env: str = "sandbox", subprocess: bool = False, anew: bool = True
    ) -> Checked: ...
