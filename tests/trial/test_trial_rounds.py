"""The rounds of an attempt: in order, in one environment, each with a record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.oracle import NopAgent, OracleAgent
from pytest_evocode.environments import Engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trajectories.atif import AgentInfo, Step, ToolCall, Trajectory
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"


def outcomes(records: Sequence[RoundRecord]) -> list[str]:
    return [record.outcome for record in records]


def has_lines(count: int) -> str:
    """A suite with a case for each of the lines 1 to ``count``."""
    return (
        "reward=1\n"
        f"for i in $(seq {count}); do\n"
        "  if grep -qx line-$i log.txt; then status=success; else status=fail; reward=0; fi\n"
        "  echo CASE_RESULT case_id=line-$i origin_step=round-$i status=$status\n"
        "done\n"
        "echo $reward > /logs/verifier/reward.txt\n"
    )


def test_rounds_build_on_one_another_and_each_has_its_instruction_and_a_record(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    agent = scripted("echo line-1 >> log.txt", "echo line-2 >> log.txt", "echo line-3 >> log.txt")
    task = make_task(*map(has_lines, (1, 2, 3)), steps={2: "agent = { timeout_sec = 60 }"})
    records = finish(Trial(task, agent, engine, attempt=3))
    assert outcomes(records) == ["passed"] * 3
    assert [record.case_counts for record in records] == [(1, 1), (2, 2), (3, 3)]
    assert [context.instruction for context in agent.asked] == [f"Do round {index}.\n" for index in (1, 2, 3)]
    assert [context.timeout for context in agent.asked] == [None, 60, None]
    assert all(context.task is task for context in agent.asked)
    record = records[0]
    assert (record.task, record.agent, record.attempt) == ("small", "scripted", 3)
    assert (record.round, record.index, record.declared_rounds) == ("round-1", 1, 3)
    assert (record.cause, record.timed_out, record.tool_calls) == ("", None, None)
    assert record.agent_seconds is not None
    assert record.verifier_seconds is not None


def test_a_failed_round_does_not_end_the_chain(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    agent = scripted("true", "echo line-1 > log.txt", "echo line-2 > log.txt")
    records = finish(Trial(make_task(*map(has_lines, (1, 1, 2))), agent, engine))
    assert outcomes(records) == ["failed", "passed", "failed"]
    verdict = records[2].verdict
    assert verdict is not None
    assert [(case.id, case.failure) for case in verdict.cases] == [("line-1", "regression"), ("line-2", None)]


def test_records_come_in_order_and_cases_are_judged_by_the_rounds_before_whatever_suite_ends_first(
    engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    # The suite of the first round is the last to end.
    task = make_task("sleep 0.5\n" + has_lines(1), has_lines(2), "sleep 0.2\n" + has_lines(3))
    records = finish(Trial(task, NopAgent(), engine))
    assert [record.index for record in records] == [1, 2, 3]
    assert outcomes(records) == ["failed"] * 3, "the agent does nothing"
    kinds = [[case.failure for case in record.verdict.cases] for record in records if record.verdict]
    assert kinds == [["new miss"], ["carried", "new miss"], ["carried", "carried", "new miss"]]


def test_an_attempt_may_end_before_the_last_round(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    agent = scripted()
    directory = AttemptDirectory(tmp_path / "attempt")
    records = finish(
        Trial(make_task(PASS, PASS, PASS, PASS), agent, engine, rounds=RoundSelection(last=2), directory=directory)
    )
    assert [(record.index, record.declared_rounds) for record in records] == [(1, 4), (2, 4)]
    assert [context.round.name for context in agent.asked] == ["round-1", "round-2"]
    attempt = directory.read_attempt()
    assert attempt is not None
    assert attempt.rewards == {"reward": 0.5}
    assert attempt.declared_rounds == ("round-1", "round-2", "round-3", "round-4")


def test_a_suites_trouble_is_an_error_or_at_its_timeout_a_failure_of_that_round_only(
    engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    hangs = "echo CASE_RESULT case_id=a status=fail; sleep 600"
    task = make_task(PASS, "echo oops; exit 3", hangs, PASS, steps={3: "verifier = { timeout_sec = 0.5 }"})
    records = finish(Trial(task, NopAgent(), engine))
    assert outcomes(records) == ["passed", "error", "failed", "passed"]
    assert "test.sh wrote no reward" in records[1].cause
    assert records[1].cause.endswith("exit code 3; its last lines:\noops")
    assert records[1].verdict is None
    late = records[2]
    assert (late.timed_out, late.cause) == ("verifier", "the suite was stopped at its timeout of 0.5 s")
    assert late.verdict is not None
    assert [(case.id, case.failure) for case in late.verdict.cases] == [("a", "new miss")]


def test_the_environment_can_be_waited_for_and_used_while_the_attempt_lasts(
    engine: Engine, make_task: MakeTask
) -> None:
    with Trial(make_task(PASS), NopAgent(), engine) as trial:
        environment = trial.wait_environment()
        assert trial.wait(1).passed
        assert environment.exec("pwd").output == "/app\n"
        assert trial.wait(1) is trial.wait(1)


@pytest.mark.nightly
def test_leaving_the_records_half_way_ends_the_attempt(engine: Engine, make_task: MakeTask) -> None:
    trial = Trial(make_task(PASS, PASS, PASS), NopAgent(), engine)
    records = trial.run()
    assert next(records).index == 1
    records.close()  # type: ignore[attr-defined]
    assert trial.environment is not None


# Results on disk.


def trajectory(calls: int) -> Trajectory:
    call = ToolCall(tool_call_id="1", function_name="bash")
    return Trajectory(
        session_id="s",
        agent=AgentInfo(name="scripted", version="1"),
        steps=(
            Step(step_id=1, source="user", message="do", tool_calls=(call,)),
            *(Step(step_id=2 + number, source="agent", tool_calls=(call,)) for number in range(calls)),
        ),
    )


def test_an_attempt_leaves_its_results_on_disk(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    task = make_task(
        f"echo one\necho CASE_RESULT case_id=a status=success\n{PASS}",
        "echo two",
        'echo three; echo \'{"reward": 0.5, "style": 1}\' > /logs/verifier/reward.json; touch /logs/artifacts/x',
        toml='artifacts = ["/app/report.txt"]\n',
    )
    agent = scripted(
        lambda context: RoundTranscript(trajectory=trajectory(3)), "true", "echo report > report.txt; mkdir empty"
    )
    directory = AttemptDirectory.of(tmp_path / "results", "small", "scripted", "2026-01-02__03-04-05", 1)
    records = finish(Trial(task, agent, engine, directory=directory))
    files = sorted(path.relative_to(directory.path).as_posix() for path in directory.path.rglob("*") if path.is_file())
    assert files == [
        "result.json",
        "steps/round-1/agent/trajectory.json",
        "steps/round-1/round.json",
        "steps/round-1/verifier/cases.json",
        "steps/round-1/verifier/reward.txt",
        "steps/round-1/verifier/test-stdout.txt",
        "steps/round-2/round.json",
        "steps/round-2/verifier/test-stdout.txt",
        "steps/round-3/artifacts/report.txt",
        "steps/round-3/artifacts/x",
        "steps/round-3/round.json",
        "steps/round-3/verifier/cases.json",
        "steps/round-3/verifier/logs/reward.json",
        "steps/round-3/verifier/reward.txt",
        "steps/round-3/verifier/test-stdout.txt",
    ]
    steps = directory.path / "steps"
    assert (steps / "round-2/verifier/test-stdout.txt").read_text() == "two\n"
    assert (steps / "round-3/verifier/reward.txt").read_text() == "0.5\n"
    assert json.loads((steps / "round-1/verifier/cases.json").read_text()) == [{"id": "a", "status": "passed"}]
    attempt = directory.read_attempt()
    assert attempt is not None
    assert attempt.rounds == tuple(records)
    assert (attempt.environment, attempt.started < attempt.finished) == ("sandbox", True)
    assert attempt.rewards == {"reward": pytest.approx(1.5 / 3), "style": pytest.approx(1 / 3)}


def test_the_tasks_strategy_decides_the_attempts_reward(
    engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    directory = AttemptDirectory(tmp_path / "attempt")
    task = make_task(PASS, FAIL, toml='multi_step_reward_strategy = "final"')
    finish(Trial(task, NopAgent(), engine, directory=directory))
    assert json.loads((directory.path / "result.json").read_text())["rewards"] == {"reward": 0.0}


def test_tool_calls_are_the_agents_own_and_counted_where_the_verifier_fails_too(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    def turn(context: RoundContext) -> RoundTranscript:
        return RoundTranscript(trajectory=trajectory(context.round.index - 1))

    task = make_task(PASS, "true", PASS, steps={3: "verifier = { env = { KEY = '${EVOCODE_NO_SUCH}' } }"})
    records = finish(Trial(task, scripted(turn, turn, turn), engine, options=TrialOptions(environ={})))
    assert outcomes(records) == ["passed", "error", "error"]
    assert [record.tool_calls for record in records] == [0, 1, 2]


def test_results_that_cannot_be_written_are_an_error_and_nobody_waits_for_ever(
    engine: Engine, make_task: MakeTask, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    trial = Trial(make_task(PASS, PASS), NopAgent(), engine, directory=AttemptDirectory(tmp_path / "file" / "attempt"))
    trial.__enter__()
    try:
        assert [trial.wait(1).outcome, trial.wait(2).outcome] == ["error", "not reached"]
        assert "could not be written" in trial.wait(1).cause
    finally:
        with pytest.raises(Exception, match="could not be written"):
            trial.close()


def test_a_trajectory_that_cannot_be_written_is_an_error_and_nobody_waits_for_ever(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    step = Step(step_id=1, source="agent", message=object())
    transcript = RoundTranscript(trajectory=trajectory(0).model_copy(update={"steps": (step,)}))
    directory = AttemptDirectory(tmp_path / "attempt")
    task = make_task(PASS, PASS)
    first, second = finish(Trial(task, scripted(lambda context: transcript), engine, directory=directory))
    assert (first.outcome, second.outcome) == ("error", "not reached")
    assert "could not be written" in first.cause


@pytest.mark.nightly
def test_the_oracle_plays_the_reference_solution(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    files = {
        "steps/round-1/solution/solve.sh": "cp /solution/answer.txt . && echo line-1 > log.txt",
        "steps/round-1/solution/answer.txt": "42",
        "steps/round-2/solution/solve.sh": "cat answer.txt && echo line-2 >> log.txt",
    }
    task = make_task(has_lines(1), has_lines(2), files=files)
    assert outcomes(finish(Trial(task, OracleAgent(), engine))) == ["passed", "passed"]


def test_the_log_says_how_rounds_ended_and_holds_no_secret(
    engine: Engine, make_task: MakeTask, finish: Finish, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="pytest_evocode")
    options = TrialOptions(environ={"API_KEY": "k-0123456789"})
    suite = f"{PASS}; echo $KEY; exit 3"
    toml = '[verifier]\nenv = { KEY = "${API_KEY}" }'
    finish(Trial(make_task(suite, "true", toml=toml), NopAgent(), engine, options=options))
    assert "small, round-1: passed" in caplog.messages
    assert "small, round-2: error" in caplog.messages
    assert "small, round-1: test.sh ended with 3" in caplog.messages
    assert "k-0123456789" not in caplog.text
