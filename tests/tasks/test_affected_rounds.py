"""Which rounds a change of a task's file has a say in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.cli.new_task import write_task
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.round_changes import affected_rounds


def affected(task: Path, path: str) -> list[str]:
    return [round_.name for round_ in affected_rounds(load_task(task), task / path)]


@pytest.mark.parametrize(
    ("path", "rounds"),
    [
        ("task.toml", [1, 2, 3]),
        ("environment/Dockerfile", [1, 2, 3]),
        ("environment/new/deep.csv", [1, 2, 3]),
        ("tests/conftest.py", [1, 2, 3]),
        ("steps/round-2/solution/solve.sh", [2, 3]),
        ("steps/round-2/workdir/setup.sh", [2, 3]),
        ("steps/round-2/tests/test_zones.py", [2, 3]),
        ("steps/round-2/tests/gone.py", [2, 3]),
        ("steps/round-3/tests/test_zone_3.py", [3]),
        ("steps/round-2/instruction.md", []),
        ("steps/round-9/solution/solve.sh", []),
        ("steps/round-20/tests/test_it.py", []),
        ("README.md", []),
        ("evocode.lock", []),
    ],
)
def test_a_file_affects_the_rounds_that_are_made_of_it(tmp_path: Path, path: str, rounds: list[int]) -> None:
    write_task(tmp_path / "a", rounds=3, form="native")
    assert affected(tmp_path / "a", path) == [f"round-{index}" for index in rounds]


def test_a_script_verifies_its_own_round_only(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=3, form="script")
    assert affected(tmp_path / "a", "steps/round-2/tests/test.sh") == ["round-2"]
    assert affected(tmp_path / "a", "steps/round-2/solution/solve.sh") == ["round-2", "round-3"]


def test_a_native_suite_has_no_tests_of_rounds_with_a_script(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=3, form="native")
    (tmp_path / "a/steps/round-2/tests/test.sh").write_text("true\n")
    assert affected(tmp_path / "a", "steps/round-1/tests/test_price.py") == ["round-1", "round-3"]
    assert affected(tmp_path / "a", "steps/round-2/tests/test.sh") == ["round-2"]


def test_a_solution_of_the_task_affects_those_from_the_first_without_one_of_their_own(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=3, form="script")
    (tmp_path / "a/steps/round-2/solution").rename(tmp_path / "a/solution")
    assert affected(tmp_path / "a", "solution/solve.sh") == ["round-2", "round-3"]
    assert affected(tmp_path / "a", "steps/round-2/solution/solve.sh") == ["round-2", "round-3"]
    assert affected(tmp_path / "a", "steps/round-1/solution/solve.sh") == ["round-1", "round-2", "round-3"]


def test_a_task_of_one_step_has_its_files_at_the_top(tmp_path: Path) -> None:
    files = {
        "task.toml": "",
        "instruction.md": "Do it.",
        "environment/Dockerfile": "FROM x",
        "solution/solve.sh": "",
        "tests/test.sh": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    for path, rounds in {"solution/solve.sh": ["round-1"], "tests/test.sh": ["round-1"], "instruction.md": []}.items():
        assert affected(tmp_path, path) == rounds
