"""How attempts end before their last round: faults, and being closed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents import Agent, RoundContext, make_agent
from pytest_evocode.agents.oracle import NopAgent
from pytest_evocode.agents.specs import Option
from pytest_evocode.environments import Engine
from pytest_evocode.errors import AgentFault, EnvironmentFault, ModelFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.trial import Trial
from tests.model_scripts import Delay, Say
from tests.model_server import ModelServer
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FindProcesses = Callable[[str], list[int]]


def fail_with(error: BaseException) -> Callable[[RoundContext], None]:
    def turn(context: RoundContext) -> None:
        raise error

    return turn


# Faults.


@pytest.mark.parametrize(
    ("error", "fault"),
    [(AgentFault("there is no such tool"), "agent"), (ModelFault("the model cannot be reached"), "infrastructure")],
)
@pytest.mark.matrix
def test_an_agents_fault_ends_the_attempt_with_its_message(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    tmp_path: Path,
    error: AgentFault,
    fault: str,
) -> None:
    agent = scripted("true", fail_with(error))
    directory = AttemptDirectory(tmp_path / "attempt")
    records = finish(Trial(make_task(PASS, PASS, PASS, PASS), agent, engine, directory=directory))
    assert [record.outcome for record in records] == ["passed", "error", "not reached", "not reached"]
    assert (records[1].cause, records[1].fault) == (str(error), fault)
    assert [record.fault for record in (records[0], *records[2:])] == [None] * 3
    assert records[2].cause == records[3].cause == "the attempt ended in round-2 with an error"
    assert [context.round.index for context in agent.asked] == [1, 2]
    assert (directory.path / "result.json").is_file()


def test_any_other_exception_of_an_agent_is_an_error_that_shows_where(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    first, second = finish(Trial(make_task(PASS, PASS), scripted(fail_with(ZeroDivisionError("by zero"))), engine))
    assert (first.outcome, first.fault, second.outcome) == ("error", "agent", "not reached")
    assert first.cause.startswith("Traceback (most recent call last):\n")
    assert "test_trial_endings.py" in first.cause
    assert first.cause.endswith("ZeroDivisionError: by zero\n")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_agent_that_wants_the_program_to_end_is_an_error_and_nobody_waits_for_ever(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], error: BaseException
) -> None:
    first, second = finish(Trial(make_task(PASS, PASS), scripted(fail_with(error)), engine))
    assert (first.outcome, second.outcome) == ("error", "not reached")
    assert type(error).__name__ in first.cause


def test_a_fault_of_the_environment_ends_the_attempt(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    agent = scripted("true", lambda context: context.environment.stop())
    records = finish(Trial(make_task(PASS, PASS, PASS), agent, engine))
    assert [record.outcome for record in records] == ["passed", "error", "not reached"]
    assert "not running" in records[1].cause
    assert "Traceback" not in records[1].cause


def test_an_environment_that_does_not_start_is_an_error(
    engine: Engine, make_task: MakeTask, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise EnvironmentFault("no space left")

    monkeypatch.setattr(engine, "create", refuse)
    first, second = finish(Trial(make_task(PASS, PASS), NopAgent(), engine))
    assert (first.outcome, first.cause, second.outcome) == ("error", "no space left", "not reached")
    assert (first.fault, second.fault) == ("infrastructure", None)


def test_a_fork_that_does_not_start_is_an_error_of_its_round_only(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_next_fork(context: RoundContext) -> None:
        fork, create, refused = context.environment.fork, engine.create, list[int]()

        def refuse_fork(*args: Any, **kwargs: Any) -> Any:
            # Both tries of the suite that comes first, whatever other suites do meanwhile.
            if len(refused) < 2 and refused[:1] in ([], [threading.get_ident()]):
                refused.append(threading.get_ident())
                raise EnvironmentFault("no space left")
            return fork(*args, **kwargs)

        def refuse_control(*args: Any, **kwargs: Any) -> Any:
            if len(refused) == 2 and refused[0] == threading.get_ident():
                refused.append(0)
                raise EnvironmentFault("no space left")
            return create(*args, **kwargs)

        monkeypatch.setattr(context.environment, "fork", refuse_fork)
        monkeypatch.setattr(engine, "create", refuse_control)

    # A bound that may be missed is waited for, so that the next fork is that of the first round.
    task = make_task(PASS, PASS, steps={1: "min_reward = 0.5"})
    first, *_ = finish(Trial(task, scripted(break_next_fork), engine))
    assert (first.outcome, first.cause, first.fault) == ("error", "no space left", "infrastructure")
    first, second = finish(Trial(make_task(PASS, PASS), scripted(break_next_fork), engine))
    assert {first.outcome, second.outcome} == {"error", "passed"}


# Being closed.


def close_in_time(trial: Trial) -> None:
    closing = threading.Thread(target=trial.close, daemon=True)
    closing.start()
    closing.join(300)
    assert not closing.is_alive(), "close() hangs"


def test_closing_in_the_middle_of_a_turn_kills_it(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    moment: str,
    processes: FindProcesses,
    tmp_path: Path,
) -> None:
    agent = scripted("true", f"setsid sleep {moment} & sleep {moment}")
    directory = AttemptDirectory(tmp_path / "attempt")
    trial = Trial(make_task(PASS, PASS, PASS), agent, engine, directory=directory)
    trial.__enter__()
    assert trial.wait(1).passed
    wait_until(lambda: len(processes(moment)) == 2)
    close_in_time(trial)
    assert processes(moment) == []
    assert trial.wait(1).passed
    for index in (2, 3):
        record = trial.wait(index)
        assert (record.outcome, record.cause) == ("not reached", "the session was stopped")
    assert (directory.path / "steps/round-1/verifier/reward.txt").is_file()
    assert not (directory.path / "result.json").exists()


def test_closing_in_the_middle_of_a_suite_kills_it(
    engine: Engine,
    make_task: MakeTask,
    moment: str,
    processes: FindProcesses,
    tmp_path: Path,
) -> None:
    directory = AttemptDirectory(tmp_path / "attempt")
    trial = Trial(make_task(f"{PASS}; sleep {moment}"), NopAgent(), engine, directory=directory)
    trial.__enter__()
    wait_until(lambda: processes(moment))
    close_in_time(trial)
    assert processes(moment) == []
    record = trial.wait(1)
    assert (record.outcome, record.verdict) == ("not reached", None)
    assert record.cause == "the session was stopped"
    # The agent's turn is over: a later session has only to verify it.
    assert [path.name for path in directory.path.rglob("*") if path.is_file()] == ["state.json"]


def test_closing_with_a_turn_and_several_suites_under_way_kills_them_all(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], moment: str, processes: FindProcesses
) -> None:
    agent = scripted("true", "true", f"sleep {moment}")
    suite = f"sleep {moment}; {PASS}"
    trial = Trial(make_task(suite, suite, suite), agent, engine)
    trial.__enter__()
    wait_until(lambda: len(processes(moment)) == 3)
    close_in_time(trial)
    assert processes(moment) == []
    assert [trial.wait(index).verdict for index in (1, 2, 3)] == [None] * 3


def test_closing_while_the_chain_waits_for_a_min_reward_ends_it(
    engine: Engine, make_task: MakeTask, moment: str, processes: FindProcesses
) -> None:
    trial = Trial(make_task(f"sleep {moment}", PASS, steps={1: "min_reward = 1"}), NopAgent(), engine)
    trial.__enter__()
    wait_until(lambda: processes(moment))
    close_in_time(trial)
    assert trial.wait(2).outcome == "not reached"


def test_closing_while_a_healthcheck_waits_ends_it(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    toml = "[environment]\nhealthcheck = { command = 'exit 1', interval_sec = 600, retries = 9 }"
    trial = Trial(make_task(PASS, toml=toml), NopAgent(), engine)
    trial.__enter__()
    wait_until(lambda: trial.environment is not None)
    time.sleep(0.2)
    close_in_time(trial)
    assert trial.wait(1).outcome == "not reached"
    with pytest.raises(Exception, match=r"was stopped|not running"):
        trial.wait_environment()


@pytest.mark.parametrize("moment_of_closing", [0.0, 0.005, 0.01, 0.02, 0.04, 0.08])
def test_closing_at_any_moment_leaves_nothing(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], moment_of_closing: float
) -> None:
    trial = Trial(make_task(PASS, PASS, PASS), scripted("true", "true", "true"), engine)
    trial.__enter__()
    time.sleep(moment_of_closing)
    close_in_time(trial)
    assert all(trial.wait(index).outcome in ("passed", "not reached") for index in (1, 2, 3)), [
        trial.wait(index) for index in (1, 2, 3)
    ]


def test_a_snapshot_that_is_copied_when_the_sandbox_is_stopped_is_not_left_behind(
    engine: Engine, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_evocode.environments.sandbox.snapshots import copy_top_layer

    def copy_and_stop(
        launcher: Any, directory: Path, keep_for: Any, run: Callable[[list[str]], None], layers: Any
    ) -> Any:
        def run_and_stop(argv: list[str]) -> None:
            run(argv)
            assert trial.environment is not None
            trial.environment.stop()
            assert list(directory.glob("snapshot-*/root"))
            run(argv)

        return copy_top_layer(launcher, directory, keep_for, run_and_stop, layers)

    monkeypatch.setattr("pytest_evocode.environments.sandbox.environment.copy_top_layer", copy_and_stop)
    trial = Trial(make_task(PASS), NopAgent(), engine)
    with trial:
        assert trial.wait(1).outcome == "error"


def test_closing_twice_does_nothing_more(engine: Engine, make_task: MakeTask) -> None:
    trial = Trial(make_task(PASS), NopAgent(), engine)
    with trial:
        assert trial.wait(1).passed
    trial.close()


def test_an_exception_in_the_callers_block_ends_the_attempt(
    engine: Engine, make_task: MakeTask, moment: str, processes: FindProcesses, scripted: type[Scripted]
) -> None:
    task = make_task(PASS)
    with (  # noqa: PT012
        pytest.raises(KeyboardInterrupt),
        Trial(task, scripted(f"sleep {moment}"), engine),
    ):
        wait_until(lambda: processes(moment))
        raise KeyboardInterrupt
    assert processes(moment) == []


@pytest.mark.nightly
def test_ten_lines_of_a_script_drive_an_attempt(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    """As in the README: nothing of pytest is imported."""
    import os
    import subprocess

    task = make_task(PASS, "echo 0 > /logs/verifier/reward.txt")
    script = f"""
