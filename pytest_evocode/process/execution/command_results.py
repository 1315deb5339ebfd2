"""Results of commands in states of a workspace, cached on this machine by what the state and the command are."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from pytest_evocode.environments import ExecResult
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.process.trajectory.call_results import in_short_lines
from pytest_evocode.process.trajectory.runner_output import broken_off, read_runner_output
from pytest_evocode.tasks.atomic_write import write_atomically

#: Incremented whenever cached results change their meaning.
_FORMAT = "3"
_KEPT_OUTPUT = 4000  # characters, from the end

Result = TypeVar("Result", bound=BaseModel)


class CommandResult(BaseModel):
    """How a command, such as a build or a test run, ended in one state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exit_code: int | None
    timed_out: bool = False
    output: str = ""
    """The end of the output."""
    tests: dict[str, bool] = {}
    """Whether each test passed, for the tests that the output names."""
    broken_off: tuple[str, ...] = ()
    """The tests of these that ended with an error other than one of their assertions."""
    ran_tests: bool = False
    """Whether the output mentions tests at all."""

    @property
    def ok(self) -> bool:
        """Whether the command ended with exit code 0."""
        return self.exit_code == 0

    @classmethod
    def of(cls, executed: ExecResult, **more: Any) -> Self:
        """Return the result of an executed command, with the fields that a subclass adds."""
        output = in_short_lines(executed.output)
        outcome = read_runner_output(output)
        return cls(
            exit_code=executed.exit_code,
            timed_out=executed.timed_out,
            output=executed.output[-_KEPT_OUTPUT:],
            tests=dict(outcome.tests),
            broken_off=broken_off(output),
            ran_tests=outcome.passed is not None or bool(outcome.tests),
            **more,
        )


class CoveredRun(CommandResult):
    """A test run with the line coverage of the Python files that it loaded."""

    lines: dict[str, tuple[list[int], list[int]]] | None = None
    """By file, the lines that ran and the lines that did not; None where coverage could not be measured."""
    why: str = ""
    """Why coverage could not be measured."""


def key_of(*parts: object) -> str:
    """Return a name for the parts: the hash of their JSON."""
    text = json.dumps([_FORMAT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class ResultCache:
    """A directory of results, one file each."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache_directory() / "process"

    def get(self, key: str, kind: type[Result]) -> Result | None:
        """Return the result stored under a key; None where there is none."""
        with contextlib.suppress(OSError, ValueError):
            return kind.model_validate_json(self._path(key).read_bytes())
        return None

    def put(self, key: str, result: BaseModel) -> None:
        """Store a result under a key."""
        write_atomically(self._path(key), result.model_dump_json())

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"
