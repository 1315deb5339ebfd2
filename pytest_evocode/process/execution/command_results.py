"""Results of commands in states of a workspace, cached on this machine by what the state and the command are.

The line coverage of Python files is measured under any test command: coverage.py starts with every Python interpreter
that the command starts. It is uploaded as pure Python, so that the image needs neither coverage.py nor a compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from pytest_evocode.environments import (
    Environment,
    ExecResult,
    User,
    read_environment_file,
)
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import UsageError
from pytest_evocode.process.trajectory.outputs import broken_off, in_short_lines, read_runner_output
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


_PLACE = "/tmp/evocode-coverage"
_LIBRARY = f"{_PLACE}/library"
_DATA = f"{_PLACE}/data"
_START = "import coverage\ncoverage.process_startup()\n"
_IMPORTABLE = f'export PYTHONPATH="{_LIBRARY}${{PYTHONPATH:+:$PYTHONPATH}}"'
_REPORT = f"python3 -m coverage combine -q {_DATA} && python3 -m coverage json -q -i -o {_PLACE}/report.json"
_REPORT_LIMIT = 16 * 2**20


def run_with_coverage(
    environment: Environment, command: str, *, user: User | None, env: Mapping[str, str], timeout: float
) -> CoveredRun:
    """Run a shell line for at most ``timeout`` seconds and return its result with the coverage.

    Raises:
        UsageError: coverage.py is not installed on this machine.
    """
    _install(environment)
    settings = {**env, "COVERAGE_RCFILE": f"{_PLACE}/settings"}
    started = {**settings, "COVERAGE_PROCESS_START": f"{_PLACE}/settings"}
    executed = environment.exec(f"{_IMPORTABLE}\n{command}", user=user, env=started, timeout=timeout)
    report = environment.exec(f"{_IMPORTABLE}\n{_REPORT}", user=user, env=settings, timeout=60)
    found = read_environment_file(environment, f"{_PLACE}/report.json", _REPORT_LIMIT) if report.ok else None
    if found is None:
        why = f"coverage could not be measured: {report.output.strip()[-200:] or 'nothing ran'}"
        return CoveredRun.of(executed, why=why)
    files = json.loads(found)["files"].items()
    lines = {path: (each["executed_lines"], each["missing_lines"]) for path, each in files}
    return CoveredRun.of(executed, lines=lines)


def _install(environment: Environment) -> None:
    try:
        sources = [file for file in importlib.metadata.files("coverage") or () if file.suffix == ".py"]
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(
            "coverage.py is not installed; install it with: pip install 'pytest-evocode[process]'"
        ) from None
    with scratch_directory() as name:
        library = Path(name, "library")
        for file in sources:
            if ".." not in file.parts:
                place = library / str(file)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), place)
        (library / "sitecustomize.py").write_text(_START)
        settings = f"[run]\nparallel = true\nsource = {environment.workdir}\ndata_file = {_DATA}/lines\n"
        settings += "disable_warnings = no-ctracer, no-data-collected, module-not-imported\nrelative_files = true\n"
        Path(name, "settings").write_text(settings)
        environment.upload([Path(name)], _PLACE, writable=True)
    environment.make_directories([_DATA])


def covered_share(lines: Mapping[str, Sequence[Sequence[int]]], paths: Iterable[str]) -> tuple[int, int]:
    """Return how many lines of some files ran, and how many could have; a file that was never loaded has none."""
    ran = total = 0
    for path in paths:
        executed, missing = lines.get(path, ((), ()))
        ran += len(executed)
        total += len(executed) + len(missing)
    return ran, total