import sys
from pathlib import Path
from pytest_evocode.agents import make_agent
from pytest_evocode.environments import choose_engine
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.trial import Trial

engine, why = choose_engine("sandbox")
for record in Trial(load_task(Path({str(task.directory)!r})), make_agent("nop"), engine).run():
    print(record.round, record.outcome)
engine.close()
assert "pytest" not in sys.modules
"""
    env = {**os.environ, "EVOCODE_CACHE": str(tmp_path / "cache")}
    ended = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300)
    assert (ended.stdout, ended.returncode) == ("round-1 passed\nround-2 failed\n", 0), ended.stderr


# What the agent holds.


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModelServer], Agent]:
    """Makes an agent that asks a server for its model."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    return lambda server: make_agent("openai/gpt-5", {"base_url": Option(f"{server.url}/v1", "the test")})


def test_an_agent_is_closed_when_its_last_turn_is_over(
    engine: Engine, make_task: MakeTask, finish: Finish, asking: Callable[[ModelServer], Agent]
) -> None:
    with ModelServer([Say("Done."), Say("Done.")]) as server:
        assert [record.outcome for record in finish(Trial(make_task(PASS, PASS), asking(server), engine))] == [
            "passed",
            "passed",
        ]
        assert server.is_left()


def test_an_agent_that_waits_for_its_model_is_closed_with_the_session(
    engine: Engine, make_task: MakeTask, asking: Callable[[ModelServer], Agent]
) -> None:
    with ModelServer([[Delay(2), Say("Too late.")]]) as server:
        with Trial(make_task(PASS), asking(server), engine):
            wait_until(lambda: bool(server.asked))
        assert len(server.asked) == 1
        assert server.is_left()


def test_an_agent_that_cannot_be_closed_is_logged_and_no_error(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Stuck(scripted):  # type: ignore[misc,valid-type]
        def close(self) -> None:
            raise OSError("it is stuck")

    (record,) = finish(Trial(make_task(PASS), Stuck("true"), engine))
    assert record.outcome == "passed"
    assert "the agent scripted could not be closed" in caplog.text
