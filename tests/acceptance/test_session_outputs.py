"""What a session writes for other programs: JSON and JUnit files, CTRF, summaries and annotations on GitHub."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks, RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

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


def test_files_summaries_and_annotations_tell_the_same_of_a_mixed_run(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    look_at_all_outputs(on_github, write_task, run_tasks)


@pytest.mark.slow
@pytest.mark.nightly
def test_workers_change_nothing_in_files_summaries_and_annotations(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    look_at_all_outputs(on_github, write_task, run_tasks, "-n2")


def look_at_all_outputs(on_github: Path, write_task: WriteTask, run_tasks: RunTasks, *workers: str) -> None:
    on_github.write_text("# Before\n")
    write_mixed(write_task)
    files = ("--json-report", "--junitxml=junit.xml", "--ctrf=ctrf.json")
    session = run_tasks(*files, *workers, "tasks", subprocess=bool(workers))
    assert session.exit_status == 1
    check_json(session)
    check_junit(session)
    check_ctrf(session)
    check_summary(session, on_github.read_text(encoding="utf-8").splitlines())
    check_annotations(session)


def check_json(session: Session) -> None:
    report = session.json_report()
    counts = {"passed": 2, "failed": 1, "error": 1, "skipped": 1}
    assert report["summary"] == {**counts, "total": 5, "collected": 5}
    block = report["evocode"]
    assert (block["run"], block["environment"]) == (session.run.run, "sandbox")
    assert (block["mode"], block["from_round"], block["shard"]) == ("chain", None, None)
    assert set(block["agents"]) == {"oracle"}
    oracle = block["agents"]["oracle"]
    assert oracle["scores"] == session.run.scores["oracle"]
    assert oracle["scores"]["dataset_score"] == (25 + 100) / 2
    assert oracle["without_faults"] is None
    assert oracle["intervals"]["dataset_score"] is None
    assert oracle["interval_notes"]["dataset_score"] == "no interval below 5 tasks"
    assert {task: group["dataset_score"] for task, group in oracle["tasks"].items()} == {"a": 25.0, "b": 100.0}
    rounds = [(each["task"], each["agent"], each["round"], each["outcome"]) for each in block["rounds"]]
    assert len(rounds) == 4 + 1
    assert ("a", "oracle", "round-2", "failed") in rounds
    assert all(each["verdict"] is None or not each["verdict"]["cases"] for each in block["rounds"])
    tests = {test["nodeid"]: test for test in report["tests"]}
    failed = tests["tasks/a/task.toml::oracle::round-2"]
    (properties,) = (entry["evocode"] for entry in failed["user_properties"] if "evocode" in entry)
    assert properties["outcome"] == "failed"
    (cases,) = (entry["evocode_cases"] for entry in failed["user_properties"] if "evocode_cases" in entry)
    assert [case["id"] for case in cases] == ["has-line-1", "has-line-2"]
    assert failed["call"]["crash"]["message"].startswith("round-2 failed: 1 of 2 cases failed")
    assert "expected: line-2" in failed["call"]["longrepr"]


def check_junit(session: Session) -> None:
    suite = ElementTree.parse(session.directory / "junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    cases = {case.get("name"): case for case in suite.iter("testcase") if "tasks.a." in (case.get("classname") or "")}
    assert list(cases) == ["round-1", "round-2", "round-3", "round-4"]
    assert cases["round-2"].get("classname") == "tasks.a.task.toml.oracle"
    failure = cases["round-2"].find("failure")
    assert failure is not None
    assert failure.get("message") == "round-2 failed: 1 of 2 cases failed (1 new miss, 0 regressions)"
    assert "expected: line-2" in (failure.text or "")
    found = junit_properties(session)
    assert (found["a round-2"]["outcome"], found["a round-2"]["failed_cases"]) == ("failed", "has-line-2")
    # Properties of an error say whose it is.
    assert (found["a round-3"]["outcome"], found["a round-3"]["fault"]) == ("error", "agent")
    assert "reward" not in found["a round-3"]
    assert found["a round-4"]["outcome"] == "not reached"


def check_ctrf(session: Session) -> None:
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


def check_summary(session: Session, lines: list[str]) -> None:
    assert lines[:4] == ["# Before", "## Exit status 1: 1 failed round, 1 error of a round", "", "## Benchmark"]
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


def check_annotations(session: Session) -> None:
    """What did not pass is marked at its round in the task."""
    steps = (session.directory / "tasks/a/task.toml").read_text().splitlines()
    at = {name: steps.index(f'name = "{name}"') + 1 for name in ("round-2", "round-3")}
    failed, broken = annotated(session)
    assert failed.startswith(
        f"::error file=tasks/a/task.toml,line={at['round-2']},title=a oracle round-2::"
        "round-2 failed: 1 of 2 cases failed (1 new miss, 0 regressions)%0A"
    )
    assert broken.startswith("::error file=tasks/a/")
    assert ",title=a oracle round-3::" in broken


# JSON.


def test_a_json_report_without_rounds_has_no_such_block(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    pytester.makepyfile("def test_good(): pass")
    assert "evocode" not in run_tasks("--json-report").json_report()


# JUnit.


def test_junit_properties_are_plain_values_beside_those_of_others(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    look_at_junit_properties(pytester, write_task, run_tasks)


@pytest.mark.slow
@pytest.mark.nightly
def test_junit_properties_come_from_workers(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    look_at_junit_properties(pytester, write_task, run_tasks, "-n2")


def look_at_junit_properties(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, *workers: str
) -> None:
    other = "\ndef pytest_runtest_setup(item):\n    item.user_properties.append(('machine', 'seven'))\n"
    pytester.makeconftest(dedent(SPENDING_AGENT) + other)
    write_task("a", 2, test={2: "echo 'CASE_RESULT case_id=x status=fail'; echo 0.5 > /logs/verifier/reward.txt"})
    session = run_tasks("--junitxml=junit.xml", *workers, "tasks", agent="spending", subprocess=bool(workers))
    found = junit_properties(session)["a round-2"]
    assert float(found.pop("agent_seconds")) >= 0
    assert float(found.pop("verifier_seconds")) > 0
    assert found == {
        "machine": "seven",
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


def test_the_run_is_recorded_where_another_plugins_file_cannot_be_written(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    (pytester.path / "file").touch()
    session = run_tasks("--junitxml=file/junit.xml", "tasks", subprocess=True)
    assert "NotADirectoryError" in session.text or "FileExistsError" in session.text
    assert session.run.finished is not None
    assert session.run.scores["oracle"]["dataset_score"] == 100


# GitHub.


def test_failed_rounds_are_warnings_where_a_score_counts_and_their_cases_are_not_marked(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_mixed(write_task)
    session = run_tasks("--evocode-fail-under=10", "-o", "evocode_cases=subtests", "tasks")
    assert [line.partition(" ")[0] for line in annotated(session)] == ["::error", "::warning"]


def test_a_broken_task_is_marked_at_its_line(on_github: Path, write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, toml="[agent]\ntimeout_sec = 'soon'")
    (mark,) = annotated(run_tasks("tasks"))
    assert mark.startswith("::error file=tasks/a/task.toml,line=2,title=tasks/a/task.toml::")
    assert "timeout_sec" in mark


def test_failed_checks_are_marked(on_github: Path, write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, solve={1: "true"})
    marks = annotated(check_tasks("-k", "oracle").session)
    assert len(marks) == 1
    assert marks[0].startswith("::error file=tasks/a/")
    heading, reason = reasons(on_github)
    assert heading == "## Exit status 1: 1 failed test"
    assert reason.startswith("- tasks/a/task.toml::check::oracle")


def reasons(summary: Path) -> list[str]:
    """The lines that a job's summary begins with, up to the benchmark, with Markdown's escapes taken out."""
    lines = summary.read_text(encoding="utf-8").replace("\\", "").partition("## Benchmark")[0].splitlines()
    return [line for line in lines if line]


def test_the_summary_begins_with_all_that_failed_beside_rounds(
    on_github: Path, pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    write_task("broken", 1, toml="[agent]\ntimeout_sec = 'soon'")
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def late():
            yield
            assert 0, "teardown broke"

        def test_bad(): assert 1 == 2, "one is two"

        def test_late(late): pass
        """
    )
    session = run_tasks()
    assert session.exit_status == 1
    heading, broken, bad, late = reasons(on_github)
    assert heading == "## Exit status 1: 1 error during collection, 1 failed test, 1 error of a test"
    assert broken.startswith("- tasks/broken/task.toml:2: agent.timeout_sec: ")
    assert "::test_bad: AssertionError: one is two" in bad
    assert "::test_late: AssertionError: teardown broke" in late
    file = next(session.directory.glob("test_*.py"))
    lines = file.read_text().splitlines()
    at = lines.index('def test_bad(): assert 1 == 2, "one is two"') + 1
    marks = annotated(session)
    assert [mark.partition(",")[0] for mark in marks] == [
        "::error file=tasks/broken/task.toml",
        f"::error file={file.name}",
        f"::error file={file.name}",
    ]
    assert marks[1].startswith(f"::error file={file.name},line={at},title=test_bad::")


