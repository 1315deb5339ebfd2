"""Attempts for the viewer: rounds, cases and texts from their directories, whatever state these are in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.environments import choose_engine
from pytest_evocode.process.attempts import TaskFinder, score_attempt
from pytest_evocode.report.html import attempt
from pytest_evocode.report.html.attempt import attempt_data, with_cases
from pytest_evocode.report.html.cells import cells_of
from pytest_evocode.results.directory import write_run
from pytest_evocode.results.records import RunRecord, SelectedTask, TaskFacts, Verdict
from tests.process.record import play
from tests.report.html.contract import faults
from tests.report.html.hostile import CORPUS
from tests.report.html.recordings import (
    REPOSITORY,
    RUN,
    TIME,
    Played,
    change,
    failing,
    passing,
    recorded,
    shown,
    step,
    stored,
    trajectory,
    write_attempt,
)

TEXTS = ("intent", "scenario", "input", "expected", "actual", "reason")


def test_a_recorded_attempt_is_shown_as_its_records_have_it() -> None:
    attempt, _ = with_cases(stored(recorded("recipes/reckless")))
    found = shown(recorded("recipes/reckless"))
    assert found.data["problems"] == []
    assert (found.data["task"], found.data["agent"], found.data["attempt"]) == ("recipes", "reckless", 1)
    for record, round_ in zip(attempt.record.rounds, found.data["rounds"], strict=True):
        assert (round_["name"], round_["outcome"], round_["reward"]) == (
            record.round,
            record.outcome,
            record.verdict.reward if record.verdict else None,
        )
        assert tuple(round_["counts"]) == record.case_counts
        assert [case["id"] for case in round_["cases"]] == [case.id for case in record.verdict.cases]  # type: ignore[union-attr]
        assert round_["phases"] == (record.phases.known if record.phases else {})
    assert "".join(round_["cell"] for round_ in found.data["rounds"]) == cells_of(attempt) == "ncn"


def test_a_recorded_attempt_has_the_files_that_its_rounds_changed() -> None:
    changes = shown(recorded("recipes/reckless")).round(1)["changes"]
    assert {each["path"]: each["kind"] for each in changes} == {
        "PLAN.md": "added",
        "recipes/ingredients.py": "changed",
        "recipes/recipe.py": "changed",
        "recipes/text.py": "changed",
        "tests/test_recipes.py": "changed",
    }
    assert all(each["diff"].startswith("@@") and each["steps"] for each in changes)


def test_passed_cases_have_no_texts_and_failed_ones_have_all(tmp_path: Path) -> None:
    texts = dict.fromkeys(TEXTS, "said")
    cases = [passing("a", requirement="R1", kind="core", origin="round-1", **texts), failing("b", **texts)]
    passed, failed = shown(write_attempt(tmp_path, Played(cases))).round(1)["cases"]
    assert [passed[name] for name in (*TEXTS, "failure", "introduced")] == [*[""] * 6, None, None]
    assert (passed["requirement"], passed["kind"], passed["origin"]) == ("R1", "core", "round-1")
    assert [failed[name] for name in TEXTS] == ["said"] * 6
    assert failed["failure"] == "new miss"


def test_a_round_has_what_its_verdict_rests_on(tmp_path: Path) -> None:
    def mark(directory: Path) -> None:
        path = directory / "result.json"
        values = json.loads(path.read_text())
        values["rounds"][0]["usage"] = {"prompt_tokens": 5, "cost_usd": 0.25}
        values["rounds"][0]["verdict"] |= {
            "flags": ["odd"],
            "rests_on": "clean",
            "changed": {"counts": {"left behind": 2}, "address": "0" * 64},
            "trusts": ["/usr/lib/plugin.so"],
            "repeats": {"times": 3, "passed": 2, "flaky": True, "differing": ["a"]},
        }
        path.write_text(json.dumps(values))

    found = shown(write_attempt(tmp_path, Played([passing("a")]), change=mark)).round(1)
    assert (found["flags"], found["rests_on"], found["void"]) == (["odd"], "clean", False)
    assert (found["trusts"], found["changed_counts"]) == (["/usr/lib/plugin.so"], {"left behind": 2})
    assert found["repeats"] == {"times": 3, "passed": 2, "flaky": True, "differing": ["a"]}
    assert (found["usage"]["cost_usd"], found["usage"]["completion_tokens"]) == (0.25, None)


@pytest.mark.slow
@pytest.mark.nightly
def test_an_attempt_that_was_just_played_has_what_its_suites_printed(tmp_path: Path) -> None:
    engine, _ = choose_engine("sandbox")
    try:
        records, directory = play(
            REPOSITORY / "example_tasks/process/transfers/recorded/reckless.toml", engine, tmp_path
        )
    finally:
        engine.close()
    found = shown(tmp_path)
    assert found.data["problems"] == []
    assert [each["outcome"] for each in found.data["rounds"]] == [record.outcome for record in records]
    assert all(each["output"] and each["omitted"] == 0 for each in found.data["rounds"])
    broken = [case for case in found.round(2)["cases"] if case["failure"] == "regression"]
    assert {case["introduced"]["round"] for case in broken} == {2}
    assert {case["introduced"]["step"] for case in broken} == {2}
    edit = next(each for each in found.steps(2) if each["id"] == 2)
    assert "wallet/api.py" in {change["path"] for call in edit["calls"] for change in call["changes"]}
    assert stored(tmp_path).path == directory


def test_rounds_without_a_record_say_why(tmp_path: Path) -> None:
    directory = write_attempt(tmp_path, Played([passing("a")]), Played(None), declared=4)
    rounds = shown(directory).data["rounds"]
    assert [(each["cell"], each["outcome"]) for each in rounds] == [
        ("p", "passed"),
        ("i", "error"),
        (".", "not reached"),
        (".", "not reached"),
    ]
    assert (rounds[1]["cause"], rounds[1]["reward"], rounds[1]["counts"]) == ("no daemon", None, [0, 0])
    assert rounds[3]["node_id"] == "ledger/task.toml::agent::round-4"


def test_an_attempt_under_way_shows_the_turn_that_it_is_at(tmp_path: Path) -> None:
    directory = write_attempt(tmp_path, Played([passing("a")], trajectory(step(1))), declared=3)
    (directory / "result.json").unlink()
    facts = TaskFacts(rounds=("round-1", "round-2", "round-3"))
    run = RunRecord(
        run=RUN, started=TIME, arguments=(), environment="sandbox", tasks={"ledger": SelectedTask(facts=facts)}
    )
    (tmp_path / "runs").mkdir()
    write_run(tmp_path, run.model_copy(update={"selected": {"ledger": {"agent": (1,)}}}))
    (directory / "steps/round-2/agent").mkdir(parents=True)
    text = json.dumps(trajectory(step(1), step(2, change("a", None, "1\n"))))
    (directory / "steps/round-2/agent/trajectory.json").write_text(text)
    found = shown(tmp_path, under_way=True)
    assert [each["cell"] for each in found.data["rounds"]] == ["p", "?", "-"]
    assert found.round(2)["outcome"] == "under way"
    assert (len(found.steps(2)), found.round(2)["changes"][0]["path"]) == (2, "a")


def test_what_a_suite_printed_is_cut_in_the_middle(tmp_path: Path) -> None:
    output = "first\n" + "é" * 3_000_000 + "\nlast\n"
    found = shown(write_attempt(tmp_path, Played([failing("a")], output=output))).round(1)
    assert found["output"].startswith("first\n")
    assert "bytes left out" in found["output"]
    assert "\nlast\nCASE_SUMMARY" in found["output"]
    assert "\ufffd" not in found["output"]
    assert len(found["output"]) < 300_000
    assert found["omitted"] > 5_000_000


def test_very_much_output_of_all_rounds_is_bounded(tmp_path: Path) -> None:
    rounds = [Played([failing(f"c{number}")], output="x" * 300_000) for number in range(120)]
    found = shown(write_attempt(tmp_path, *rounds))
    assert len(json.dumps(found.data)) < 24 * 2**20
    assert all(each["output"].endswith("fail_count=1\n") for each in found.data["rounds"])


def test_very_many_diffs_of_all_rounds_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_DIFFS", 20_000)
    texts = ["".join(f"{number} {line}\n" for line in range(500)) for number in range(5)]
    rounds = [
        Played([passing("a")], trajectory(*(step(n, change(f"{n}.txt", None, text)) for n, text in enumerate(texts))))
        for _ in range(3)
    ]
    found = shown(write_attempt(tmp_path, *rounds))
    assert 10_000 < sum(len(each["diff"]) for number in (1, 2, 3) for each in found.round(number)["changes"]) <= 20_000
    changes = found.round(3)["changes"]
    assert all(not each["diff"] and "the steps of the trajectory have it" in each["note"] for each in changes)
    assert all(each["added"] == 500 for each in changes)


def test_artifacts_are_named(tmp_path: Path) -> None:
    directory = write_attempt(tmp_path, Played([passing("a")]))
    for name in ("b.txt", "sub/c.txt"):
        path = directory / "steps/round-1/artifacts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (directory / "steps/round-1/artifacts/link").symlink_to("/")
    assert shown(directory).round(1)["artifacts"] == ["b.txt", "link", "sub/c.txt"]


def test_of_very_many_artifacts_the_first_are_named_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_attempt(tmp_path, Played([passing("a")]))
    artifacts = directory / "steps/round-1/artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    for number in range(1_700):
        (artifacts / f"{number:05}").touch()
    found = shown(directory).round(1)["artifacts"]
    assert found[:2] + found[499:] == ["00000", "00001", "00499", "... and 1,200 more files, which the results have"]
    monkeypatch.setattr(attempt, "_MOST_COUNTED", 1_000)
    assert shown(directory).round(1)["artifacts"][-1].startswith("... and at least 1,000 more")


def test_the_process_is_there_with_its_evidence(tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_bash")
    directory = tmp_path / "reckless"
    shutil.copytree(recorded("recipes/reckless"), directory)
    scored = score_attempt(
        directory, TaskFinder([REPOSITORY / "example_tasks" / "process" / "recipes"]).find("recipes")
    )
    (directory / "process.json").write_text(scored.model_dump_json())
    found = shown(directory).round(1)["process"]
    score = scored.rounds[0].score()
    assert score is not None
    assert found["score"] == pytest.approx(100 * score.value)
    assert {name: each["value"] for name, each in found["pillars"].items()} == scored.rounds[0].values
    evidence = [
        each
        for pillar in found["pillars"].values()
        for part in pillar["measures"].values()
        for each in part["evidence"]
    ]
    assert any(each["step"] is not None and each["quote"] for each in evidence)


@pytest.mark.parametrize("text", CORPUS)
def test_hostile_texts_stay_as_they_are(tmp_path: Path, text: str) -> None:
    said = text.encode("utf-8", "replace").decode()  # As sessions have it that read it from a suite.
    case = failing(said or "x", **dict.fromkeys((*TEXTS, "kind", "origin", "requirement"), said))
    found = shown(write_attempt(tmp_path, Played([case], trajectory(step(1, output=text)), output=text)))
    (shown_case,) = found.round(1)["cases"]
    assert {shown_case[name] for name in (*TEXTS, "kind", "origin", "requirement")} == {said}
    assert found.data["problems"] == []


def _drop(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).unlink()


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)

    return damage


def _directory(name: str) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        (directory / name).unlink(missing_ok=True)
        (directory / name).mkdir(parents=True)

    return damage


_STEP = "steps/round-1"


@pytest.mark.parametrize(
    ("damage", "file", "advice"),
    [
        (_write(f"{_STEP}/verifier/cases.json", b"{"), "cases.json", "remove it"),
        (_write(f"{_STEP}/verifier/cases.json", b"[1]"), "cases.json", "remove it"),
        (_write(f"{_STEP}/verifier/cases.json", b'[{"id": [], "status": "passed"}]'), "cases.json", "remove it"),
        (_directory(f"{_STEP}/verifier/cases.json"), "cases.json", "remove it"),
        (_directory(f"{_STEP}/verifier/test-stdout.txt"), "test-stdout.txt", "restore it"),
        (_write(f"{_STEP}/agent/trajectory.json", b"\xff"), "trajectory.json", "restore it"),
        (_directory(f"{_STEP}/agent/trajectory.json"), "trajectory.json", "restore it"),
        (_write("process.json", b"{}"), "process.json", "score it again"),
        (_directory("process.json"), "process.json", "score it again"),
        (_write(f"{_STEP}/artifacts", b""), "artifacts", "cannot be read"),
    ],
)
def test_each_damaged_file_is_named_with_what_to_do(
    tmp_path: Path, damage: Callable[[Path], None], file: str, advice: str
) -> None:
    played = Played([failing("a"), passing("b")], trajectory(step(1)), output="said\n")
    directory = write_attempt(tmp_path, played, change=damage)
    found = shown(directory)
    (problem,) = found.data["problems"]
    assert problem.startswith(str(directory))
    assert f"/{file}: " in problem
    assert advice in problem
    assert found.round(1)["counts"] == [1, 2]


@pytest.mark.parametrize("name", ["verifier/test-stdout.txt", "verifier/cases.json", "agent/trajectory.json"])
def test_a_file_that_is_gone_leaves_what_the_record_has(tmp_path: Path, name: str) -> None:
    played = Played([failing("a"), passing("b")], trajectory(step(1)), output="said\n")
    found = shown(write_attempt(tmp_path, played, change=_drop(f"{_STEP}/{name}")))
    assert found.data["problems"] == []
    assert found.round(1)["counts"] == [1, 2]
    assert found.round(1)["cell"] == ("o" if "cases" in name else "n")


def test_cases_of_other_layouts_are_found(tmp_path: Path) -> None:
    trial = tmp_path / "ledger/harbor_jobs/agent/job/ledger__abc"
    (trial / "steps/round-1/verifier").mkdir(parents=True)
    (trial / "result.json").write_text(json.dumps({"trial_name": "ledger__abc", "task_name": "ledger"}))
    (trial / "steps/round-1/verifier/reward.txt").write_text("0")
    lines = "CASE_RESULT case_id=a status=failed failure_reason=bad\n"
    lines += "CASE_SUMMARY total_cases=1 success_count=0 fail_count=1\n"
    (trial / "steps/round-1/verifier/test-stdout.txt").write_text(lines)
    found = shown(trial).round(1)
    assert [(case["id"], case["reason"], case["failure"]) for case in found["cases"]] == [("a", "bad", "new miss")]
    assert found["cell"] == "n"


def test_an_undecided_round_is_neither_failed_nor_not_reached(tmp_path: Path) -> None:
    played = stored(write_attempt(tmp_path, Played([passing("x")])))
    verdict = Verdict(reward=None, rewards={"tests": 1.0, "style": 0.5}, cases=(passing("x"),))
    undecided = played.record.rounds[0].model_copy(update={"outcome": "undecided", "verdict": verdict})
    record = played.record.model_copy(update={"rounds": (undecided,)})
    data = attempt_data(replace(played, record=record), id="x")
    assert faults(data, "AttemptData") == []
    (found,) = data["rounds"]
    assert (found["cell"], found["outcome"], found["reward"], found["rewards"]) == (
        "u",
        "undecided",
        None,
        verdict.rewards,
    )
