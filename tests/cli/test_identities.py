"""Who an agent is and at which contents of tasks it ran, in every command that has a row for it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.records import Usage
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt, write_files, write_session

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"
LOW, HIGH = ({"spec": "openai/gpt-5", "options": {"effort": effort}} for effort in ("low", "high"))


@pytest.fixture
def efforts(tmp_path: Path) -> None:
    """Two efforts of one model."""
    write_attempt(tmp_path / "evocode-results", agent="gpt-5", outcomes="pf", run=OLD, made_by=HIGH)
    write_attempt(tmp_path / "evocode-results", agent="gpt-5", outcomes="ff", run=NEW, made_by=LOW)


@pytest.fixture
def changed(tmp_path: Path) -> None:
    """An agent at two contents of a task, and another one at the older."""
    for agent, run, digest, outcomes in (
        ("gpt", OLD, "1" * 64, "ff"),
        ("gpt", NEW, "2" * 64, "pp"),
        ("nop", NEW, "1" * 64, "ff"),
    ):
        write_attempt(tmp_path / "evocode-results", agent=agent, outcomes=outcomes, run=run, task_hash=digest)
    for agent in ("gpt", "nop"):
        write_attempt(tmp_path / "evocode-results", "other", agent, "pp", run=NEW, task_hash="3" * 64)


@pytest.mark.usefixtures("efforts")
def test_two_efforts_are_two_rows_of_results_with_a_note(evocode: Evocode) -> None:
    ran = evocode("results")
    assert [line.split(" ")[:3] for line in ran.lines[1:3]] == [
        ["gpt-5", "effort=high", "50.0"],
        ["gpt-5", "effort=low", "0.0"],
    ]
    assert "not scored together: gpt-5 effort=high, gpt-5 effort=low" in ran.err
    rows = evocode("results", "--json").json["rows"]
    assert [(row["agent"], row["label"], row["name"]) for row in rows] == [
        ("gpt-5", label, label) for label in ("gpt-5 effort=high", "gpt-5 effort=low")
    ]
    assert len({row["identity"] for row in rows}) == 2


@pytest.mark.usefixtures("efforts")
def test_two_efforts_are_two_rows_of_the_leaderboard(evocode: Evocode) -> None:
    board = evocode("leaderboard", "--json").json
    assert [(row["agent"], row["dataset_score"]) for row in board] == [
        ("gpt-5 effort=high", 50.0),
        ("gpt-5 effort=low", 0.0),
    ]
    assert len({row["identity"] for row in board}) == 2
    assert "gpt-5 effort=low" in evocode("leaderboard").out


@pytest.mark.usefixtures("efforts")
def test_an_agent_is_named_by_its_label_or_identity_and_an_ambiguous_name_lists_the_labels(evocode: Evocode) -> None:
    ambiguous = evocode("failures", "--agent", "gpt-5")
    assert ambiguous.status == 2
    assert "several agents are called gpt-5; name one of gpt-5 effort=high, gpt-5 effort=low" in ambiguous.err
    found = evocode("failures", "--agent", "gpt-5 effort=low", "--json").json
    assert list(found["kinds"]) == ["gpt-5 effort=low"]
    identity = found["agents"]["gpt-5 effort=low"]["identity"]
    assert evocode("failures", "--agent", identity, "--json").json == found
    assert "gpt-5 effort=low" in evocode("failures", "--agent", "nobody").err


@pytest.mark.usefixtures("efforts")
def test_two_efforts_are_compared_by_their_labels(evocode: Evocode) -> None:
    (found,) = evocode("compare", "gpt-5 effort=low", "gpt-5 effort=high", "--json").json
    assert (found["first"]["name"], found["second"]["name"]) == ("gpt-5 effort=low", "gpt-5 effort=high")
    assert found["metrics"]["dataset_score"]["difference"] == 50.0
    assert "several agents are called gpt-5" in evocode("compare", "gpt-5", "gpt-5 effort=high").err


def test_directories_are_compared_by_identity_before_names(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "old", agent="gpt-5", outcomes="pf", made_by=HIGH)
    write_attempt(tmp_path / "new", agent="gpt-5", outcomes="pp", made_by=HIGH)
    write_attempt(tmp_path / "new", agent="gpt-5", outcomes="ff", run=NEW, made_by=LOW)
    (found,) = evocode("compare", "old", "new", "--json").json
    assert (found["first"]["name"], found["second"]["name"]) == ("gpt-5 effort=high", "gpt-5 effort=high")


def test_another_agent_of_the_same_name_is_compared_with_a_note(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "old", agent="gpt-5", outcomes="pf", made_by=HIGH)
    write_attempt(tmp_path / "new", agent="gpt-5", outcomes="pp", made_by=LOW, environment="docker")
    ran = evocode("compare", "old", "new")
    assert ran.status == 0
    assert "A is gpt-5 effort=high sandbox and B is gpt-5 effort=low docker" in ran.err


@pytest.mark.usefixtures("efforts")
def test_export_says_who_each_row_is(evocode: Evocode) -> None:
    rows = list(csv.DictReader(evocode("export").out.splitlines()))
    assert {(row["agent"], row["label"]) for row in rows} == {
        ("gpt-5", "gpt-5 effort=high"),
        ("gpt-5", "gpt-5 effort=low"),
    }
    assert len({row["identity"] for row in rows}) == 2


# Contents of tasks.


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize("command", ["results", "leaderboard", "failures", "export"])
def test_a_changed_task_is_told(evocode: Evocode, command: str) -> None:
    told = evocode(command).err
    assert (
        "gpt: tasks changed, attempts before and after are not scored together (--any-version mixes "
        "them): ledger (1 attempt at 2222222, 1 attempt at 1111111)"
    ) in told
    assert "whose scores cannot be compared: ledger (1111111: nop; 2222222: gpt)" in told
    mixed = evocode(command, "--any-version").err
    assert "counted together, as --any-version asks for: ledger (1 attempt at 2222222, 1 attempt at 1111111)" in mixed
    assert "cannot be compared" not in mixed


@pytest.mark.usefixtures("changed")
def test_a_changed_task_splits_rows_with_the_newest_first(evocode: Evocode) -> None:
    rows = evocode("results", "--json").json["rows"]
    assert [(row["name"], row["scores"]["dataset_score"]) for row in rows] == [
        ("gpt", 100.0),
        ("gpt ledger@1111111", 0.0),
        ("nop", 50.0),
    ]
    assert rows[1]["contents"] == {"ledger": "1" * 64}


@pytest.mark.usefixtures("changed")
def test_only_tasks_of_equal_contents_are_compared(evocode: Evocode) -> None:
    ran = evocode("compare", "nop", "gpt", "--json")
    (found,) = ran.json
    assert found["metrics"]["dataset_score"]["tasks"] == 1
    assert found["changed_tasks"] == [{"task": "ledger", "first": "1" * 64, "second": "2" * 64}]
    assert "left out, because their contents differ (--any-version compares them): ledger (1111111, 2222222)" in ran.err
    (mixed,) = evocode("compare", "nop", "gpt", "--any-version", "--json").json
    assert (mixed["metrics"]["dataset_score"]["tasks"], mixed["changed_tasks"]) == (2, [])


def test_without_a_task_of_equal_contents_nothing_is_compared(evocode: Evocode, tmp_path: Path) -> None:
    for agent, digest in (("one", "1"), ("other", "2")):
        write_attempt(tmp_path / "evocode-results", agent=agent, task_hash=digest)
    ran = evocode("compare", "one", "other")
    assert ran.status == 2
    assert "no task has the same contents on both sides" in ran.err


def test_what_is_not_known_to_differ_is_compared_with_a_note(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", agent="one", task_hash="1")
    write_attempt(tmp_path / "evocode-results", agent="other")
    ran = evocode("compare", "one", "other")
    assert ran.status == 0
    assert "it is not known whether these tasks had the same contents on both sides: ledger" in ran.err


# Merging, and process discipline.


def test_two_efforts_of_one_number_are_merged_and_told_apart(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "low", agent="gpt-5", run=OLD, made_by=LOW)
    write_attempt(tmp_path / "high", agent="gpt-5", run=NEW, made_by=HIGH)
    ran = evocode("merge", "low", "high", "-o", "out", "--json")
    assert [row["name"] for row in ran.json["agents"]] == ["gpt-5 effort=high", "gpt-5 effort=low"]
    assert "not scored together: gpt-5 effort=high, gpt-5 effort=low" in ran.err


def test_two_efforts_that_would_lie_in_one_place_are_merged_as_two_runs(evocode: Evocode, tmp_path: Path) -> None:
    """The jobs of a CI matrix begin in the same second now and then."""
    for name, made_by in (("low", LOW), ("high", HIGH)):
        selected = {"ledger": {"gpt-5": [1]}, "other": {"gpt-5": [1]}}
        write_session(tmp_path / name, selected, run=OLD, agents={"gpt-5": made_by})
        write_attempt(tmp_path / name, agent="gpt-5", outcomes="pp", run=OLD, made_by=made_by)
    ran = evocode("merge", "low", "high", "-o", "out", "--json")
    assert [row["name"] for row in ran.json["agents"]] == ["gpt-5 effort=high", "gpt-5 effort=low"]
    assert [row["agent"] for row in ran.json["missing"]] == ["gpt-5 effort=high", "gpt-5 effort=low"]
    rows = list(csv.DictReader(evocode("export", "out").out.splitlines()))
    assert {(row["label"], row["run"]) for row in rows if row["run"]} == {
        ("gpt-5 effort=high", f"{OLD}-2"),
        ("gpt-5 effort=low", OLD),
    }


@pytest.mark.usefixtures("efforts")
def test_two_efforts_have_a_process_each(evocode: Evocode, tmp_path: Path) -> None:
    for path in tmp_path.glob("evocode-results/*/harbor_jobs/*/*/*/steps/round-1"):
        agent = {"name": "shell", "version": "1"}
        steps = [{"step_id": 1, "source": "user", "message": "Do it."}]
        trajectory = {"schema_version": "ATIF-v1.7", "session_id": "1", "agent": agent, "steps": steps}
        write_files(path, {"agent/trajectory.json": trajectory})
    ran = evocode("process", "evocode-results", "--json")
    assert [row["agent"] for row in ran.json] == ["gpt-5 effort=high", "gpt-5 effort=low"]
    assert "not scored together" in ran.err


def test_agents_under_different_conditions_are_told(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", agent="gpt", environment="docker", strict=True)
    write_attempt(tmp_path / "evocode-results", agent="nop", environment="sandbox", strict=False)
    told = evocode("results").err
    assert "conditions differ, which scores depend on: docker (gpt strict); sandbox (nop)" in told
    assert "not strict (nop); strict (gpt strict)" in told
    assert "verify" not in told


def test_of_long_notes_only_names_are_left_out_and_all_that_differs_is_there(evocode: Evocode, tmp_path: Path) -> None:
    agents = [f"an-agent-with-quite-a-long-name-{number}" for number in range(8)]
    for place, agent in enumerate(agents):
        environment = "docker" if place < 6 else "sandbox"
        write_attempt(tmp_path / "evocode-results", agent=agent, environment=environment, strict=False)
    told = f"docker ({agents[0]} and 5 more); sandbox ({agents[6]} and 1 more)"
    assert f"note: conditions differ, which scores depend on: {told}\n" in evocode("results").err
    board = evocode("leaderboard", "--format", "markdown")
    assert f"not one ranking, conditions differ: {told}" in board.out
    assert "--json has all" not in board.out + board.err


ONCE: dict[str, Any] = {"strict": False, "conditions": {"verify-times": "1", "version": "1.0", "image": "a"}}
THRICE: dict[str, Any] = {"strict": False, "conditions": {"verify-times": "3", "version": "1.0", "image": "a"}}


def test_attempts_under_different_settings_are_not_scored_together(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, outcomes="pf", number=1, **ONCE)
    write_attempt(results, outcomes="ff", number=2, run=NEW, **THRICE)
    ran = evocode("results")
    assert [line.split()[:3] for line in ran.lines[1:3]] == [
        ["gpt", "50.0", "n/a"],
        ["gpt", "verify-times=3", "0.0"],
    ]
    assert "not scored together: gpt, gpt verify-times=3" in ran.err
    rows = evocode("results", "--json").json["rows"]
    assert [row["conditions"]["settings"] for row in rows] == [{"verify-times": "1"}, {"verify-times": "3"}]
    assert len({row["conditions"]["hash"] for row in rows}) == 2
    assert len({row["conditions"] for row in evocode("export", "--json").json}) == 2
    assert "verify-times=1 (gpt); verify-times=3 (gpt verify-times=3)" in evocode("leaderboard").out


def test_agents_under_different_settings_are_compared_only_where_that_is_asked_for(
    evocode: Evocode, tmp_path: Path
) -> None:
    write_attempt(tmp_path / "old", outcomes="pf", **ONCE)
    write_attempt(tmp_path / "new", outcomes="pp", run=NEW, **THRICE)
    ran = evocode("compare", "old", "new")
    assert (ran.status, ran.out) == (2, "")
    assert "different conditions, which scores depend on: verify-times 1 against 3; " in ran.err
    ran = evocode("compare", "old", "new", "--any-conditions")
    assert ran.status == 0
    assert "note: A against B: verify-times 1 against 3" in ran.err


def test_another_version_of_the_product_or_image_is_told_and_keeps_nothing_apart(
    evocode: Evocode, tmp_path: Path
) -> None:
    later: dict[str, Any] = {"strict": False, "conditions": {"verify-times": "1", "version": "1.1", "image": "b"}}
    for directory in ("evocode-results", "old"):
        write_attempt(tmp_path / directory, outcomes="pf", number=1, **ONCE)
    for directory in ("evocode-results", "new"):
        write_attempt(tmp_path / directory, outcomes="ff", number=2, run=NEW, **later)
    ran = evocode("results")
    assert ran.lines[1].startswith("gpt 25.0")
    told = "attempts by different versions of pytest-evocode are scored together: 1.0 (1 attempt), 1.1 (1 attempt)"
    assert f"note: gpt: {told}" in ran.err
    assert "note: gpt: attempts in different images of one task are scored together: ledger" in ran.err
    ran = evocode("compare", "old", "new")
    assert ran.status == 0
    assert "note: A was made with pytest-evocode 1.0, B with 1.1" in ran.err


def test_of_older_records_it_is_not_known_under_which_conditions_they_were_made(
    evocode: Evocode, tmp_path: Path
) -> None:
    write_attempt(tmp_path / "old", outcomes="pf", strict=False)
    write_attempt(tmp_path / "new", outcomes="pp", run=NEW, **ONCE)
    ran = evocode("compare", "old", "new")
    assert ran.status == 0
    assert "note: it is not known whether A ran under the same conditions" in ran.err
    assert "gpt (conditions not said)" in evocode("results", "old", "new").out


# Prices.


def _with_prices(root: Path, task: str, digest: str | None) -> None:
    options = {} if digest is None else {"prices": {"path": "lists/prices.toml", "sha256": digest}}
    usage = Usage(prompt_tokens=900, completion_tokens=10, cost_usd=0.01)
    write_attempt(root, task, "gpt-5", "pf", made_by={"spec": "openai/gpt-5", "options": options}, usage=usage)


@pytest.mark.parametrize("other", ["b" * 64, None])
def test_cost_by_two_price_tables_is_told_wherever_cost_is_shown(
    evocode: Evocode, tmp_path: Path, other: str | None
) -> None:
    _with_prices(tmp_path / "evocode-results", "a", "a" * 64)
    _with_prices(tmp_path / "evocode-results", "b", other)
    second = "no file of prices (1 attempt)" if other is None else "prices.toml bbbbbbb (1 attempt)"
    both = sorted(["prices.toml aaaaaaa (1 attempt)", second])
    told = f"cost of gpt-5: by 2 price tables, do not compare it: {', '.join(both)}"
    assert evocode("results", "-q").out.count(told) == 1
    for view in ("pareto", "metrics"):
        assert evocode("results", "--view", view).err.count(told) == 1
    assert told in evocode("export").err
    assert evocode("report", "evocode-results", "-o", "page").status == 0
    assert told in (tmp_path / "page" / "summary.md").read_text(encoding="utf-8")
    assert evocode("paper", "-o", "out").status == 0
    made = (tmp_path / "out" / "reproducibility.md").read_text(encoding="utf-8")
    assert told in made
    assert f"Prices that cost of gpt-5 is by: prices.toml (SHA-256 {'a' * 64})" in made


def test_cost_by_one_price_table_is_told_without_a_note(evocode: Evocode, tmp_path: Path) -> None:
    for task in "ab":
        _with_prices(tmp_path / "evocode-results", task, "a" * 64)
    ran = evocode("results")
    assert "price tables" not in ran.out + ran.err
