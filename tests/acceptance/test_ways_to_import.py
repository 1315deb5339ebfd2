"""Beside pytest: a script that drives a trial, and what importing the plugin costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.inner_sessions import UNUSED

if TYPE_CHECKING:
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)


API = Path(__file__).parents[2] / "docs/api.md"
HEAVY = ("pydantic", "docker", "click", "filelock", "platformdirs", "requests", "tomli", "dockerfile_parse", "xdist")


def shown_in_api(heading: str) -> str:
    """The first code of a section of the page."""
    section = API.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    return section.partition("```python\n")[2].partition("```")[0]


def python(script: str, *arguments: str) -> str:
    """What a script prints that ends well, without a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def imported_by(statement: str) -> set[str]:
    """Those of the heavy packages that a statement imports."""
    script = f"import sys, pytest; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    return {name.partition(".")[0] for name in python(script).split()}


def test_a_script_of_ten_lines_drives_a_trial(write_task: WriteTask) -> None:
    task = write_task("a", 2, solve={2: "echo wrong >> log.txt"})
    shown = shown_in_api("An attempt without pytest")
    assert len([line for line in shown.splitlines() if line]) <= 10
    script = shown.replace('"example_tasks/ledger"', repr(str(task))).replace('"auto"', '"sandbox"')
    rounds = python(f'{script}\nimport sys\nassert "pytest" not in sys.modules').splitlines()
    assert [line.split()[:2] for line in rounds] == [
        ["round-1", "passed"],
        ["round-2", "failed"],
    ]


def test_a_function_of_ten_lines_plays_an_episode(write_task: WriteTask) -> None:
    task = write_task("a", 2)
    script = shown_in_api("A task as an environment").replace('"example_tasks/ledger"', repr(str(task)))
    policy = "lambda instruction: 'echo line-1 >> log.txt'"
    played = python(f"{script}\nimport asyncio\nprint(asyncio.run(rollout({policy})))")
    assert played == "{'reward': 0.5}\n"


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
    pytester.runpytest_subprocess(*UNUSED).assert_outcomes(passed=1)


def test_in_a_session_with_an_agent_only_tests_have_their_asserts_rewritten(
    pytester: pytest.Pytester, write_task: WriteTask
) -> None:
    write_task()
    pytester.makepyfile(
        """
        import sys

        REWRITES = type(__loader__)

        def test_loaders():
            assert REWRITES.__name__ == "AssertionRewritingHook"
            ours = {name: module for name, module in sys.modules.items() if name.startswith("pytest_evocode.")}
            rewritten = {name for name, module in ours.items() if isinstance(module.__loader__, REWRITES)}
            early = ("", ".options", ".hookspecs", ".pytest_private")  # Before the session is known to have an agent.
            assert rewritten <= {f"pytest_evocode.plugin{name}" for name in early}
            assert len(ours) > 50
        """
    )
    options = ("--evocode-agent=nop", "--evocode-env=sandbox", "-k", "test_loaders")
    pytester.runpytest_subprocess(*UNUSED, *options).assert_outcomes(passed=1, deselected=2)
