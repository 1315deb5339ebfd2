"""Sessions with ``--evocode-report``: the report while they run and at their end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_evocode.plugin import report_files
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.report.html.reports import value_in

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

#: Waits in its second round until a report has been written of the first.
_WAITING = """
import pathlib, time
from pytest_evocode.agents import RoundTranscript

INDEX = pathlib.Path(__file__).parent / "evocode-report" / "data" / "index.js"

class Waiting:
    name = "waiting"

    def run_round(self, context):
        ends = time.monotonic() + 60
        while context.round.index > 1 and not INDEX.exists() and time.monotonic() < ends:
            time.sleep(0.05)
        context.environment.exec(f"echo line-{context.round.index} >> log.txt")
        if INDEX.exists():
            (INDEX.parents[2] / "seen.js").write_bytes(INDEX.read_bytes())
        return RoundTranscript()

def pytest_evocode_make_agent(name):
    return Waiting() if name == "waiting" else None
"""


def test_a_session_writes_its_report_while_rounds_end_and_at_its_own_and_says_where(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_files, "FIRST_PAUSE", 0.2)
    write_task("a", 2)
    pytester.makeconftest(_WAITING)
    session = run_tasks("--evocode-report", "tasks", agent="waiting")
    assert session.outcomes == {"passed": 2}
    session.has("evocode: report evocode-report/index.html, written again while rounds end")
    session.has("evocode report: evocode-report/index.html")
    (session.directory / "data").mkdir()
    (session.directory / "seen.js").rename(session.directory / "data" / "index.js")
    during = value_in(session.directory, "index")
    assert during["under_way"]
    assert re.fullmatch(r"[a-z]\?", during["attempts"][0]["cells"])
    report = session.directory / "evocode-report"
    after = value_in(report, "index")
    assert not after["under_way"]
    assert [attempt["cells"] for attempt in after["attempts"]] == ["pp"]
    (run,) = after["runs"]
    assert run["finished"]
    assert run["exit_status"] == 0
    (task,) = after["tasks"]
    # It knows where the session found its tasks.
    assert [len(each["suite"]) for each in value_in(report, f"tasks/{task['id']}")["rounds"]] != []


@pytest.mark.nightly
def test_workers_make_the_attempts_and_one_process_the_report(write_task: WriteTask, run_tasks: RunTasks) -> None:
    for name in ("a", "b"):
        write_task(name, 1)
    session = run_tasks("--evocode-report=pages/new", "-n2", "tasks")
    assert session.outcomes == {"passed": 2}
    session.has("evocode report: pages/new/index.html")
    index = value_in(session.directory / "pages" / "new", "index")
    assert sorted(attempt["task"] for attempt in index["attempts"]) == ["a", "b"]
    for task in index["tasks"]:
        assert value_in(session.directory / "pages" / "new", f"tasks/{task['id']}")["rounds"] is not None


def test_a_directory_that_holds_something_else_is_refused_before_anything_is_run(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-report=tasks", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "--evocode-report: " in session.text
    assert "tasks holds something else than a report, and is left as it is" in session.text
    assert not session.results.exists()


def test_a_report_that_cannot_be_written_is_told_and_fails_nothing(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_files, "_CHILD", "import sys; sys.exit('the disk is full')")
    write_task("a", 1)
    session = run_tasks("--evocode-report", "tasks")
    assert session.exit_status == 0
    session.has("evocode: no report: the disk is full; write it with: evocode report evocode-results")


def test_a_session_without_verdicts_takes_no_report(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-report", "--evocode-check", "tasks", agent=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "leave out --evocode-report" in session.text
    assert not Path(session.directory, "evocode-report").exists()
