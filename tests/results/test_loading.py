"""Our results are loaded from wherever they are; what is damaged is named and left out."""

from __future__ import annotations

import gc
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.results.loading import Results, load_results
from pytest_evocode.results.records import SelectedTask, TaskFacts
from tests.result_trees import RUN, write_attempt, write_files, write_session

pytestmark = pytest.mark.every_python

FACTS = TaskFacts(rounds=("round-1", "round-2"), change_types=(("extension",), ()), category="tools")


def summary(results: Results) -> list[tuple[str, str, int, bool, str]]:
    return [
        (
            attempt.record.task,
            attempt.record.agent,
            attempt.record.attempt,
            attempt.finished,
            " ".join(round_.outcome for round_ in attempt.record.rounds),
        )
        for attempt in results.attempts
    ]


@pytest.mark.parametrize(
    "part", [".", "ledger", "ledger/harbor_jobs", "ledger/harbor_jobs/gpt", f"ledger/harbor_jobs/gpt/{RUN}/ledger__a1"]
)
def test_results_are_found_from_any_directory_above_them(tmp_path: Path, part: str) -> None:
    written = write_attempt(tmp_path, outcomes="pf", facts=FACTS)
    results = load_results([tmp_path / part])
    assert summary(results) == [("ledger", "gpt", 1, True, "passed failed")]
    (attempt,) = results.attempts
    assert (attempt.path, attempt.run, attempt.layout) == (written.resolve(), RUN, "evocode")
    assert attempt.record.facts == FACTS
    assert results.problems == []


def test_directories_in_one_another_are_counted_once(tmp_path: Path) -> None:
    write_attempt(tmp_path)
    write_session(tmp_path, {})
    results = load_results([tmp_path, tmp_path / "ledger", tmp_path])
    assert (len(results.attempts), len(results.runs)) == (1, 1)


