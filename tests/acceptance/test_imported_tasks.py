"""Imported tasks run as they are: reference solutions pass, and lint has nothing to say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.lint import lint
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.foreign.importing import import_foreign
from tests.tasks.foreign import harbor_tasks, other_tasks, rigorbench_task
from tests.tasks.foreign.slopcodebench_problem import PROBLEM

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks

FILES = {
    "slopcodebench": PROBLEM,
    "rigorbench": rigorbench_task.FILES,
    "terminal-bench": other_tasks.TERMINAL_BENCH,
    "exercism": other_tasks.EXERCISM,
    "swe-bench": other_tasks.SWE_BENCH,
}


def write(directory: Path, files: Mapping[str, str]) -> Path:
    for place, text in files.items():
        path = directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return directory


def sources(format_: str, directory: Path) -> list[Path]:
    if format_ == "harbor":
        second = {**harbor_tasks.FILES, **harbor_tasks.SECOND}
        return [write(directory / "greet", harbor_tasks.FILES), write(directory / "leave", second)]
    one = write(directory / "one", FILES[format_])
    return [one / "instance.jsonl" if format_ == "swe-bench" else one]


@pytest.mark.parametrize("format_", ["harbor", *FILES])
def test_lint_finds_no_mistake(tmp_path: Path, format_: str) -> None:
    import_foreign(format_, sources(format_, tmp_path), tmp_path / "made")
    found = lint(load_task(tmp_path / "made"))
    assert [line for line in found if not isinstance(line, CheckWarning)] == []


@pytest.mark.slow
@pytest.mark.nightly
def test_reference_solutions_pass_the_suites_that_came_with_them(
    pytester: pytest.Pytester, run_tasks: RunTasks
) -> None:
    for name, format_ in (("a", "slopcodebench"), ("b", "harbor"), ("c", "terminal-bench")):
        import_foreign(format_, sources(format_, pytester.path / format_), pytester.path / "tasks" / name)
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 5}
    first, second = session.record("a").rounds
    assert first.verdict is not None
    assert second.verdict is not None
    cases = {case.id.partition("::")[2]: (case.origin, case.kind) for case in second.verdict.cases}
    assert cases == {
        "test_sums[[1, 2]]": ("round-1", "core"),
        "test_sums[[4, 0]]": ("round-1", "core"),
        "TestMistakes::test_no_number": ("round-1", "error"),
        "test_units": ("round-1", ""),
        "test_difference": ("round-2", "core"),
    }
    assert len(first.verdict.cases) == 4
