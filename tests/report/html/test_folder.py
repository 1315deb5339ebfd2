"""The folder of a report: what is written to it, when, and what is left alone."""

from __future__ import annotations

import gzip
import json
import math
import re
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.failures import worst_requirements
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.failures import failures_view
from pytest_evocode.report.html import bundle
from pytest_evocode.report.html.contents import ReportContents, found_tasks
from pytest_evocode.report.html.folder import MARKER, claimed, packed
from pytest_evocode.report.html.writing import write_report, write_single_file
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import TaskFacts
from tests.report.html.reports import files_in, unpacked, value_in
from tests.result_trees import write_attempt, write_session

#: Of script and style together, as they lie on disk and as a web server sends them.
MOST_BYTES, MOST_BYTES_SENT = 122_000, 48_000


def contents(results: Path, *, title: str = "", under_way: str = "") -> ReportContents:
    found = load_results([results])
    return ReportContents(found, score_table(found), [results], title=title, under_way=under_way)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three attempts at two tasks."""
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "pf", cases=["pp", "pf"])
    write_attempt(root, "a", "nop", "ff", cases=["fp", "ff"])
    write_attempt(root, "b", "gpt", "p", cases=["p"])
    return root


@pytest.fixture
def report(results: Path, tmp_path: Path) -> Path:
    """A report of them."""
    return write_report(tmp_path / "report", contents(results)).page.parent


def test_a_report_has_a_chunk_for_each_attempt_and_task_that_the_index_names(report: Path) -> None:
    index = value_in(report, "index")
    names = {path.stem for path in (report / "data" / "attempts").iterdir()}
    assert names == {attempt["id"] for attempt in index["attempts"]}
    assert len(names) == 3
    assert {path.stem for path in (report / "data" / "tasks").iterdir()} == {task["id"] for task in index["tasks"]}
    for name in names:
        assert value_in(report, f"attempts/{name}")["id"] == name
    assert {pair["first"] for pair in value_in(report, "comparisons")["pairs"]} <= {row["id"] for row in index["rows"]}


def test_the_kinds_of_failed_rounds_reach_the_index(report: Path) -> None:
    cells = {(each["task"], each["agent"]): each["cells"] for each in value_in(report, "index")["attempts"]}
    assert cells == {("a", "gpt"): "pr", ("a", "nop"): "nr", ("b", "gpt"): "p"}


def test_the_page_only_links_its_script_and_style_under_a_strict_policy(report: Path) -> None:
    page = (report / "index.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1] == "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
    assert re.findall(r"<script[^>]*>[^<]*", page) == ['<script src="report.js">']
    assert re.findall(r'<link rel="stylesheet"[^>]*>', page) == ['<link rel="stylesheet" href="report.css">']
    assert "<style" not in page
    assert "<noscript>" in page


def test_a_report_written_again_leaves_alone_what_did_not_change(results: Path, report: Path) -> None:
    before = files_in(report)
    write_attempt(results, "a", "nop", "fp", cases=["fp", "pp"])
    write_report(report, contents(results))
    after = files_in(report)
    changed = {name for name in after if before.get(name) != after[name]}
    (nop,) = (each["id"] for each in value_in(report, "index")["attempts"] if each["agent"] == "nop")
    assert {name for name in changed if name.startswith("data/")} <= {
        f"data/attempts/{nop}.js",
        "data/tasks/a.js",
        "data/index.js",
        "data/comparisons.js",
    }
    assert f"data/attempts/{nop}.js" in changed
    assert not changed & {"index.html", "report.js", "report.css"}
    assert after.keys() == before.keys()


def test_a_report_of_which_nothing_is_new_is_left_as_it_is(results: Path, report: Path) -> None:
    before = files_in(report)
    for path in results.rglob("round.json"):
        path.touch()  # Nothing that is shown depends on it, once the attempt has ended.
    write_report(report, contents(results))
    after = files_in(report)
    assert {name for name in after if before[name] != after[name]} <= {MARKER}


def _score_the_process(results: Path) -> None:
    next(results.rglob("result.json")).with_name("process.json").write_text("{")


def _change_an_attempt(results: Path) -> None:
    path = next((results / "b").rglob("result.json"))
    path.write_text(path.read_text().replace('"environment": "sandbox"', '"environment": "docker"'))


@pytest.mark.parametrize(
    "change",
    [
        lambda results: write_session(results, {"a": {"gpt": [1, 2]}}),
        lambda results: write_attempt(results, "b", "gpt", "p", run="2026-01-03__00-00-00"),
        lambda results: (
            (results / "b" / "gone" / "steps").mkdir(parents=True) or (results / "b/gone/result.json").touch()
        ),
        _score_the_process,
        _change_an_attempt,
    ],
)
def test_the_overview_is_written_anew_where_anything_that_it_is_made_from_is_new(
    results: Path, report: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    change(results)
    write_report(report, contents(results))
    fresh = write_report(tmp_path / "fresh", contents(results)).page.parent
    index, expected = value_in(report, "index"), value_in(fresh, "index")
    assert {**index, "written": ""} == {**expected, "written": ""}
    assert (report / "csv" / "rounds.csv").read_bytes() == (fresh / "csv" / "rounds.csv").read_bytes()


def test_the_overview_is_written_anew_where_it_has_another_title_or_must_not_tell_more(
    results: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(report, contents(results, title="Ours"))
    assert value_in(report, "index")["title"] == "Ours"
    write_report(report, contents(results, title="Ours of 2026"))
    assert value_in(report, "index")["title"] == "Ours of 2026"
    monkeypatch.setenv("EVO_API_KEY", "Ours of 2026")
    write_report(report, contents(results, title="Ours of 2026"))
    assert value_in(report, "index")["title"] == "[EVO_API_KEY]"
    path = report / "csv" / "rounds.csv"
    path.unlink()
    write_report(report, contents(results))
    assert path.exists()


def test_it_is_the_same_as_one_that_is_written_at_once(results: Path, report: Path, tmp_path: Path) -> None:
    write_attempt(results, "a", "nop", "fp", cases=["fp", "pp"])
    write_attempt(results, "c", "nop", "f", cases=["f"])
    write_report(report, contents(results))
    fresh = write_report(tmp_path / "fresh", contents(results)).page.parent
    assert files_in(report).keys() == files_in(fresh).keys()
    for name in files_in(fresh):
        if name.startswith("data/") and name != "data/index.js":
            assert (report / name).read_bytes() == (fresh / name).read_bytes(), name
    index, expected = value_in(report, "index"), value_in(fresh, "index")
    assert {**index, "written": ""} == {**expected, "written": ""}


def test_chunks_of_attempts_that_are_gone_are_removed(results: Path, report: Path) -> None:
    gone = next((results / "b" / "harbor_jobs" / "gpt").glob("*/*"))
    for path in sorted(gone.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    write_report(report, contents(results))
    assert len(list((report / "data" / "attempts").iterdir())) == 2
    assert {path.stem for path in (report / "data" / "tasks").iterdir()} == {"a"}


def test_a_chunk_that_somebody_removed_comes_back(results: Path, report: Path) -> None:
    lost = next((report / "data" / "attempts").iterdir())
    content = lost.read_bytes()
    lost.unlink()
    write_report(report, contents(results))
    assert lost.read_bytes() == content


def test_a_directory_that_holds_something_else_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"evocode-results holds something else than a report.*name a new or empty"):
        write_report(results, contents(results))
    assert not (results / "index.html").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file is a file; name a directory"):
        write_report(tmp_path / "file", contents(results))
    with pytest.raises(UsageError, match="no report can be written there"):
        write_report(tmp_path / "file" / "below", contents(results))


@pytest.mark.parametrize("marker", ["", "[]", "{}", '{"about": 1, "tasks": []}'])
def test_a_damaged_marker_has_everything_written_anew(results: Path, report: Path, marker: str) -> None:
    (report / MARKER).write_text(marker)
    write_report(report, contents(results))
    assert json.loads((report / MARKER).read_text())["tasks"].keys() == {"a", "b"}


def test_two_writers_take_turns(report: Path) -> None:
    entered = threading.Event()

    def second() -> None:
        with claimed(report):
            entered.set()

    thread = threading.Thread(target=second)
    with claimed(report):
        thread.start()
        assert not entered.wait(0.2)
    thread.join(10)
    assert entered.is_set()


def test_files_can_be_read_by_others(report: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in report.rglob("*") if path.is_file()} == {0o644}


def test_what_is_packed_is_the_same_every_time_and_only_ascii() -> None:
    value = {"text": "</script>\u2028\ud800<!--", "number": math.nan, "list": [1, math.inf]}
    script = packed("attempts/x-1", value)
    assert script == packed("attempts/x-1", value)
    assert unpacked(script) == ("attempts/x-1", {"text": value["text"], "number": None, "list": [1, None]})
    assert script.isascii()
    for name in ("", "a/../b", 'a"', "a b", "A", "a/", "é"):
        with pytest.raises(ValueError, match="cannot be the name of a file"):
            packed(name, value)


def test_the_viewer_is_small_and_complete() -> None:
    names = [path.name for path in bundle.scripts()]
    assert sorted(names) == sorted(path.name for path in bundle.VIEWER.glob("*.js"))
    assert names[-1] == bundle.LAST
    assert [name for name in names if name in bundle.FIRST] == list(bundle.FIRST)
    assert next(path.name for path in bundle.styles()) == "base.css"
    script, style = bundle.script(), bundle.style()
    whole = (script + style).encode()
    assert len(whole) <= MOST_BYTES
    assert len(gzip.compress(whole)) <= MOST_BYTES_SENT
    assert (bundle.VIEWER / "licence.txt").read_bytes() == (Path(__file__).parents[3] / "LICENSE").read_bytes()
    assert "Permission is hereby granted" in script[:1000]


def test_a_report_in_one_file_has_everything_under_a_policy_of_hashes(results: Path, tmp_path: Path) -> None:
    page = write_single_file(tmp_path / "report.html", contents(results), most=1_000_000).page.read_text()
    assert page.count("<script>") == page.count("</script>") == 2
    assert "src=" not in page.partition("<script>")[0]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-\S+' 'sha256-\S+'; style-src 'sha256-\S+'; img-src data:", policy[1]
    )
    assert len(re.findall(r'evocode\.receive\("', page)) >= 1 + 1 + 3 + 2
    with pytest.raises(UsageError, match=r"larger than 0\.001 MB in one file.*write a folder.*--most-megabytes"):
        write_single_file(tmp_path / "small.html", contents(results), most=1000)
    assert not (tmp_path / "small.html").exists()


def test_a_run_without_rounds_is_written_and_says_what_to_do(tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_session(results, {"a": {"gpt": [1]}})
    report = write_report(tmp_path / "report", contents(results)).page.parent
    assert value_in(report, "index")["attempts"] == []
    assert "0 attempts" in (report / "summary.md").read_text()


@pytest.mark.parametrize("agents", [("gpt", "other"), ("gpt", "nop"), ("nop",)])
def test_worst_requirements_are_those_of_evocode_failures(tmp_path: Path, agents: tuple[str, ...]) -> None:
    results = tmp_path / "evocode-results"
    for agent in agents:
        write_attempt(results, "a", agent, "ff", cases=["fp", "ff"])
        write_attempt(results, "a", agent, "fp", cases=["ff", "pp"], run="2025-01-01__00-00-00")  # It is superseded.
        write_attempt(results, "b", agent, "f", cases=["f"], of=2, finished=False)
    found = load_results([results], cases=True)
    counting = [each for each in found.attempts if each.finished and not each.run.startswith("2025")]
    others = [each for each in counting if each.record.agent != "nop"] or counting
    expected = worst_requirements(*(attempt.record.rounds for attempt in others))
    told = failures_view(score_table(found).rows, top=10).json
    assert told is not None
    assert told()["requirements"] == [asdict(each) | {"share": each.share} for each in expected]
    report = write_report(tmp_path / "report", contents(results)).page.parent
    summary = json.loads((report / "summary.json").read_text())
    assert [(each["task"], each["requirement"], each["failed"], each["of"]) for each in summary["requirements"]] == [
        (each.task, each.requirement, each.failed, each.of) for each in expected
    ]
    assert [each["kinds"] for each in summary["requirements"]] == [each.kinds for each in expected]


def test_requirements_are_counted_anew_where_other_attempts_count(results: Path, tmp_path: Path) -> None:
    def requirements(counted: frozenset[str] | None) -> list[str]:
        found = load_results([results])
        facts = None if counted is None else {name: TaskFacts(("round-1",)) for name in counted}
        shown = ReportContents(found, score_table(found, tasks=facts), [results], counted=counted)
        report = write_report(tmp_path / "again", shown).page.parent
        return [each["task"] for each in json.loads((report / "summary.json").read_text())["requirements"]]

    assert [requirements(counted) for counted in (None, frozenset({"b"}), None)] == [["a"], [], ["a"]]


def test_the_summary_counts_the_attempts_that_count(tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "gpt", "pp")
    write_attempt(results, "a", "other", "p", of=2, finished=False)
    report = write_report(tmp_path / "report", contents(results)).page.parent
    told = (report / "summary.md").read_text()
    assert "1 attempt by 1 agent at 1 task with 2 rounds, in 1 run; 1 more do not count; written " in told


def test_the_summaries_say_what_was_run_who_is_best_what_failed_and_where_to_look(report: Path) -> None:
    summary = json.loads((report / "summary.json").read_text())
    assert next(entry["agent"] for entry in summary["leaderboard"]) == "gpt"
    assert summary["rows"][0]["scores"]["dataset_score"] == summary["leaderboard"][0]["dataset_score"]
    first = summary["look_next"][0]
    assert (first["task"], first["agent"], first["cell"], first["round"]) == ("a", "gpt", "r", 2)
    text = (report / "summary.md").read_text()
    for heading in ("## Leaderboard", "## Failures by kind", "## Worst requirements", "## Where to look next"):
        assert heading in text
    assert first["page"] in text


def test_every_table_is_there_as_csv(report: Path) -> None:
    lines = {path.name: path.read_text().splitlines() for path in (report / "csv").iterdir()}
    assert sorted(lines) == [
        "comparisons.csv",
        "leaderboard.csv",
        "pareto.csv",
        "pass_rates.csv",
        "rounds.csv",
        "tasks.csv",
    ]
    assert len(lines["rounds.csv"]) == 1 + 5
    assert len(lines["tasks.csv"]) == 1 + 3
    assert lines["pass_rates.csv"][0] == "agent,round,passed,of,first_failures"
    assert lines["pass_rates.csv"][1].startswith("gpt,1,2")
    assert lines["leaderboard.csv"][1].startswith("gpt,")


def test_tasks_are_found_where_their_session_was_called(tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_session(results, {"a": {"gpt": [1]}})
    record = json.loads((path := next((results / "runs").iterdir())).read_text())
    path.write_text(json.dumps(record | {"arguments": ["--evocode-agent=gpt", "tasks/a::gpt::round-1"]}))
    (tmp_path / "tasks" / "a").mkdir(parents=True)
    (tmp_path / "tasks" / "a" / "task.toml").write_text("")
    found = load_results([results])
    assert found_tasks(found, None) == {"a": tmp_path / "tasks" / "a"}
    assert found_tasks(found, tmp_path) == {"a": tmp_path / "tasks" / "a"}


def test_a_round_that_is_under_way_is_shown_so_only_while_its_session_writes(tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    run = "2026-01-02__03-04-05"
    write_session(results, {"a": {"gpt": [1]}})
    write_attempt(results, "a", "gpt", "p", of=3, cases=["p"], finished=False, run=run)
    report = write_report(tmp_path / "report", contents(results, under_way=run)).page.parent
    index = value_in(report, "index")
    assert index["under_way"]
    during = index["attempts"][0]["cells"]
    write_report(report, contents(results))
    index = value_in(report, "index")
    assert not index["under_way"]
    assert (during[0], index["attempts"][0]["cells"][0]) == ("p", "p")
    assert "?" in during
    assert "?" not in index["attempts"][0]["cells"]
