"""What a session writes for other programs: JSON and JUnit files, CTRF, summaries and annotations on GitHub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks, RunTasks, Session
    from tests.acceptance.tasks import WriteTask

WORKERS = pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n2",), id="workers", marks=pytest.mark.slow)]
)

SPENDING_AGENT = """
    from pytest_evocode.agents import RoundTranscript
    from pytest_evocode.trajectories.atif import AgentInfo, Step, StepMetrics, ToolCall, Trajectory

    class Spending:
        name = "spending"

        def run_round(self, context):
            context.environment.exec(f"echo line-{context.round.index} >> log.txt")
            call = ToolCall(tool_call_id="1", function_name="bash")
            paid = StepMetrics(prompt_tokens=100, completion_tokens=20, cost_usd=0.25)
            steps = (Step(step_id=1, source="agent", tool_calls=(call,), metrics=paid),)
            info = AgentInfo(name="spending", version="1")
            return RoundTranscript(trajectory=Trajectory(session_id="s", agent=info, steps=steps))

    def pytest_evocode_make_agent(name):
        return Spending() if name == "spending" else None
"""


@pytest.fixture
def on_github(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> Path:
    """The file that a job's summary is appended to."""
    summary = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    return summary


def write_mixed(write_task: WriteTask) -> None:
    """In task ``a`` round 2 fails and round 3 breaks down; task ``b`` passes."""
    write_task("a", 4, solve={2: "echo wrong >> log.txt", 3: "exit 1"})
    write_task("b", 1)


def junit_properties(session: Session) -> dict[str, dict[str, str]]:
    """The properties in ``junit.xml`` by task and round."""
    root = ElementTree.parse(session.directory / "junit.xml").getroot()
    found = {}
    for case in root.iter("testcase"):
        values = {node.get("name", ""): node.get("value", "") for node in case.iter("property")}
        found[f"{(case.get('classname') or '').split('.')[1]} {case.get('name')}"] = values
    return found


def annotated(session: Session) -> list[str]:
    return [line for line in session.result.outlines if line.startswith("::")]


# JSON.