def test_the_summary_names_a_module_that_cannot_be_collected(
    on_github: Path, pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makepyfile(test_broken="import nowhere_to_be_found")
    session = run_tasks()
    assert session.exit_status == pytest.ExitCode.INTERRUPTED
    heading, reason = reasons(on_github)
    assert heading == "## Exit status 2: 1 error during collection"
    assert reason == "- test_broken.py: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    (mark,) = annotated(session)
    assert mark.startswith("::error file=test_broken.py,line=1,")


def test_the_summary_says_which_score_was_not_reached(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, solve={1: "true"})
    assert run_tasks("--evocode-fail-under=50", "tasks").exit_status == 1
    heading, reason = reasons(on_github)
    assert heading == "## Exit status 1: tests failed"
    assert reason == "- --evocode-fail-under=50: not reached with a Dataset Score of 0.0"


@pytest.mark.parametrize(
    ("options", "agent", "heading", "reason"),
    [
        (
            ["--evocode-shard=3/2"],
            "oracle",
            "## Exit status 4: usage error",
            "- --evocode-shard=3/2: write it as 2/8, for the second of eight parts",
        ),
        (
            ["--evocode-budget=cost=x"],
            "oracle",
            "## Exit status 4: usage error",
            "- --evocode-budget: 'cost=x': the limit has to be a number, 0 or more, such as cost=100",
        ),
        (
            [],
            None,
            "## Exit status 5: no tests collected",
            "- tasks run with an agent only: add --evocode-agent=oracle (or another), or --evocode-check",
        ),
    ],
    ids=["shard", "budget", "no-agent"],
)
def test_the_summary_says_why_a_session_did_not_begin(
    on_github: Path,
    write_task: WriteTask,
    run_tasks: RunTasks,
    options: list[str],
    agent: str | None,
    heading: str,
    reason: str,
) -> None:
    write_task("a", 1)
    run_tasks(*options, "tasks", agent=agent)
    assert on_github.read_text(encoding="utf-8").replace("\\", "").split("\n\n") == [heading, f"{reason}\n"]


def test_the_summary_says_that_a_shard_has_nothing_to_do(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    assert run_tasks("--evocode-shard=2/2", "--evocode-fail-under=50", "tasks").exit_status == 0
    told = on_github.read_text(encoding="utf-8")
    assert told == "Shard 2 of 2 has no attempts to make, and nothing that --evocode-fail-under could be about.\n"


def test_the_summary_says_nothing_of_failed_rounds_that_are_data(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, solve={1: "true"})
    assert run_tasks("--evocode-fail-under=0", "tasks").exit_status == 0
    assert on_github.read_text(encoding="utf-8").startswith("## Benchmark")


def test_the_summary_says_why_a_session_was_refused(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-resume=2020-01-01__00-00-00", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    heading, reason = reasons(on_github)
    assert heading == "## Exit status 4: usage error"
    assert reason.startswith("- --evocode-resume: ")


STATUS_CHANGES = """
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(session):
        result = yield
        session.exitstatus = 1
        return result

    def pytest_sessionfinish(session):
        session.exitstatus = 1
"""
ENDS = {
    "an interrupt": (
        "def pytest_runtest_setup(): raise KeyboardInterrupt",
        ["## Exit status 2: interrupted", "- interrupted"],
    ),
    "an exit": (
        "import pytest\ndef pytest_runtest_setup(): pytest.exit('enough', returncode=7)",
        ["## Exit status 7: ended early", "- enough"],
    ),
    "an internal error": (
        "def pytest_runtest_logfinish(): raise ValueError('broke')",
        ["## Exit status 3: internal error", "- internal error: ValueError: broke"],
    ),
    "what nobody reports": (
        STATUS_CHANGES,
        ["## Exit status 1: tests failed", "- nothing that was reported tells why; the output of the session may"],
    ),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.matrix
def test_the_summary_says_what_else_ended_a_session(
    end: str, on_github: Path, pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    conftest, expected = ENDS[end]
    pytester.makeconftest(conftest)
    write_task("a", 1)
    run_tasks("tasks", subprocess=end == "an interrupt")  # Else it would be this test that is interrupted.
    assert reasons(on_github) == expected


def test_github_is_told_without_a_terminal_reporter_too(
    on_github: Path, write_task: WriteTask, run_tasks: RunTasks, capfd: pytest.CaptureFixture[str]
) -> None:
    write_task("a", 1, solve={1: "true"})
    session = run_tasks("-p", "no:terminal", "tasks", subprocess=True)
    assert session.exit_status == 1
    assert reasons(on_github) == ["## Exit status 1: 1 failed round"]
    assert len(annotated(session)) == 1


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
    write_task("a", 1, solve={1: "true"})
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


def test_an_ordinary_tests_secrets_are_scrubbed_in_our_files_and_in_others_left_to_pytest(
    on_github: Path,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    write_task: WriteTask,
    run_tasks: RunTasks,
) -> None:
    secret = "sk_of*the_host_%123"  # What Markdown and workflow commands escape.
    monkeypatch.setenv("TEST_API_KEY", secret)
    write_task("a", 1)
    pytester.makepyfile(
        test_own="""
        import os

        def test_bad():
            print(os.environ["TEST_API_KEY"])
            raise ValueError("x" * 250 + os.environ["TEST_API_KEY"])
        """
    )
    session = run_tasks("--json-report", "--junitxml=junit.xml")
    (mark,) = annotated(session)
    for text in (on_github.read_text(encoding="utf-8"), mark):
        assert "of\\*the" not in text
        assert "of*the" not in text
        assert "TEST" in text
    assert secret not in json.dumps(session.json_report()["evocode"])
    # As in a session without tasks: the test's output is not ours to change.
    for name in (".report.json", "junit.xml"):
        assert secret in (session.directory / name).read_text(), name
