"""Results that an agent, a program or a stranger has put traps into: a report is written, and says what it left out."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.html import trajectory
from pytest_evocode.report.html.contents import ReportContents
from pytest_evocode.report.html.folder import MARKER
from pytest_evocode.report.html.ids import task_id
from pytest_evocode.report.html.writing import WrittenReport, write_report
from pytest_evocode.results.loading import load_results
from tests.report.html.reports import unpacked, value_in
from tests.result_trees import write_attempt

SECRET = "the words of another file"
OUTPUT, CASES, STEPS = "verifier/test-stdout.txt", "verifier/cases.json", "agent/trajectory.json"


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    """An attempt of two rounds."""
    return write_attempt(tmp_path / "results", "a", "gpt", "pf", cases=["pp", "pf"])


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that looks like a round's, and is none of the results."""
    outside = tmp_path / "outside"
    for name, text in (
        (OUTPUT, SECRET),
        (CASES, json.dumps([{"id": SECRET, "status": "passed"}])),
        (STEPS, json.dumps({"steps": [{"step_id": 1, "source": "agent", "message": SECRET}]})),
        (f"artifacts/{SECRET}", ""),
    ):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text(text)
    return outside


@pytest.fixture
def write(tmp_path: Path) -> Callable[[], WrittenReport]:
    """Writes the report of the results."""

    def write() -> WrittenReport:
        found = load_results([tmp_path / "results"])
        return write_report(tmp_path / "report", ReportContents(found, score_table(found), [tmp_path / "results"]))

    return write


def texts(report: Path) -> str:
    return "\n".join(json.dumps(unpacked(path.read_bytes())) for path in (report / "data").rglob("*.js"))


def edit_record(attempt: Path, **rounds: Any) -> None:
    path = attempt / "result.json"
    record = json.loads(path.read_text())
    record["declared_rounds"] = rounds["names"]
    for each, name in zip(record["rounds"], rounds["names"], strict=True):
        each["round"] = name
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("name", [OUTPUT, CASES, STEPS])
def test_a_link_that_leads_out_of_the_attempt_is_not_read(
    attempt: Path, outside: Path, write: Callable[[], WrittenReport], name: str
) -> None:
    link = attempt / "steps" / "round-1" / name
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside / name)
    written = write()
    assert SECRET not in texts(written.page.parent)
    (problem,) = written.problems
    assert str(link) in problem
    assert "it lies outside of" in problem


def test_neither_is_a_directory_of_a_round_that_is_a_link(
    attempt: Path, outside: Path, write: Callable[[], WrittenReport]
) -> None:
    (attempt / "steps" / "round-1").rename(attempt / "before")
    (attempt / "steps" / "round-1").symlink_to(outside)
    assert SECRET not in texts(write().page.parent)


@pytest.mark.parametrize("absolute", [True, False])
def test_the_name_of_a_round_leads_nowhere_else(
    attempt: Path, outside: Path, write: Callable[[], WrittenReport], absolute: bool
) -> None:
    name = str(outside) if absolute else os.path.relpath(outside, attempt / "steps")
    edit_record(attempt, names=[name, "round-2"])
    assert SECRET not in texts(write().page.parent)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, ".", ""])
def test_a_round_that_no_directory_can_be_named_after_is_shown(
    attempt: Path, write: Callable[[], WrittenReport], name: str
) -> None:
    edit_record(attempt, names=[name, "round-2"])
    report = write().page.parent
    (summary,) = value_in(report, "index")["attempts"]
    assert [each["name"] for each in value_in(report, f"attempts/{summary['id']}")["rounds"]] == [name, "round-2"]


@pytest.mark.parametrize("name", [f"steps/round-1/{each}" for each in (OUTPUT, CASES, STEPS)] + ["process.json"])
def test_a_pipe_is_not_waited_for(attempt: Path, write: Callable[[], WrittenReport], name: str) -> None:
    pipe = attempt / name
    pipe.unlink(missing_ok=True)
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    (problem,) = write().problems
    assert str(pipe) in problem
    assert "it is not a regular file" in problem


