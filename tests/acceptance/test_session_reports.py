"""What a session tells people and programs: header, table, grid and properties."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.results.records import AttemptRecord

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

FAILS = "echo 0 > /logs/verifier/reward.txt"

TRACING_AGENT = """
    from pytest_evocode.agents import RoundTranscript
    from pytest_evocode.trajectories.atif import AgentInfo, Step, ToolCall, Trajectory

    class Tracing:
        name = "tracing"

        def run_round(self, context):
            index = context.round.index
            context.environment.exec(f"echo line-{index} >> log.txt")
            calls = tuple(ToolCall(tool_call_id=str(n), function_name="bash") for n in range(index))
            steps = (Step(step_id=1, source="user", message="go"), Step(step_id=2, source="agent", tool_calls=calls))
            info = AgentInfo(name="tracing", version="1")
            return RoundTranscript(trajectory=Trajectory(session_id="s", agent=info, steps=steps))

    def pytest_evocode_make_agent(name):
        return Tracing() if name == "tracing" else None
"""


def table(session: Session) -> dict[str, list[str]]:
    """The rows of the benchmark table by agent, without the times."""
    lines = session.result.outlines
    start = next(number for number, line in enumerate(lines) if line.startswith("agent "))
    rows: dict[str, list[str]] = {}
    for line in lines[start + 1 :]:
        if not line.endswith(" s"):
            break
        name, *cells = line.split()
        rows[name] = cells[:-2]
    return rows


def test_the_table_and_the_grid_of_a_mixed_run_equal_a_calculation_by_hand(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    # long: round 2 misses its line for good, so 1/1, 1/2, 2/3 and 3/4 of the cases pass, and one round of four.
    write_task("long", 4, solve={2: "true"})
    # short: round 1 passes 1/1; round 2 passes 1/2 and ends the chain: its third round is not reached, 0.
    write_task("short", 3, solve={2: "true"}, step={2: "min_reward = 1.0"})
    # broken: round 2 fails without a case, and round 3 is an error, which counts as not passed; so does what follows.
    write_task("broken", 4, test={2: FAILS}, solve={3: "exit 1"})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 3, "failed": 5, "errors": 1, "skipped": 2}
    session.has(
        "evocode: agent oracle",
        "evocode: environment sandbox (asked for; the host's * stands in for every FROM image*)",
        f"evocode: results evocode-results, run {session.run.run}",
    )
    dataset = 100 * (1 / 4 + 1 / 3 + 1 / 4) / 3
    case = 100 * ((1 + 1 / 2 + 2 / 3 + 3 / 4) / 4 + (1 + 1 / 2 + 0) / 3 + (1 + 0 + 0 + 0) / 4) / 3
    assert table(session) == {"oracle": [f"{dataset:.1f}", f"{case:.1f}", "n/a", "0/3"]}
    assert session.run.scores["oracle"]["dataset_score"] == pytest.approx(dataset)
    assert session.run.scores["oracle"]["case_score"] == pytest.approx(case)
    session.has(
        "round   1  2  3  4",
        "broken  .  F  E  -",
        "long    .  F  F  F",
        "short   .  F  -",
        ". passed   F failed   E error   - not reached",
    )


def test_agents_and_attempts_are_told_apart_and_scores_are_means_over_attempts_inside_a_task(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    write_task("b", 1)
    session = run_tasks("--evocode-agent=nop", "--evocode-attempts=2", "--evocode-shard=1/1", "--json-report", "tasks")
    session.has("evocode: agent oracle, nop (2 attempts each), shard 1/1")
    assert table(session) == {"oracle": ["100.0", "100.0", "n/a", "2/2"], "nop": ["0.0", "0.0", "n/a", "0/2"]}
    session.has("a oracle * . * .", "a oracle.2 * . * .", "a nop * F * F", "a nop.2 * F * F")
    block = session.json_report()["evocode"]
    assert block["shard"] == [1, 1]
    assert set(block["agents"]) == {"oracle", "nop"}
    assert block["agents"]["oracle"]["identity"] != block["agents"]["nop"]["identity"]
    assert len(block["rounds"]) == 2 * 2 * (2 + 1)
    # The record of the run names its attempts, all of which are there.
    run = session.run
    assert list(run.attempts) == [
        f"{task}/harbor_jobs/{agent}/{run.run}/{task}__a{number}"
        for task in ("a", "b")
        for agent in ("oracle", "nop")
        for number in (1, 2)
    ]
    for attempt in run.attempts:
        AttemptRecord.model_validate_json((session.results / attempt / "result.json").read_text())


def test_an_agent_of_a_conftest_gives_its_tool_calls(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(TRACING_AGENT)
    write_task("a", 3)  # 1, 2 and 3 calls: 2 on average.
    write_task("b", 2)  # 1 and 2 calls: 1.5 on average.
    session = run_tasks("tasks", agent="tracing")
    assert table(session) == {"tracing": ["100.0", "100.0", "1.8", "2/2"]}
    assert session.run.scores["tracing"]["avg_rounds"] == (2 + 1.5) / 2


def test_user_properties_are_json_builtins(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        import json

        def plain(value):
            if isinstance(value, dict):
                return all(type(key) is str and plain(item) for key, item in value.items())
            if type(value) in (list, tuple):
                return all(map(plain, value))
            return value is None or type(value) in (str, int, float, bool)

        def pytest_runtest_logreport(report):
            assert plain(report.user_properties)
            if report.when == "teardown":
                print("properties", report.nodeid[-7:], json.dumps(dict(report.user_properties)))
        """
    )
    write_task("a", 3, solve={2: "echo wrong >> log.txt"}, step={2: "min_reward = 1.0"})
    session = run_tasks("-s", "tasks")
    found: dict[str, Any] = {}
    for line in session.result.outlines:
        if "properties round-" in line:
            name, _, text = line.partition("properties ")[2].partition(" ")
            found[name] = json.loads(text)
    assert [found[name]["evocode"]["outcome"] for name in sorted(found)] == ["passed", "failed", "not reached"]
    assert [len(found[name]["evocode_cases"]) for name in sorted(found)] == [1, 2, 0]
    assert found["round-2"]["evocode_cases"][1]["failure"] == "new miss"


def test_cases_can_be_shown_as_subtests(write_task: WriteTask, run_tasks: RunTasks) -> None:
    suite = """
        echo 'CASE_RESULT case_id=good status=success'
        echo 'CASE_RESULT case_id=bad status=fail failure_reason="it is not so"'
        echo 'CASE_RESULT case_id=left-out status=skipped'
        echo 0 > /logs/verifier/reward.txt
    """
    write_task("a", 1, test={1: suite})
    session = run_tasks("-v", "-o", "evocode_cases=subtests", "tasks")
    session.has("*::round-1 SUBPASSED*good*", "*::round-1 SUBFAILED*bad*", "*::round-1 SUBSKIPPED*left-out*")
    session.has("*it is not so*")
    assert session.outcomes["failed"] == 2  # The case and the round.
    assert session.exit_status == 1


def test_subtests_do_not_change_the_scores(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, solve={2: "true"})
    session = run_tasks("-o", "evocode_cases=subtests", "--evocode-fail-under=50", "tasks")
    assert table(session) == {"oracle": ["50.0", "75.0", "n/a", "0/1"]}
    assert session.exit_status == 0


def test_help_shows_our_options_as_one_group(run_tasks: RunTasks) -> None:
    session = run_tasks("--help", agent=None, env=None)
    session.has(
        "multi-round coding benchmarks (pytest-evocode):", "  --evocode-agent=AGENT*", "  --evocode-attempts=K*"
    )
