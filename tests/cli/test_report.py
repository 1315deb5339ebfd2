"""``evocode report``: the folder and the single file, as the command writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Evocode
from tests.report.html.reports import value_in
from tests.result_trees import write_attempt, write_files, write_session
from tests.results.foreign.harbor_trials import JOB, TASK_TOML, result_of, suite, trajectory


def test_a_report_is_written_beside_the_results_and_its_page_named(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "gpt", "pf", cases=["p", "f"])
    ran = evocode("report", "--title=Ours <1>")
    assert (ran.status, ran.lines) == (0, ["report written: evocode-report/index.html"])
    assert value_in(tmp_path / "evocode-report", "index")["title"] == "Ours <1>"
    assert "# Ours &lt;1&gt;" in (tmp_path / "evocode-report" / "summary.md").read_text()


def test_several_directories_and_only_one_run_can_be_chosen(evocode: Evocode, tmp_path: Path) -> None:
    for number in (1, 2):
        run = f"2026-01-0{number}__00-00-00"
        write_attempt(tmp_path / f"r{number}", "a", "gpt", "p", cases=["p"], run=run)
    assert evocode("report", "r1", "r2", "-o", "both").status == 0
    assert len(value_in(tmp_path / "both", "index")["attempts"]) == 2
    assert evocode("report", "r1", "r2", "-o", "one", "--run=2026-01-01__00-00-00").status == 0
    counted = [each for each in value_in(tmp_path / "one", "index")["attempts"] if not each["left_out"]]
    assert [each["run"] for each in counted] == ["2026-01-01__00-00-00"]
    assert "there is no run x" in evocode("report", "r1", "--run=x").err


def test_damaged_files_are_named_one_by_one_and_the_rest_is_written(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "gpt", "p", cases=["p"])
    record = write_attempt(results, "b", "gpt", "p", cases=["p"]) / "result.json"
    cases = write_attempt(results, "c", "gpt", "p", cases=["p"]) / "steps" / "round-1" / "verifier" / "cases.json"
    record.write_text("{")
    cases.write_text("no cases")
    ran = evocode("report")
    assert ran.status == 0
    warnings = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    assert sorted(sum(str(path) in line for line in warnings) for path in (record, cases)) == [1, 1]
    index = value_in(tmp_path / "evocode-report", "index")
    assert {attempt["task"] for attempt in index["attempts"]} >= {"a", "c"}
    assert any(str(record.relative_to(tmp_path)) in problem for problem in index["problems"])


def test_nothing_at_all_is_an_error_as_for_other_commands(evocode: Evocode, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = evocode("report", "empty")
    assert (ran.status, ran.err) == (1, "Error: there are no results in empty\n")
    assert not (tmp_path / "evocode-report").exists()


def test_a_directory_that_holds_something_else_is_refused(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "gpt", "p")
    ran = evocode("report", "-o", "evocode-results")
    assert ran.status == 1
    assert "evocode-results holds something else than a report, and is left as it is" in ran.err


def test_one_file_has_the_whole_report_up_to_a_size(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "gpt", "pf", cases=["p", "f"])
    ran = evocode("report", "--single-file")
    assert ran.lines == ["report written: evocode-report.html"]
    assert not (tmp_path / "evocode-report").exists()
    ran = evocode("report", "--single-file", "-o", "small.html", "--most-megabytes=0.01")
    assert ran.status == 1
    assert "larger than 0.01 MB in one file" in ran.err


def test_a_report_is_opened_where_there_is_a_browser(
    evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "gpt", "p")
    opened: list[str] = []

    def open_(url: str) -> bool:
        opened.append(url)
        return len(opened) == 1

    monkeypatch.setattr("webbrowser.open", open_)
    assert "no browser" not in evocode("report", "--open").err
    assert opened == [(tmp_path / "evocode-report" / "index.html").as_uri()]
    assert "note: there is no browser to open it with" in evocode("report", "--open").err


def test_results_of_harbor_are_shown_with_their_cases_and_trajectories(evocode: Evocode, tmp_path: Path) -> None:
    trial = tmp_path / "mesh" / "harbor_jobs" / "gpt-5.5" / JOB / "mesh__abcdefg"
    steps = [{"step_name": "round-1"}, {"step_name": "round-2"}]
    write_files(tmp_path / "mesh", {"task.toml": TASK_TOML})
    write_files(
        trial,
        {
            "result.json": result_of("mesh__abcdefg", step_results=steps),
            "config.json": {},
            "steps/round-1/verifier/reward.txt": "1\n",
            "steps/round-1/verifier/test-stdout.txt": suite(4, 4),
            "steps/round-1/agent/trajectory.json": trajectory(2, 0, 3),
            "steps/round-2/verifier/reward.txt": "0\n",
            "steps/round-2/verifier/test-stdout.txt": suite(3, 4),
        },
    )
    assert evocode("report", "mesh", "-o", "pages").status == 0
    (summary,) = value_in(tmp_path / "pages", "index")["attempts"]
    assert summary["cells"] == "pr-"
    attempt = value_in(tmp_path / "pages", f"attempts/{summary['id']}")
    failing = [(case["id"], case["failure"]) for case in attempt["rounds"][1]["cases"] if case["status"] != "passed"]
    assert failing == [("c4", "regression")]
    assert attempt["rounds"][0]["trajectory"]["parts"] == 1
    assert len(value_in(tmp_path / "pages", f"trajectories/{summary['id']}-1-1")) > 0


def test_the_summary_says_of_which_rows_missing_rounds_count_as_not_passed(evocode: Evocode, tmp_path: Path) -> None:
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "p", of=2, finished=False)
    write_session(root, {"a": {"gpt": [1]}})
    assert evocode("report", "-o", "page").status == 0
    summary = (tmp_path / "page" / "summary.md").read_text(encoding="utf-8")
    assert "- gpt: not finished, missing rounds count as not passed: a " in summary
