"""Tasks for the viewer: requirements through the rounds, cases by attempt and round, instructions and suites."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.report.html.attempt import with_cases
from pytest_evocode.report.html.task import lineage_of, task_data
from pytest_evocode.results.records import Case
from pytest_evocode.tasks import Task, load_task
from tests.report.html.contract import faults
from tests.report.html.recordings import REPOSITORY, Played, failing, passing, recorded, stored, write_attempt

RECIPES = REPOSITORY / "example_tasks" / "process" / "recipes"


def shown_task(*directories: Path, task: Task | None = None, name: str = "ledger") -> dict[str, Any]:
    """What the viewer gets of a task with the attempts in some directories."""
    lineages = [lineage_of(with_cases(stored(each))[0], id=f"a{number}") for number, each in enumerate(directories)]
    data = task_data(name, lineages, task, id="t")
    assert faults(data, "TaskData") == []
    return data


def test_each_case_has_a_character_for_each_round_with_a_verdict(tmp_path: Path) -> None:
    directory = write_attempt(
        tmp_path,
        Played([passing("a"), failing("b"), Case(id="c", status="skipped")]),
        Played(None),
        Played([failing("a", failure="regression"), failing("b", failure="carried"), failing("d", failure="stale")]),
    )
    data = shown_task(directory)
    assert [case["id"] for case in data["cases"]] == ["a", "b", "c", "d"]
    assert data["attempts"] == [{"id": "a0", "rounds": {"1": "pnk.", "3": "rc.s"}}]


def test_attempts_that_ran_other_cases_share_one_list(tmp_path: Path) -> None:
    first = write_attempt(tmp_path / "1", Played([passing("a")]))
    second = write_attempt(tmp_path / "2", Played([passing("b"), passing("a")]))
    data = shown_task(first, second)
    assert [each["rounds"]["1"] for each in data["attempts"]] == ["p.", "pp"]


def test_without_the_task_requirements_live_as_long_as_their_cases(tmp_path: Path) -> None:
    directory = write_attempt(
        tmp_path,
        Played([passing("a", requirement="R1", kind="core")]),
        Played([passing("a", requirement="R1", kind="core"), passing("b", origin="round-2")]),
        Played([passing("b", origin="round-2")]),
    )
    data = shown_task(directory)
    assert data["requirements"] == [
        {"id": "R1", "introduced": 1, "retired": 3, "kinds": ["core"], "cases": [0]},
        {"id": "round-2", "introduced": 2, "retired": None, "kinds": [], "cases": [1]},
    ]
    assert data["rounds"] is None
    assert data["note"] == "The task was not found; name its directory with --tasks to see its instructions."


def test_a_task_has_its_instructions_suites_and_requirements() -> None:
    task = load_task(RECIPES)
    data = shown_task(recorded("recipes/reckless"), recorded("recipes/disciplined"), task=task, name="recipes")
    assert data["note"] == ""
    rounds = data["rounds"]
    assert [each["name"] for each in rounds] == [round_.name for round_ in task.rounds]
    assert rounds[1]["instruction"] == task.rounds[1].instruction.read_text()
    assert all(set(each["suite"]) <= {case["id"] for case in data["cases"]} for each in rounds)
    assert [len(each["suite"]) for each in rounds] == [8, 12, 15]
    known = {each["id"]: each for each in data["requirements"]}
    for requirement in task.requirements:
        assert known[requirement.id]["introduced"] == int(requirement.introduced.removeprefix("round-"))
    assert all(case["requirement"] is not None for case in data["cases"])
    assert {each["id"] for each in data["attempts"]} == {"a0", "a1"}


def test_what_cannot_be_read_of_a_task_is_said(tmp_path: Path) -> None:
    shutil.copytree(RECIPES, tmp_path / "recipes")
    task = load_task(tmp_path / "recipes")
    (tmp_path / "recipes/evocode.lock").write_text("{")
    task.rounds[0].instruction.unlink()
    data = shown_task(recorded("recipes/reckless"), task=task, name="recipes")
    assert "evocode.lock" in data["note"]
    assert "instruction.md: it cannot be read" in data["note"]
    assert [len(each["suite"]) for each in data["rounds"]] == [8, 12, 15]


@pytest.mark.parametrize("cases", [None, ()])
def test_a_task_without_a_case_is_valid(tmp_path: Path, cases: tuple[()] | None) -> None:
    data = shown_task(write_attempt(tmp_path, Played(cases)))
    assert (data["cases"], data["requirements"]) == ([], [])


def test_a_task_without_an_attempt_is_valid() -> None:
    data = shown_task(task=load_task(RECIPES), name="recipes")
    assert data["attempts"] == []
    assert len(data["rounds"]) == 3
    assert shown_task()["requirements"] == []
