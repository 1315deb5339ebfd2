"""Measure the line coverage of Python files under any test command.

coverage.py starts with every Python interpreter that the command starts. It is uploaded as pure Python, so that the
image needs neither coverage.py nor a compiler.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_evocode.environments import Environment, User, read_environment_file
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import UsageError
from pytest_evocode.process.execution.command_results import CoveredRun

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
