"""``evocode plan``: what differences can be seen, and what a wanted one takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt

OLD = {
    "a": ("pppp", "ppff"),
    "b": ("pfff", "pppf"),
    "c": ("ffff", "ffff"),
    "d": ("ppff", "pppf"),
    "e": ("pppp", "pppp"),
}
NEW = {
    "a": ("pppp", "pppp"),
    "b": ("ffff", "pfff"),
    "c": ("ppff", "ppff"),
    "d": ("pfff", "pppf"),
    "e": ("pppp", "pppp"),
}


def write(directory: Path, *, attempts: int = 2, tasks: str = "abcdef") -> None:
    """Both agents at some of the tasks."""
    for agent, made in (("old", {**OLD, "f": ("pppf", "pfff")}), ("new", {**NEW, "f": ("pppp", "pppp")})):
        for task in tasks:
            for number, letters in enumerate(made[task][:attempts], 1):
                write_attempt(directory, task, agent, letters, number=number)


def test_the_table_tells_what_so_many_tasks_and_attempts_show(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results")
    ran = evocode("plan", "-q", "old", "new", "--difference", "20")
    assert ran.status == 0
    assert ran.lines == [
        "A: old",
        "B: new",
        "observed at 6 tasks and 2 attempts, in points of the Dataset Score:",
        "the difference varies by 28.0 (SD) between tasks, and by 30.6 from attempt to attempt",
        "",
        "smallest difference that is seen in 80 of 100 comparisons, at p <= 0.05:",
        "tasks 1 attempt 2 attempts 4 attempts 8 attempts 16 attempts",
        "6 74.3 to over 100 63.4 to over 100 57.1 to over 100 53.7 to over 100 52.0 to over 100",
        "10 41.5 to 66.6 35.4 to 62.4 31.9 to 60.5 30.0 to 59.5 29.0 to 59.0",
        "20 27.4 to 43.9 23.4 to 41.2 21.0 to 39.9 19.8 to 39.3 19.1 to 38.9",
        "50 16.8 to 26.9 14.3 to 25.2 12.9 to 24.4 12.1 to 24.0 11.7 to 23.8",
        "100 11.7 to 18.8 10.0 to 17.6 9.0 to 17.1 8.5 to 16.8 8.2 to 16.7",
        "200 8.3 to 13.2 7.0 to 12.4 6.3 to 12.0 6.0 to 11.8 5.8 to 11.7",
        "the first number of two is by what was observed, the second by 90 % upper bounds of how much varies, "
        "and keeps the power",
        "",
        "with 6 tasks and 2 attempts you see differences over 63.4 to over 100 points (80 % power, p <= 0.05)",
        "for 20 points take 27 to 79 tasks with 2 attempts; at these 6 no number of attempts is enough",
    ]


def test_where_attempts_alone_are_enough_their_number_is_told(evocode: Evocode, tmp_path: Path) -> None:
    for task, old, new in (
        ("a", "pppp ppff pppp", "pppf ffff pfff"),
        ("b", "ffff pppf pfff", "ppff pppp pppf"),
        ("c", "pppp ffff ppff", "pppp ppff ffff"),
        ("d", "ffff pppp pfff", "ffff pppf pppf"),
        ("e", "ppff pppp pppf", "pfff ffff ppff"),
        ("f", "pppp pfff ffff", "pppp pppp pfff"),
        ("g", "pppp pfff pfff", "pppp pppf pfff"),
    ):
        for agent, attempts in (("old", old), ("new", new)):
            for number, letters in enumerate(attempts.split(), 1):
                write_attempt(tmp_path / "evocode-results", task, agent, letters, number=number)
    ran = evocode("plan", "-q", "old", "new", "--difference", "72")
    assert ran.lines[-1] == "for 72 points take k = 2 to 7 attempts at these 7 tasks, or 6 to 8 tasks with 3 attempts"


def test_one_attempt_does_not_show_how_attempts_vary(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", attempts=1)
    ran = evocode("plan", "-q", "old", "new")
    assert ran.lines == [
        "A: old",
        "B: new",
        "observed at 6 tasks and 1 attempt, in points of the Dataset Score:",
        "the difference varies by 29.2 (SD) from task to task",
        "",
        "no number is given: one attempt does not tell how attempts vary: make two or more of either side",
    ]
    (found,) = evocode("plan", "old", "new", "--json").json
    assert found["variance"] == {"between_tasks": None, "within_tasks": None, "measured": False}
    assert found["why_not"] == ran.lines[-1].removeprefix("no number is given: ")
    assert (found["detectable"], {each["detectable"] for each in found["table"]}) == (None, {None})
    assert {*found["wanted"].values()} == {5.0, None}


def test_of_one_agent_another_is_expected_to_vary_as_much(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results")
    ran = evocode("plan", "old", "--correlation", "0.8")
    assert ran.lines[:2] == ["A: old", "B: any agent that varies as much, with a correlation of 0.8 over tasks"]
    alike, apart = (evocode("plan", "old", "--correlation", each, "--json").json[0] for each in ("0.8", "0.2"))
    assert alike["detectable"] < apart["detectable"]
    assert alike.keys() == apart.keys()
    assert "second" not in alike


def test_json_has_what_is_printed(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results")
    (found,) = evocode("plan", "old", "new", "--difference", "20", "--power", "0.9", "--alpha", "0.04", "--json").json
    assert (found["first"], found["second"]["name"]) == ({"name": "old", "in": "old"}, "new")
    assert (found["tasks"], found["attempts"], found["power"], found["alpha"]) == (6, [2, 2], 0.9, 0.04)
    assert found["wanted"]["difference"] == 20
    cells = {(each["tasks"], each["attempts"]): each["detectable"] for each in found["table"]}
    assert cells[6, 2] == pytest.approx(found["detectable"])
    assert cells[100, 16] < cells[100, 1] < cells[10, 1]
    assert found["detectable_as_observed"] < found["detectable"]
    assert found["wanted"]["tasks_as_observed"] < found["wanted"]["tasks"]
    assert found["why_not"] is None


def test_two_directories_are_planned_for_agent_by_agent(evocode: Evocode, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name)
    found = evocode("plan", "one", "two", "--json").json
    assert [(each["first"]["name"], each["second"]["name"]) for each in found] == [("new", "new"), ("old", "old")]


def test_what_nothing_can_be_planned_from_is_told(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "few", tasks="abcd")
    ran = evocode("plan", "--results", "few", "old", "new")
    assert (ran.status, ran.out) == (1, "")
    assert "note: old and new: below 5 tasks in common it is not known how tasks vary; run more" in ran.err
    assert "there is nothing to plan from" in ran.err
    write(tmp_path / "evocode-results", attempts=1)
    assert (
        "no number is given: nothing varies here, so it is not known what differences could be seen"
        in evocode("plan", "old", "old").lines
    )
    assert evocode("plan", "nobody").status == 2


def test_only_tasks_of_equal_contents_are_planned_from_unless_all_are_wanted(evocode: Evocode, tmp_path: Path) -> None:
    for agent, contents in (("old", "sha256:0"), ("new", "sha256:1")):
        for task in "abcdef":
            digest = contents if task == "a" else "sha256:0"
            write_attempt(tmp_path / "evocode-results", task, agent, "pf" if task in "abc" else "pp", task_hash=digest)
    assert evocode("plan", "old", "new", "--json").json[0]["tasks"] == 5
    assert evocode("plan", "old", "new", "--any-version", "--json").json[0]["tasks"] == 6


def test_single_rounds_are_planned_for_in_points_of_sr(evocode: Evocode, tmp_path: Path) -> None:
    for task, letters in zip("abcde", ("pf", "pp", "ff", "pf", "pp"), strict=True):
        write_attempt(tmp_path / "evocode-results", task, "gpt", letters, mode="single-round")
    assert "observed at 5 tasks and 1 attempt, in points of the SR by task:" in evocode("plan", "gpt").lines
