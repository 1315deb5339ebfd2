"""Attempts, tasks and runs of an index, and what it says of them: ids, rounds, reasons and commands."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.html.ids import attempt_id, task_id
from pytest_evocode.report.html.index import index_of
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import SelectedTask, TaskFacts, Usage
from tests.report.html.contract import faults
from tests.result_trees import RUN, write_attempt, write_session

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"
FACTS = TaskFacts(rounds=("round-1", "round-2", "round-3"), change_types=((), ("extension",), ()), activity="Repair")


def index(*roots: Path, under_way: bool = False, run: str | None = None, **options: Any) -> dict[str, Any]:
    """The index of some results, which is as declared; options choose attempts."""
    results = load_results(roots, cases=True)
    only = None if run is None else {run}
    table = score_table(results, only=only, **options)
    tasks = options.get("tasks")
    found = index_of(table, results, title="Ours", roots=roots, under_way=under_way, only=only, tasks=tasks)
    assert faults(found, "Index") == []
    return found


def cells(*roots: Path, **options: Any) -> list[str]:
    return [each["cells"] for each in index(*roots, **options)["attempts"]]


# Ids.


def test_ids_stay_the_same_where_results_are_moved(tmp_path: Path) -> None:
    write_attempt(tmp_path / "here")
    write_session(tmp_path / "here", {"ledger": {"gpt": [1]}})
    before = index(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    after = index(tmp_path / "there")
    for kind in ("rows", "tasks", "attempts", "runs"):
        assert [each["id"] for each in before[kind]] == [each["id"] for each in after[kind]]
    assert len(after["attempts"]) == 1


def test_attempts_in_one_place_below_two_directories_are_told_apart(tmp_path: Path) -> None:
    write_attempt(tmp_path / "a", outcomes="pp")
    path = write_attempt(tmp_path / "b", outcomes="pf") / "result.json"
    path.write_text(path.read_text().replace("03:04:05", "03:04:06"))  # Begun at another time, so that it is no copy.
    found = index(tmp_path / "a", tmp_path / "b")
    assert len({each["id"] for each in found["attempts"]}) == 2
    assert len({each["id"] for each in found["runs"]}) == 2


def test_an_attempt_has_one_id_whatever_a_table_calls_its_agent(tmp_path: Path) -> None:
    """Agents of the same description are one, under the name that the newest attempt has."""
    spec = {"spec": "openai/gpt-5", "name": "gpt"}
    write_attempt(tmp_path, "a", "gpt", run=OLD, made_by=spec)
    write_attempt(tmp_path, "b", "openai-gpt", run=NEW, made_by=spec)
    results = load_results([tmp_path])
    table = score_table(results)
    assert len(table.rows) == 1
    counting = {attempt_id(each, [tmp_path]) for row in table.rows for each in row.attempts}
    assert counting == {attempt_id(each, [tmp_path]) for each in results.attempts}
    assert {each["row"] != "" for each in index(tmp_path)["attempts"]} == {True}


def test_tasks_whose_names_differ_in_signs_only_are_told_apart() -> None:
    names = ["ledger", "Ledger", "ledger!", "\ud800", "led/ger", "é", "e" * 200, "e" * 201, ""]
    assert len({task_id(name) for name in names}) == len(names)
    assert task_id("ledger") == "ledger"


# Attempts.


def test_rounds_are_shown_by_the_kind_of_their_failure(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="pfffp", cases=["p", "pf", "pf", "fff", "ppp"])
    write_attempt(tmp_path, "b", outcomes="ffe-", cases=["f", "s"])
    assert cells(tmp_path) == ["pncrp", "nbi-"]


def test_rounds_that_were_not_selected_and_not_reached_differ(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", first=2, of=4, from_round="round-2")
    write_attempt(tmp_path, "other", outcomes="p-", of=3, mode="fail-stop")
    write_session(tmp_path, {"other": {"gpt": [1]}}, partial={"other": {"gpt": {1: (1, 2)}}}, mode="fail-stop")
    assert cells(tmp_path) == [".pp.", "p-."]


def test_a_partial_attempt_that_counts_in_full_is_shown_as_it_was_made(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="p", run=OLD, of=3, facts=FACTS)
    known = {"ledger": SelectedTask(facts=FACTS)}
    part = {"ledger": {"gpt": {1: (1,)}}}
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=OLD, partial=part, tasks=known)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=NEW, tasks=known)
    found = index(tmp_path)
    assert [each["cells"] for each in found["attempts"]] == ["p.."]
    assert [row["scores"]["dataset_score"] for row in found["rows"]] == [pytest.approx(100 / 3)]


def test_the_round_that_a_session_is_at_is_under_way(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pf", of=4, cases=["p", "f"], finished=False)
    write_attempt(tmp_path, "done", outcomes="pp-")
    assert cells(tmp_path, under_way=True) == ["pp-", "pr?-"]
    assert cells(tmp_path) == ["pp-", "pr--"]


def test_an_attempt_has_what_it_took_if_that_is_known_of_all_rounds(tmp_path: Path) -> None:
    spent = Usage(prompt_tokens=10, completion_tokens=2, cost_usd=0.5)
    write_attempt(tmp_path, "a", outcomes="pf-", usage=spent, cases=["pp", "pf"], changed={2: ["/bin/sh"]})
    write_attempt(tmp_path, "b", outcomes="p", usage=Usage(prompt_tokens=10))
    known, unknown = index(tmp_path)["attempts"]
    assert (known["cost_usd"], known["tokens"], known["seconds"]) == (1.0, 24, 3.0)
    assert (known["cases"], known["trusts"]) == ([[2, 2], [1, 2], [0, 0]], [2])
    assert (unknown["cost_usd"], unknown["tokens"]) == (None, None)


def test_what_does_not_count_says_why(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="ff", run=OLD)
    write_attempt(tmp_path, "a", outcomes="pp", run=NEW)
    write_attempt(tmp_path, "b", outcomes="p", run=OLD, of=1)

    def why(**options: Any) -> list[str]:
        return [each["left_out"] for each in index(tmp_path, **options)["attempts"]]

    assert why() == ["a newer attempt of its number counts; --all-runs counts all", "", ""]
    assert why(all_runs=True) == ["", "", ""]
    assert why(run=NEW) == [f"only the run {NEW} counts", "", f"only the run {NEW} counts"]
    assert why(tasks={"b": TaskFacts(rounds=("round-1",))}) == ["its task is not among those that count"] * 2 + [""]


def test_a_partial_attempt_beside_a_whole_one_says_so(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="ppp", run=OLD, facts=FACTS)
    write_attempt(tmp_path, outcomes="p", run=NEW, of=3, facts=FACTS)
    write_session(
        tmp_path,
        {"ledger": {"gpt": [1]}},
        run=NEW,
        partial={"ledger": {"gpt": {1: (1,)}}},
        tasks={"ledger": SelectedTask(facts=FACTS)},
    )
    found = {each["run"]: each["left_out"] for each in index(tmp_path)["attempts"]}
    assert found[OLD] == ""
    assert "only a part of its rounds was selected" in found[NEW]
    (row,) = index(tmp_path)["rows"]
    assert any("not counted beside an attempt with all its rounds" in note for note in row["notes"])


def test_attempts_under_new_numbers_are_the_tables(tmp_path: Path) -> None:
    for run in (OLD, NEW):
        write_attempt(tmp_path, run=run)
    numbers = {each["run"]: each["attempt"] for each in index(tmp_path, all_runs=True)["attempts"]}
    assert numbers == {OLD: 1, NEW: 2}


# What is not there.


def test_missing_attempts_and_damaged_files_are_problems(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a")
    (write_attempt(tmp_path, "b") / "result.json").write_text("{")
    write_session(
        tmp_path, {"a": {"gpt": [1, 2]}}, tasks={"a": SelectedTask(facts=FACTS)}, finished="2026", shard=(1, 2)
    )
    found = index(tmp_path)
    (row,) = found["rows"]
    assert row["missing"] == [{"task": "a", "attempt": 2}]
    told = "\n".join(found["problems"])
    assert "b__a1/result.json" in told
    assert "gpt: no readable record, counted as not passed: a attempt 2" in told
    assert "shard 2 of 2 is not here" in told


def test_a_task_that_left_nothing_is_there(tmp_path: Path) -> None:
    write_session(tmp_path, {"ledger": {"gpt": [1]}, "old": {"gpt": [1]}}, tasks={"ledger": SelectedTask(facts=FACTS)})
    found = index(tmp_path)
    ledger, old = found["tasks"]
    assert (ledger["rounds"], ledger["change_types"]) == (list(FACTS.rounds), [[], ["extension"], []])
    assert (ledger["activity"], ledger["category"]) == ("Repair", "")
    assert (old["name"], old["rounds"]) == ("old", [])
    assert [row["scores"]["dataset_score"] for row in found["rows"]] == [0.0]


def test_nothing_at_all_is_an_index(tmp_path: Path) -> None:
    found = index(tmp_path)
    assert (found["rows"], found["attempts"], found["runs"], found["process_outcome"]) == ([], [], [], None)
    assert found["titles"]["dataset_score"]["title"] == "Dataset Score"


# Runs.


def test_a_run_has_its_times_faults_and_commands(tmp_path: Path) -> None:
    phases = {1: Phases(setup=1.0, agent=2.0, slot_seconds=9.0), 2: Phases(agent=0.5)}
    made_by = {"spec": "shell:x", "harness": {"name": "shell", "version": "2"}}
    write_attempt(tmp_path, outcomes="pe", phases=phases, made_by=made_by)
    path = write_session(
        tmp_path, {"ledger": {"gpt": [1]}}, agents={"gpt": made_by}, strict=True, finished="2026-01-02"
    )
    text = path.read_text().replace('"arguments": []', '"arguments": ["-k", "a b", "--evocode-resume=x", "tasks"]')
    path.write_text(text)
    (run,) = index(tmp_path)["runs"]
    (attempt,) = run["attempts"]
    assert (run["name"], run["strict"], run["phases"]) == (RUN, True, {"setup": 1.0, "agent": 2.5})
    assert run["faults"] == [{"attempt": attempt, "round": 2, "cause": "the engine is down"}]
    assert run["versions"] == {"shell": "2"}
    commands = [command for _, command in run["commands"]]
    assert commands == [
        "pytest -k 'a b' tasks",
        f"evocode results {tmp_path} --run {RUN}",
        f"evocode failures {tmp_path} --run {RUN}",
    ]


def test_a_run_has_its_timeline_where_its_records_tell_when_rounds_began(tmp_path: Path) -> None:
    began = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    phases = {1: Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=began + 1, suite_began=began + 3)}
    write_attempt(tmp_path, outcomes="pp", phases=phases, ended="2026-01-02T03:04:11+00:00")
    (run,) = index(tmp_path)["runs"]
    (attempt,) = run["attempts"]
    assert run["timeline"] == {
        "seconds": 6.0,
        "stages": [
            ["suite", "the suite's own command", 3.0],
            ["agent", "the agent's turn", 2.0],
            ["start", "an attempt's environment, up to its first turn", 1.0],
        ],
        "bars": [
            {"name": "slot 1", "attempt": None, "turns": [], "suites": [[3.0, 6.0]]},
            {"name": "ledger gpt", "attempt": attempt, "turns": [[1.0, 3.0]], "suites": [[3.0, 6.0]]},
        ],
    }
    write_attempt(tmp_path, outcomes="pp", run="2026-02-02__03-04-05")
    assert index(tmp_path)["runs"][0]["timeline"] is None


def test_a_run_says_how_many_bars_its_timeline_leaves_out(tmp_path: Path) -> None:
    began = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    phases = {1: Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=began + 1, suite_began=began + 3)}
    for number in range(1, 251):
        write_attempt(tmp_path, outcomes="p", number=number, phases=phases, ended="2026-01-02T03:04:11+00:00")
    timeline = index(tmp_path)["runs"][0]["timeline"]
    # All were verified at once, each in a slot of its own.
    told = "and 300 more: evocode results --view timeline"
    assert len(timeline["bars"]) == 201
    assert timeline["bars"][-1] == {"name": told, "attempt": None, "turns": [], "suites": []}


def test_a_run_says_what_it_ran_with_and_that_it_was_continued_with_something_else(tmp_path: Path) -> None:
    made_by = {"spec": "shell:x", "harness": {"name": "shell", "version": "2"}}
    write_attempt(tmp_path, made_by=made_by)
    versions = {"Python": ("3.11.2", "3.12.1"), "Docker": ("28.1",)}
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, agents={"gpt": made_by}, versions=versions)
    (run,) = index(tmp_path)["runs"]
    assert run["versions"] == {"Python": "3.11.2, 3.12.1", "Docker": "28.1", "shell": "2"}
    assert run["warnings"] == ["it was continued with other versions: Python 3.11.2, then 3.12.1"]


def test_a_run_without_anything_to_be_careful_about_has_no_warnings(tmp_path: Path) -> None:
    write_attempt(tmp_path, usage=Usage(cost_usd=1.0, prompt_tokens=1, completion_tokens=1))
    write_session(tmp_path, {"ledger": {"gpt": [1]}})
    (run,) = index(tmp_path)["runs"]
    assert run["warnings"] == []


def test_warnings_of_a_run_name_what_its_records_know(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="pe", changed={1: ["/bin/sh"]}, usage=Usage(cost_usd=1.0))
    write_attempt(tmp_path, "b", outcomes="p", usage=Usage(prompt_tokens=1, completion_tokens=1), regraded="2026-02-01")
    write_attempt(tmp_path, "c", outcomes="p", of=3, finished=False)
    write_attempt(tmp_path, "d", outcomes="p", of=2, first=2)
    path = next((tmp_path / "b").rglob("result.json"))
    record = json.loads(path.read_text())
    record["rounds"][0]["stopped"] = "the budget ran out"
    record["rounds"][0]["verdict"] |= {
        "void": True,
        "flags": ["a failing case under a full reward"],
        "repeats": {"times": 2, "passed": 1, "flaky": True},
    }
    path.write_text(json.dumps(record))
    write_session(tmp_path, {"a": {"gpt": [1, 2]}, "d": {"gpt": [1]}})
    (run,) = index(tmp_path)["runs"]
    assert run["warnings"] == [
        "1 attempt was selected and left nothing: a gpt.2",
        "1 attempt is not finished, and its missing rounds count as not passed: c gpt",
        "1 attempt is partial, and only the rounds that were selected count: d gpt (round-2)",
        "1 attempt was verified again later: b gpt (2026-02-01)",
        "1 round ended in an infrastructure error, and counts as not passed: a gpt round-2",
        "1 verdict trusts the agent's system beyond what the task declares: a gpt round-1",
        "1 verdict counts no case, because it trusts the agent's system in a strict session: b gpt round-1",
        "1 suite did not give the same verdict every time that it ran: b gpt round-1",
        "1 turn of the agent was ended from outside: b gpt round-1 (the budget ran out)",
        "1 verdict is marked: b gpt round-1 (a failing case under a full reward)",
        "tokens of 2 of 3 rounds not known, so sums are lower bounds: a gpt round-1, a gpt round-2",
        "cost of 1 of 3 rounds not known, so sums are lower bounds: b gpt round-1",
    ]


def test_a_harness_is_what_drives_a_model_and_references_have_none(tmp_path: Path) -> None:
    write_attempt(tmp_path, agent="oracle", made_by={"spec": "oracle"})
    write_attempt(tmp_path, agent="nop")
    write_attempt(tmp_path, agent="gpt", made_by={"spec": "shell:x", "harness": {"name": "shell", "version": "2"}})
    write_attempt(tmp_path, agent="old")
    assert {row["agent"]: row["harness"] for row in index(tmp_path)["rows"]} == {
        "oracle": "none",
        "nop": "none",
        "gpt": "shell 2",
        "old": "",
    }


def test_a_run_that_was_broken_off_has_the_command_that_continues_it(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="p", of=2, finished=False)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, finished=None)
    found = index(tmp_path)
    (run,) = found["runs"]
    assert run["finished"] is None
    assert run["warnings"] == ["1 attempt is unfinished, and not scored: ledger gpt"]
    assert [each["left_out"] for each in found["attempts"]] == ["unfinished: 1 of 2 rounds judged"]
    assert f"not scored, unfinished: ledger gpt ({RUN}): 1 of 2 rounds judged" in found["notes"]
    assert ["continue what is unfinished", f"pytest --evocode-resume={RUN}"] in run["commands"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_run_without_its_record_is_there(tmp_path: Path, name: str) -> None:
    write_attempt(tmp_path, name)
    (run,) = index(tmp_path)["runs"]
    assert (run["name"], run["commands"], run["exit_status"]) == (RUN, [], None)
    assert run["started"] == "2026-01-02T03:04:05+00:00"
