"""What a command did in a state, kept by what the state and the command are."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from pytest_evocode.environments import ExecResult
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.process.trajectory.runner_output import read_runner_output
from pytest_evocode.tasks.atomic_write import write_atomically

#: Counts up when what is kept means something else.
_FORMAT = "1"
_KEPT_OUTPUT = 4000  # characters of an output's end


class CommandResult(BaseModel):
    """How a build or a test run ended in one state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exit_code: int | None
    timed_out: bool = False
    output: str = ""
    """Its end."""
    tests: dict[str, bool] = {}
    """Whether each test passed, where the output names them."""
    ran_tests: bool = False
    """Whether the output speaks of tests at all."""
    extra: dict[str, Any] = {}

    @property
    def ok(self) -> bool:
        """Whether the command ended with exit code 0."""
        return self.exit_code == 0


def result_of(executed: ExecResult, extra: Mapping[str, Any] | None = None) -> CommandResult:
    """What is kept of an executed command."""
    outcome = read_runner_output(executed.output)
    return CommandResult(
        exit_code=executed.exit_code,
        timed_out=executed.timed_out,
        output=executed.output[-_KEPT_OUTPUT:],
        tests=dict(outcome.tests),
        ran_tests=outcome.passed is not None or bool(outcome.tests),
        extra=dict(extra or {}),
    )


def key_of(*parts: object) -> str:
    """A name for whatever the parts are."""
    text = json.dumps([_FORMAT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class ResultCache:
    """Results on this machine; a file each."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache_directory() / "process"

    def get(self, key: str) -> CommandResult | None:
        """The result of that name; None where there is none."""
        with contextlib.suppress(OSError, ValueError):
            return CommandResult.model_validate_json(self._path(key).read_bytes())
        return None

    def put(self, key: str, result: CommandResult) -> None:
        """Keep a result."""
        write_atomically(self._path(key), result.model_dump_json())

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"
