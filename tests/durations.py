"""How long tests take: kept in a file by every run, summed up by folder at its end, and long ones need a reason."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path, PurePosixPath

import pytest

#: Names the file; by default ``durations.json`` in pytest's cache.
FILE = "EVOCODE_TESTS_DURATIONS"
LONG = 10.0
"""Seconds after which a test needs a mark ``slow`` with a reason."""
_SHOWN = 10


class Durations:
    """Adds up the seconds of each test: set-up, call and teardown."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test, on whichever worker it ran."""
        self._seconds[report.nodeid] += report.duration
        for name, value in report.user_properties:
            if name == "slow":
                self._reasons[report.nodeid] = str(value)

    def pytest_sessionfinish(self) -> None:
        """Keep the seconds in a file."""
        if path := self._path():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({id: round(seconds, 3) for id, seconds in self._slowest()}, indent=0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slowest, the sums by folder, and who is long for no reason that is given."""
        if len(self._seconds) <= _SHOWN:
            return
        write = terminalreporter.write_line
        terminalreporter.section("durations")
        for id, seconds in self._slowest()[:_SHOWN]:
            write(f"{seconds:7.1f} s  {id}  {self._reasons.get(id, '')}".rstrip())
        folders: defaultdict[str, list[float]] = defaultdict(list)
        for id, seconds in self._seconds.items():
            folders["/".join(PurePosixPath(id.partition("::")[0]).parts[:2])].append(seconds)
        for folder, each in sorted(folders.items(), key=lambda item: -sum(item[1])):
            write(f"{sum(each):7.1f} s  {folder}, {len(each)} tests")
        long = [id for id, seconds in self._slowest() if seconds > LONG and id not in self._reasons]
        if long:
            write(f"over {LONG:g} s; make them quicker, or say why in a mark slow(...) of the function:")
            for id in long:
                write(f"  {id}")

    def _slowest(self) -> list[tuple[str, float]]:
        return sorted(self._seconds.items(), key=lambda item: -item[1])

    def _path(self) -> Path | None:
        if name := os.environ.get(FILE):
            return Path(name)
        cache = getattr(self._config, "cache", None)
        return Path(cache.mkdir("durations")) / "durations.json" if cache else None
