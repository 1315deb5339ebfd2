"""``evocode failures``: what went wrong, where first, and against which requirements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "gpt", "pff", cases=["p", "fp", "ffp"])
    write_attempt(results, "b", "gpt", "pe-", cases=["p"])
    write_attempt(results, "a", "nop", "fff", cases=["f", "", "ff"])


def test_kinds_first_failures_and_requirements_are_told(evocode: Evocode) -> None:
    ran = evocode("failures", "-q")
    assert (ran.status, ran.err.count("note: ")) == (0, 1)
    assert "rows are over different tasks" in ran.err
    assert ran.lines == [
        "how many rounds failed, by what kept them from passing",
        "agent cases build infrastructure not reached",
        "gpt 2 0 1 1",
        "nop 2 1 0 0",
        "",
        "failing cases, by how they stand to the rounds before",
        "agent new miss regression carried",
        "gpt 0 3 0",
        "nop 2 0 1",
        "",
        "by round: share of the tasks that pass it, and how many attempts fail there first",
        "agent 1 2 3",
        "gpt 100.0 (0) 0.0 (2) 0.0 (0)",
        "nop 0.0 (1) 0.0 (0) 0.0 (0)",
        "",
        "first failures (3)",
        "a nop attempt 1 round 1 of 3",
        "a gpt attempt 1 round 2 of 3",
        "b gpt attempt 1 round 2 of 3",
        "",
        "requirements that were failed (2), by the share of the rounds that checked them",
        "task requirement failed of % cases",
        "a R1 2 3 66.7 2 regression",
        "a R2 1 2 50.0 1 regression",
    ]
    # A control tells of requirements only where there is no other agent.
    assert evocode("failures", "-q", "--agent", "nop").lines[-2:] == [
        "a R1 2 2 100.0 1 carried, 1 new miss",
        "a R2 1 1 100.0 1 new miss",
    ]


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_the_words_beside_the_kinds_of_failed_rounds_say_that_rounds_are_counted(evocode: Evocode, form: str) -> None:
    told = evocode("failures", f"--format={form}").out
    assert "how many rounds failed, by what kept them from passing" in told
    assert "cases: Rounds in which cases of the suite failed, however many." in told
    assert "build: Rounds in which no case ran." in told


def test_one_agent_is_looked_at_where_it_is_named(evocode: Evocode) -> None:
    lines = evocode("failures", "-q", "--agent", "gpt", "--top", "1").lines
    assert lines[-8:] == [
        "first failures (2)",
        "a gpt attempt 1 round 2 of 3",
        "... and 1 more; --top shows them",
        "",
        "requirements that were failed (2), by the share of the rounds that checked them",
        "task requirement failed of % cases",
        "a R1 2 3 66.7 2 regression",
        "... and 1 more; --top shows them",
    ]
    ran = evocode("failures", "-q", "--agent", "nobody")
    assert ran.status == 2
    assert "there is no agent nobody; there are gpt, nop" in ran.err


def test_json_has_all_of_it(evocode: Evocode) -> None:
    found = evocode("failures", "--agent", "gpt", "--json").json
    assert found["kinds"]["gpt"]["rounds"]["infrastructure"] == 1
    assert found["kinds"]["gpt"]["cases"] == {"new miss": 0, "regression": 3, "carried": 0, "stale": 0}
    assert found["kinds"]["gpt"]["not_reached"] == 1
    assert found["pass_rates"] == {"gpt": {"1": 100.0, "2": 0.0, "3": 0.0}}
    assert [(each["task"], each["index"], each["position"]) for each in found["first_failures"]["gpt"]] == [
        ("a", 2, pytest.approx(2 / 3)),
        ("b", 2, pytest.approx(2 / 3)),
    ]
    assert [(each["requirement"], each["failed"], each["of"]) for each in found["requirements"]] == [
        ("R1", 2, 3),
        ("R2", 1, 2),
    ]


def test_where_nothing_failed_there_is_nothing_to_tell(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "good", "a", "gpt", "pp", cases=["p", "pp"])
    lines = evocode("failures", "good").lines
    assert lines[:2] == ["how many rounds failed, by what kept them from passing", "none"]
    assert "first failures (0)" in lines
    assert lines[-1].startswith("requirements that were failed (0)")


def test_single_rounds_have_no_first_failure(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "single", "a", "gpt", "pf", cases=["p", "f"], mode="single-round")
    lines = evocode("failures", "single").lines
    assert lines[1:3] == ["agent cases", "gpt (single-round) 1"]
    assert not [line for line in lines if line.startswith("first failures")]


def test_a_round_that_was_not_selected_is_no_failure(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "c", "third", "pp", of=4, cases=["p", "pp"])
    found = evocode("failures", "--agent", "third", "--json").json
    assert (found["first_failures"], found["pass_rates"]) == ({"third": []}, {"third": {"1": 100.0, "2": 100.0}})


def test_agents_of_one_name_and_older_contents_are_apart_in_what_requirements_failed(
    evocode: Evocode, tmp_path: Path
) -> None:
    results = tmp_path / "apart"
    write_attempt(results, "a", "gpt", "pp", cases=["p", "p"], environment="docker", task_hash="2")
    write_attempt(results, "a", "gpt", "ff", cases=["f", "f"], task_hash="2", run="2026-01-03__00-00-00")
    write_attempt(results, "a", "gpt", "ff", cases=["f", "f"], task_hash="1", run="2025-01-01__00-00-00")
    # What one agent passed is no regression of the other, and what other contents ask for is not counted.
    assert evocode("failures", "-q", "apart").lines[-1] == "a R1 2 4 50.0 1 carried, 1 new miss"
    older = evocode("failures", "-q", "apart", "--agent", "gpt sandbox a@1")
    assert older.lines[-1] == "a R1 2 2 100.0 1 carried, 1 new miss"


def test_rounds_of_suites_that_never_report_cases_failed_by_their_reward(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "c", "silent", "fp", cases=["", ""])
    assert evocode("failures", "--agent", "silent").lines[1:3] == ["agent reward", "silent 1"]
    write_attempt(results, "c", "oracle", "pp", cases=["p", "p"])
    assert evocode("failures", "--agent", "silent").lines[1:3] == ["agent build", "silent 1"]