def test_cases_are_numbers_unless_they_are_wanted(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pf", cases=["p", "pfs"])
    for cases, ids in ((False, [[], []]), (True, [["c1"], ["c1", "c2", "c3"]])):
        (attempt,) = load_results([tmp_path], cases=cases).attempts
        verdicts = [round_.verdict for round_ in attempt.record.rounds]
        assert [[case.id for case in verdict.cases] for verdict in verdicts if verdict] == ids
        assert [round_.case_counts for round_ in attempt.record.rounds] == [(1, 1), (1, 3)]


def test_an_attempt_that_was_broken_off_has_the_rounds_that_were_done(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pfe", of=5, cases=["p", "pf"], finished=False)
    (attempt,) = load_results([tmp_path]).attempts
    assert not attempt.finished
    assert [round_.round for round_ in attempt.record.rounds] == ["round-1", "round-2"]  # An error is run again.
    assert attempt.record.declared_rounds == ("round-1", "round-2", "", "", "")
    assert [round_.case_counts for round_ in attempt.record.rounds] == [(1, 1), (1, 2)]


def test_an_attempt_that_was_broken_off_has_the_mode_of_its_run(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one", outcomes="p", first=3, of=5, finished=False)
    write_session(tmp_path / "one", {}, mode="fail-stop", from_round="round-3")
    write_attempt(tmp_path / "other", outcomes="p", of=5, finished=False)
    write_session(tmp_path / "other", {}, mode="chain")
    modes = [(each.record.mode, each.record.from_round) for each in load_results([tmp_path]).attempts]
    assert modes == [("fail-stop", "round-3"), ("chain", None)]


def test_an_attempt_of_which_nothing_is_done_is_none(tmp_path: Path) -> None:
    write_files(tmp_path, {f"ledger/harbor_jobs/gpt/{RUN}/ledger__a1/steps/round-1/artifacts/x": "x"})
    assert load_results([tmp_path]) == Results()


def test_a_task_directory_is_no_attempt(tmp_path: Path) -> None:
    """EvoCode-Bench keeps results beside the tasks' own steps, which may have anything in them."""
    write_files(
        tmp_path / "ledger",
        {
            "task.toml": "",
            "steps/round-1/workdir/result.json": "{",
            "steps/round-1/round.json": "{",
            "result.json": "{",
        },
    )
    write_attempt(tmp_path)
    results = load_results([tmp_path])
    assert (len(results.attempts), results.problems) == (1, [])


def test_what_an_attempt_left_behind_is_not_searched(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path)
    artifacts = attempt / "steps/round-1/artifacts"
    write_attempt(artifacts, "inner")
    assert [each.record.task for each in load_results([tmp_path]).attempts] == ["ledger"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"version": 2, "task": ', "it is not JSON"),
        ("", "it is not JSON"),
        ('{"declared_rounds": [], "version": 99}', "a later pytest-evocode wrote it"),
        ('{"declared_rounds": [], "version": 2}', "task: Field required"),
        ('{"version": 2}', "it is the record of neither our attempts nor Harbor's"),
    ],
)
def test_a_damaged_attempt_is_named_and_the_others_are_loaded(tmp_path: Path, text: str, why: str) -> None:
    broken = write_attempt(tmp_path, "broken") / "result.json"
    broken.write_text(text)
    write_attempt(tmp_path, "whole")
    results = load_results([tmp_path])
    assert [each.record.task for each in results.attempts] == ["whole"]
    (problem,) = results.problems
    assert problem.startswith(f"{broken}: {why}")
    advice = ": move it away, and the records of the attempt's rounds count in its place"
    assert problem.endswith("so update it; skipped" if "later" in why else f"; skipped{advice}")


def test_a_damaged_round_is_named_and_the_others_are_loaded(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path, outcomes="ppp", finished=False)
    (attempt / "steps/round-2/round.json").write_text("[]")
    results = load_results([tmp_path])
    assert [round_.index for round_ in results.attempts[0].record.rounds] == [1, 3]
    (problem,) = results.problems
    assert problem.startswith(f"{attempt}/steps/round-2/round.json: it is JSON, but not an object (list)")


def test_an_unfinished_attempt_has_from_its_run_what_is_known_of_its_task(tmp_path: Path) -> None:
    write_attempt(tmp_path, "ledger", outcomes="p", of=2, finished=False)
    known = {"ledger": SelectedTask(task_hash="abc", facts=FACTS)}
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, tasks=known)
    (attempt,) = load_results([tmp_path]).attempts
    record = attempt.record
    assert (record.declared_rounds, record.task_hash, record.facts) == (FACTS.rounds, "abc", FACTS)


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    path = write_session(tmp_path, {})
    path.write_text('{"version": 2}')
    write_attempt(tmp_path)
    results = load_results([tmp_path])
    assert (len(results.attempts), results.runs) == (1, [])
    assert results.problems[0].startswith(f"{path}: ")


def test_damaged_cases_are_named_and_their_numbers_stay(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path, outcomes="pf", cases=["p", "pf"])
    (attempt / "steps/round-2/verifier/cases.json").write_text('[{"id": 7}]')
    results = load_results([tmp_path], cases=True)
    assert [round_.case_counts for round_ in results.attempts[0].record.rounds] == [(1, 1), (1, 2)]
    (problem,) = results.problems
    assert problem.startswith(f"{attempt}/steps/round-2/verifier/cases.json: it does not hold cases")
    assert load_results([tmp_path]).problems == []


def test_cases_that_are_gone_leave_their_numbers(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path, outcomes="f", cases=["pf"])
    shutil.rmtree(attempt / "steps")
    results = load_results([tmp_path], cases=True)
    assert (results.attempts[0].record.rounds[0].case_counts, results.problems) == ((1, 2), [])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path)
    (attempt / "result.json").unlink()
    (attempt / "result.json").mkdir()
    results = load_results([tmp_path])
    assert results.attempts == []
    advice = "move it away, and the records of the attempt's rounds count in its place"
    assert results.problems == [f"{attempt}/result.json: Is a directory; skipped: {advice}"]


def test_json_of_others_is_passed_by(tmp_path: Path) -> None:
    write_files(tmp_path, {"result.json": {"answer": 42}, "runs/notes.txt": "x"})
    write_attempt(tmp_path / "below")
    results = load_results([tmp_path])
    assert (len(results.attempts), results.problems) == (1, [])


def test_a_directory_that_is_removed_meanwhile_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_attempt(tmp_path / "evocode-results")
    (tmp_path / "a").mkdir()
    scandir = os.scandir

    def removing(path: str) -> Any:
        if path == str(tmp_path / "a"):
            os.rmdir(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", removing)
    assert len(load_results([tmp_path]).attempts) == 1


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no directory .*/nowhere"):
        load_results([tmp_path, tmp_path / "nowhere"])


def test_loading_leaves_the_garbage_collector_as_it_was(tmp_path: Path) -> None:
    load_results([tmp_path])
    assert gc.isenabled()


def test_an_attempt_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    """``result.json`` and the cases beside it are all that there is of an attempt."""
    attempt = write_attempt(tmp_path, outcomes="pfe-", cases=["pp", "pfes"])
    values = json.loads((attempt / "result.json").read_text())
    assert [round_["verdict"] and round_["verdict"]["cases"] for round_ in values["rounds"]] == [[], [], None, None]
    (loaded,) = load_results([tmp_path], cases=True).attempts
    assert [
        [(case.id, case.status) for case in round_.verdict.cases] for round_ in loaded.record.rounds if round_.verdict
    ] == [
        [("c1", "passed"), ("c2", "passed")],
        [("c1", "passed"), ("c2", "failed"), ("c3", "error"), ("c4", "skipped")],
    ]