def test_a_pipe_in_place_of_a_record_is_a_damaged_record(tmp_path: Path, attempt: Path) -> None:
    (attempt / "result.json").unlink()
    os.mkfifo(attempt / "result.json")
    (problem,) = load_results([tmp_path / "results"]).problems
    assert "result.json: it is not a regular file" in problem


def test_directories_of_any_depth_are_gone_through(
    attempt: Path, write: Callable[[], WrittenReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(attempt / "steps" / "round-1")
    for name in ("artifacts", *["a"] * 1200):
        os.mkdir(name)
        os.chdir(name)
    try:
        assert write().page.exists()
    finally:
        # Neither pytest nor shutil can.
        subprocess.run(["rm", "-rf", attempt / "steps"], check=True)


def test_a_trajectory_of_more_values_than_memory_holds_is_not_parsed(
    attempt: Path, write: Callable[[], WrittenReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory, "_MOST_VALUES", 1000)
    path = attempt / "steps" / "round-1" / STEPS
    path.parent.mkdir()
    path.write_text(json.dumps({"steps": [[]] * 1000}))
    (problem,) = write().problems
    assert f"{path}: it has 2,001 values, and up to 1,000 are shown" in problem


@pytest.mark.parametrize("text", ['{"a": 1}', '[{"id": {}, "status": []}]', "[" * 10_000, "[1]"])
def test_cases_that_are_none_are_named(attempt: Path, write: Callable[[], WrittenReport], text: str) -> None:
    (attempt / "steps" / "round-1" / CASES).write_text(text)
    (problem,) = write().problems
    assert "cases.json: it does not hold cases" in problem


def test_tasks_have_pages_of_their_own_whatever_they_are_called(
    tmp_path: Path, write: Callable[[], WrittenReport]
) -> None:
    for name in ("my_Task", task_id("my_Task")):
        write_attempt(tmp_path / "results", name, "gpt", "p", cases=["p"])
    tasks = write().page.parent / "data" / "tasks"
    assert len(list(tasks.iterdir())) == 2
    assert task_id("")


@pytest.mark.parametrize("name", ["data", "csv"])
def test_what_a_link_in_the_report_leads_to_is_left_alone(
    tmp_path: Path, attempt: Path, write: Callable[[], WrittenReport], name: str
) -> None:
    report = write().page.parent
    (report / name).rename(tmp_path / "moved")
    (report / name).symlink_to(tmp_path / "precious")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("")
    with pytest.raises(UsageError, match=f"{name} is a link, and what it leads to is left as it is; remove it"):
        write()
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["thesis.txt"]


def test_what_a_killed_writer_left_is_removed(attempt: Path, write: Callable[[], WrittenReport]) -> None:
    report = write().page.parent
    halves = [".summary.json.abcd_123", "csv/.tasks.csv.abcd1234", "data/.index.js.abcd1234"]
    for name in (*halves, "notes.txt"):
        (report / name).write_text("half")
    write()
    assert [(report / name).exists() for name in (*halves, "notes.txt")] == [False, False, False, True]


@pytest.mark.parametrize("tasks", [[], {"a": []}, {"a": None}, {"a": {"attempts": {"ID": {}}}}])
def test_a_state_that_somebody_damaged_is_no_state(
    attempt: Path, write: Callable[[], WrittenReport], tasks: Any
) -> None:
    marker = write().page.parent / MARKER
    state = json.loads(marker.read_text())
    (id_,) = state["tasks"]["a"]["attempts"]
    marker.write_text(json.dumps(state | {"tasks": json.loads(json.dumps(tasks).replace("ID", id_))}))
    write()
    assert json.loads(marker.read_text())["tasks"] == state["tasks"]


def test_no_cell_of_a_table_is_a_formula(tmp_path: Path, write: Callable[[], WrittenReport]) -> None:
    for agent in ("=cmd|calc", "+1", "-1", "@sum"):
        write_attempt(tmp_path / "results", "a", agent, "pf", cases=["p", "f"])
    tables = list((write().page.parent / "csv").iterdir())
    assert tables
    for path in tables:
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert [cell for cell in cells if cell[:1] in ("=", "+", "@") or cell == "-1"] == [], path.name