@WORKERS
@pytest.mark.matrix
def test_a_json_report_has_the_run_with_scores_intervals_and_rounds(
    write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    write_mixed(write_task)
    asked = ("--evocode-agent=nop", "--json-report", "--evocode-shard=1/1", *workers, "tasks")
    session = run_tasks(*asked, subprocess=bool(workers))
    block = session.json_report()["evocode"]
    assert (block["run"], block["environment"]) == (session.run.run, "sandbox")
    assert (block["mode"], block["from_round"], block["shard"]) == ("chain", None, [1, 1])
    assert set(block["agents"]) == {"oracle", "nop"}
    oracle = block["agents"]["oracle"]
    assert oracle["identity"] != block["agents"]["nop"]["identity"]
    assert oracle["scores"] == session.run.scores["oracle"]
    assert oracle["scores"]["dataset_score"] == (25 + 100) / 2
    assert oracle["without_faults"] is None
    assert oracle["intervals"]["dataset_score"] is None
    assert oracle["interval_notes"]["dataset_score"] == "no interval below 5 tasks"
    assert {task: group["dataset_score"] for task, group in oracle["tasks"].items()} == {"a": 25.0, "b": 100.0}
    rounds = [(each["task"], each["agent"], each["round"], each["outcome"]) for each in block["rounds"]]
    assert len(rounds) == 2 * (4 + 1)
    assert ("a", "oracle", "round-2", "failed") in rounds
    assert all(each["verdict"] is None or not each["verdict"]["cases"] for each in block["rounds"])


def test_a_json_report_without_rounds_has_no_such_block(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    pytester.makepyfile("def test_good(): pass")
    assert "evocode" not in run_tasks("--json-report").json_report()


# JUnit.


@WORKERS
@pytest.mark.matrix
def test_junit_properties_are_plain_values(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    pytester.makeconftest(SPENDING_AGENT)
    write_task("a", 2, test={2: "echo 'CASE_RESULT case_id=x status=fail'; echo 0.5 > /logs/verifier/reward.txt"})
    session = run_tasks("--junitxml=junit.xml", *workers, "tasks", agent="spending", subprocess=bool(workers))
    found = junit_properties(session)["a round-2"]
    assert float(found.pop("agent_seconds")) >= 0
    assert float(found.pop("verifier_seconds")) > 0
    assert found == {
        "task": "a",
        "agent": "spending",
        "attempt": "1",
        "round": "round-2",
        "outcome": "failed",
        "reward": "0.5",
        "cases_passed": "0",
        "cases": "1",
        "failed_cases": "x",
        "tool_calls": "1",
        "prompt_tokens": "100",
        "completion_tokens": "20",
        "cost_usd": "0.25",
        "requests": "1",
    }


def test_junit_properties_of_an_error_say_whose_it_is(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3, solve={2: "exit 1"})
    found = junit_properties(run_tasks("--junitxml=junit.xml", "tasks"))
    assert (found["a round-2"]["outcome"], found["a round-2"]["fault"]) == ("error", "agent")
    assert "reward" not in found["a round-2"]
    assert found["a round-3"]["outcome"] == "not reached"


def test_junit_keeps_the_properties_of_others(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest("def pytest_runtest_setup(item):\n    item.user_properties.append(('machine', 'seven'))")
    write_task("a", 1)
    session = run_tasks("--junitxml=junit.xml")
    found = junit_properties(session)
    assert found["a round-1"]["machine"] == "seven"


# CTRF.


@WORKERS
@pytest.mark.matrix
def test_ctrf_reports_work_beside_it(write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]) -> None:
    write_mixed(write_task)
    session = run_tasks("--ctrf=ctrf.json", "--json-report", *workers, "tasks", subprocess=bool(workers))
    assert session.exit_status == 1
    results = json.loads((session.directory / "ctrf.json").read_text())["results"]
    found = {test["name"].removeprefix("tasks/"): test for test in results["tests"]}
    statuses = {name.replace("/task.toml::oracle::", " "): test["status"] for name, test in found.items()}
    assert statuses == {
        "a round-1": "passed",
        "a round-2": "failed",
        "a round-3": "failed",
        "a round-4": "skipped",
        "b round-1": "passed",
    }
    failed = found["a/task.toml::oracle::round-2"]
    assert failed["message"] == "round-2 failed: 1 of 2 cases failed (1 new miss, 0 regressions)"
    assert "expected: line-2" in failed["trace"]
    assert results["summary"]["failed"] == 2


# GitHub.


@WORKERS
@pytest.mark.matrix
def test_a_job_on_github_gets_a_summary(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    on_github.write_text("# Before\n")
    write_mixed(write_task)
    session = run_tasks(*workers, "tasks", subprocess=bool(workers))
    text = on_github.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[:2] == ["# Before", "## Benchmark"]
    assert f"Run {session.run.run}, environment sandbox".replace("_", "\\_") in lines
    (head,) = (line for line in lines if line.startswith("| agent |"))
    assert head.startswith("| agent | Dataset Score | Case Score |")
    assert any(line.startswith("| oracle | 62.5 |") for line in lines)
    assert any(line.startswith("95 %: no interval below 5 tasks") for line in lines)
    assert "| a | ✅ | ❌ | ⚠️ | - |" in lines
    assert "| b | ✅ |   |   |   |" in lines
    # Errors first, for they are nobody's verdict.
    titles = [line for line in lines if line.startswith("<details>")]
    assert titles[0].startswith("<details><summary>a oracle round-3 error: ")
    assert titles[1].startswith("<details><summary>a oracle round-2 failed: 1 of 2 cases failed")
    assert any(line.endswith("expected: line-2") for line in lines), lines


@WORKERS
@pytest.mark.matrix
def test_what_did_not_pass_is_marked_at_its_round_in_the_task(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    write_mixed(write_task)
    session = run_tasks(*workers, "tasks", subprocess=bool(workers))
    steps = (session.directory / "tasks/a/task.toml").read_text().splitlines()
    at = {name: steps.index(f'name = "{name}"') + 1 for name in ("round-2", "round-3")}
    failed, broken = annotated(session)
    assert failed.startswith(
        f"::error file=tasks/a/task.toml,line={at['round-2']},title=a oracle round-2::"
        "round-2 failed: 1 of 2 cases failed (1 new miss, 0 regressions)%0A"
    )
    assert broken.startswith("::error file=tasks/a/")
    assert ",title=a oracle round-3::" in broken


def test_failed_rounds_are_warnings_where_a_score_counts(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_mixed(write_task)
    session = run_tasks("--evocode-fail-under=10", "tasks")
    assert [line.partition(" ")[0] for line in annotated(session)] == ["::error", "::warning"]


def test_a_broken_task_is_marked_at_its_line(on_github: Path, write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, toml="[agent]\ntimeout_sec = 'soon'")
    (mark,) = annotated(run_tasks("tasks"))
    assert mark.startswith("::error file=tasks/a/task.toml,line=2,title=tasks/a/task.toml::")
    assert "timeout_sec" in mark


def test_failed_cases_are_not_marked_each(on_github: Path, write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, solve={1: "true", 2: "true"})
    assert len(annotated(run_tasks("-o", "evocode_cases=subtests", "tasks"))) == 2


def test_failed_checks_are_marked(on_github: Path, write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, solve={1: "true"})
    marks = annotated(check_tasks("-k", "oracle").session)
    assert len(marks) == 1
    assert marks[0].startswith("::error file=tasks/a/")
    assert not on_github.exists()


def test_nothing_is_said_to_github_of_what_is_only_collected(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    write_task("b", 1, toml="nonsense = 1")
    assert annotated(run_tasks("--collect-only", "tasks")) == []
    assert not on_github.exists()


def test_nothing_is_said_to_github_elsewhere(
    on_github: Path, monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    write_mixed(write_task)
    assert annotated(run_tasks("tasks")) == []
    assert not on_github.exists()


def test_a_summary_that_cannot_be_written_does_no_harm(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    on_github.mkdir()
    write_task("a", 1)
    session = run_tasks("tasks")
    assert session.exit_status == 0
    session.has(f"evocode: no job summary: {on_github}: Is a directory")


def test_no_output_has_a_secret(
    on_github: Path,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    write_task: WriteTask,
    run_tasks: RunTasks,
) -> None:
    monkeypatch.setenv("TEST_API_KEY", "sk-of-the-host-123")
    failing = """
        echo 'CASE_RESULT case_id=x status=fail actual="sk-of-the-host-123"'
        echo 0 > /logs/verifier/reward.txt
    """
    write_task("a", 2, test={1: failing}, solve={2: "echo sk-of-the-host-123; exit 1"})
    outputs = ("--json-report", "--junitxml=junit.xml", "--ctrf=ctrf.json")
    session = run_tasks(*outputs, "tasks")
    written: dict[str, Any] = {
        name: (session.directory / name).read_text()
        for name in (".report.json", "junit.xml", "ctrf.json", "summary.md")
    }
    written["annotations"] = "\n".join(annotated(session))
    for name, text in written.items():
        assert "sk-of-the-host-123" not in text, name
        assert "[TEST_API_KEY]" in text, name
