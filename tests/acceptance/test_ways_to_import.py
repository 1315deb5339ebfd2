"""Beside pytest: a script that drives a trial, and what importing the plugin costs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.conftest import WriteTask

SCRIPT = """
import sys
from pathlib import Path
from pytest_evocode.agents import make_agent
from pytest_evocode.environments import choose_engine
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.trial import Trial

engine, why = choose_engine("sandbox")
for record in Trial(load_task(Path(sys.argv[1])), make_agent("oracle"), engine).run():
    print(record.round, record.outcome)
engine.close()
assert "pytest" not in sys.modules
"""
HEAVY = ("pydantic", "docker", "click", "filelock", "platformdirs", "requests", "tomli", "dockerfile_parse", "xdist")


def python(script: str, *arguments: str) -> str:
    """What a script prints that ends well, without a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def imported_by(statement: str) -> set[str]:
    """Those of the heavy packages that a statement imports."""
    script = f"import sys, pytest; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    return {name.partition(".")[0] for name in python(script).split()}


def test_a_script_of_ten_lines_drives_a_trial(write_task: WriteTask) -> None:
    task = write_task("a", 3, solve={2: "echo wrong >> log.txt"})
    assert python(SCRIPT, str(task)) == "round-1 passed\nround-2 failed\nround-3 failed\n"


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    assert imported_by("import pytest_evocode.plugin").isdisjoint(HEAVY)


def test_a_session_without_an_agent_imports_none_of_its_machinery(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_ours():
            ours = {name for name in sys.modules if name.startswith("pytest_evocode.")}
            assert ours <= {"pytest_evocode.plugin", "pytest_evocode.plugin.options", "pytest_evocode.plugin.hookspecs"}
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
