"""How long tests take: what a run prints and keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import durations

# Workers of the session inside import what stands here, which no installation brings along.
CONFTEST = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from tests.conftest import pytest_itemcollected
from tests.durations import Durations


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config))
"""
TESTS = """
import pytest

@pytest.mark.slow("Waits for a train.")
def test_slow(): ...

@pytest.mark.parametrize("n", range(11))
def test_other(n): ...
"""


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_a_run_keeps_all_durations_and_prints_the_slowest_and_the_folders(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    kept = pytester.path / "kept/durations.json"
    monkeypatch.setenv(durations.FILE, str(kept))
    monkeypatch.setattr(durations, "LONG", 0.0)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # Where the tests themselves are run by one.
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", pytest="[pytest]\nmarkers = slow\n")
    path = pytester.mkdir("tests").joinpath("trial")
    path.mkdir()
    (path / "test_x.py").write_text(TESTS)
    result = pytester.runpytest_inprocess(*workers)
    ids = {"tests/trial/test_x.py::test_slow", *(f"tests/trial/test_x.py::test_other[{n}]" for n in range(11))}
    assert json.loads(kept.read_text()).keys() == ids
    lines = [line for line in result.outlines if line]
    section = lines[next(n for n, line in enumerate(lines) if "= durations =" in line) + 1 :]
    assert {line.split()[2] for line in section[:10]} < ids
    assert section[10].endswith(" s  tests/trial, 12 tests")
    assert section[11].startswith("over 0 s; ")
    assert {line.strip() for line in section[12:-1]} == ids - {"tests/trial/test_x.py::test_slow"}


def test_a_few_tests_print_nothing(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", pytest="[pytest]\nmarkers = slow\n")
    pytester.makepyfile("def test_it(): ...\n")
    pytester.runpytest_inprocess().stdout.no_fnmatch_line("*durations*")
