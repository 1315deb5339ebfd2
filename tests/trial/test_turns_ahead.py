"""Turns that begin ahead of a verdict on which the chain depends, and what is left of them if it ends the chain."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine
from pytest_evocode.environments.reference_index import ReferenceIndex
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault
from pytest_evocode.llm.budget import RunSpending
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptRecord, RoundRecord, Usage
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.trial import Trial
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"
BOUND = "[verifier]\ntimeout_sec = 600\n"  # For the suites that sleep, should nobody wake them.
HALF = {1: "min_reward = 0.5"}
SPECULATE = TrialOptions(speculate=True)
BELOW = "round-1 stayed below its min_reward"
FindProcesses = Callable[[str], list[int]]
Wake = Callable[[], None]


@pytest.fixture
def wake(moment: str, processes: FindProcesses) -> Wake:
    """Wait until a suite sleeps for a ``moment``, and end its sleep."""

    def kill() -> None:
        for process in wait_until(lambda: processes(moment), "no suite sleeps"):
            os.kill(process, signal.SIGKILL)

    return kill


@pytest.fixture
def directory(tmp_path: Path) -> AttemptDirectory:
    """Where the attempt is kept."""
    return AttemptDirectory(tmp_path / "attempt")


def until_dropped(context: RoundContext) -> None:
    """Work until the turn is dropped."""
    assert context.cancelled.wait(300)
    raise Cancelled("dropped")


def asked(agent: Scripted) -> list[int]:
    return [context.round.index for context in agent.asked]


def without_times(directory: AttemptDirectory) -> tuple[list[RoundRecord], set[str]]:
    """What an attempt left: its records, without what differs each time, and its files."""
    record = directory.read_attempt()
    assert isinstance(record, AttemptRecord)
    left_out = {"agent_seconds": None, "verifier_seconds": None, "phases": None}
    files = {str(path.relative_to(directory.path)) for path in directory.path.rglob("*")}
    return [each.model_copy(update=left_out) for each in record.rounds], files


@pytest.mark.parametrize("minimum", ["0.0", "-1", "{ reward = 0 }"])
@pytest.mark.matrix
def test_a_bound_that_no_reward_falls_short_of_is_not_waited_for(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], moment: str, wake: Wake, minimum: str
) -> None:
    """The first suite sleeps for ten minutes; only the second turn wakes it."""
    task = make_task(f"sleep {moment}; {FAIL}", PASS, toml=BOUND, steps={1: f"min_reward = {minimum}"})
    records = finish(Trial(task, scripted("true", lambda _: wake()), engine))
    assert [record.outcome for record in records] == ["failed", "passed"]


@pytest.mark.parametrize("mode", ["chain", "fail-stop"])
@pytest.mark.matrix
def test_the_next_turn_begins_ahead_of_a_verdict_that_may_end_the_chain(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], moment: str, wake: Wake, mode: Any
) -> None:
    task = make_task(f"sleep {moment}; {PASS}", PASS, PASS, toml=BOUND, steps=HALF if mode == "chain" else {})
    agent = scripted("true", lambda _: wake())
    records = finish(Trial(task, agent, engine, options=TrialOptions(speculate=True, mode=mode)))
    assert ([record.outcome for record in records], asked(agent)) == (["passed"] * 3, [1, 2, 3])


def test_of_what_was_ahead_nothing_is_left_but_the_reason(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    moment: str,
    wake: Wake,
    processes: FindProcesses,
    tmp_path: Path,
) -> None:
    """Round 2 has ended, and its suite runs, when round 1 turns out to have failed; round 3 is under way."""
    ahead, waiting = AttemptDirectory(tmp_path / "ahead"), AttemptDirectory(tmp_path / "waiting")
    stays = f"{moment}5"

    def third_turn(context: RoundContext) -> None:
        context.recorder.say("user", "to be seen by nobody")
        wake()
        context.environment.exec(f"sleep {stays}")
        until_dropped(context)

    def make(second: Any, third: Any) -> Scripted:
        return scripted("touch /logs/artifacts/one", second, third)

    touched = "touch /logs/artifacts/two; echo x >> /etc/passwd"
    suites = f"sleep {moment}; {FAIL}", f"sleep {stays}; {PASS}", PASS, PASS
    task = make_task(*suites, toml=BOUND, steps=HALF)
    with Trial(task, agent := make(touched, third_turn), engine, directory=ahead, options=SPECULATE) as trial:
        trial.wait(1)
        assert processes(stays) == []
        records = [trial.wait(index) for index in range(1, 5)]
        assert trial.wait_environment().exec("true").ok
    assert asked(agent) == [1, 2, 3]
    assert [(record.outcome, record.cause) for record in records[1:]] == [("not reached", BELOW)] * 3

    def wake_first(_: RoundContext) -> None:
        raise AssertionError("the verdict was not waited for")

    with Trial(task, make(wake_first, wake_first), engine, directory=waiting) as trial:
        wake()
        trial.wait(4)
    (of_ahead, files), (of_waiting, expected) = without_times(ahead), without_times(waiting)
    assert files == expected
    assert of_ahead == of_waiting


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.matrix
def test_a_fork_is_removed_before_its_round_counts(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    moment: str,
    wake: Wake,
    directory: AttemptDirectory,
    monkeypatch: pytest.MonkeyPatch,
    stopped: bool,
) -> None:
    """And what was gathered of it is gone when the round turns out not to count, or the session is stopped before."""
    removed, gathered, stop = threading.Event(), threading.Event(), LeftFork.stop

    def note(left: LeftFork) -> None:
        stop(left)
        removed.set()

    def third_turn(context: RoundContext) -> None:
        assert removed.wait(300)
        assert directory.gathered_artifacts("round-2").is_dir()
        gathered.set()
        if not stopped:
            wake()
        until_dropped(context)

    monkeypatch.setattr(LeftFork, "stop", note)
    task = make_task(f"sleep {moment}; {FAIL}", PASS, PASS, toml=BOUND, steps=HALF)
    agent = scripted("true", "touch /logs/artifacts/two", third_turn)
    with Trial(task, agent, engine, directory=directory, options=SPECULATE) as trial:
        assert gathered.wait(300)
        if not stopped:
            assert [trial.wait(index).outcome for index in (1, 2, 3)] == ["failed", "not reached", "not reached"]
    assert not directory.gathered_artifacts("round-2").exists()
    assert not directory.artifacts("round-2").exists()


def test_what_a_dropped_turn_used_is_told_and_counted(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    moment: str,
    wake: Wake,
    directory: AttemptDirectory,
    tmp_path: Path,
) -> None:
    usage = Usage(prompt_tokens=70, completion_tokens=7, cost_usd=0.25, requests=1)

    def spend(context: RoundContext) -> None:
        context.recorder.reply("hm", usage=usage)

    def spend_and_wake(context: RoundContext) -> None:
        spend(context)
        wake()
        until_dropped(context)

    spending = RunSpending(tmp_path / "spent")
    task = make_task(f"sleep {moment}; {FAIL}", PASS, PASS, PASS, toml=BOUND, steps=HALF)
    options = TrialOptions(speculate=True, run_spending=spending)
    agent = scripted("true", spend, spend_and_wake)
    finish(Trial(task, agent, engine, directory=directory, options=options))
    record = directory.read_attempt()
    assert record is not None
    assert [each.usage for each in record.rounds[1:]] == [usage, usage, None]
    assert [each.agent_seconds is not None for each in record.rounds] == [True, True, True, False]
    assert spending.cost_usd == 0.5


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.matrix
def test_a_fault_of_a_turn_counts_only_if_the_turn_does(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    moment: str,
    wake: Wake,
    passes: bool,
) -> None:
    def fail(_: RoundContext) -> RoundTranscript:
        wake()
        raise AgentFault("the model cannot be reached")

    task = make_task(f"sleep {moment}; {PASS if passes else FAIL}", PASS, toml=BOUND, steps=HALF)
    _, second = finish(Trial(task, scripted("true", fail), engine, options=SPECULATE))
    expected = ("error", "the model cannot be reached") if passes else ("not reached", BELOW)
    assert (second.outcome, second.cause) == expected


def test_the_reference_solutions_need_no_option_and_leave_no_states_of_dropped_rounds(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    moment: str,
    wake: Wake,
    processes: FindProcesses,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[int] = []

    def solve(_: OracleAgent, context: RoundContext) -> RoundTranscript:
        turns.append(context.round.index)
        if context.round.index == 3:
            wake()
            until_dropped(context)
        return RoundTranscript()

    monkeypatch.setattr("pytest_evocode.agents.oracle.OracleAgent.run_round", solve)
    task = make_task(f"sleep {moment}; {FAIL}", PASS, PASS, toml=BOUND, steps=HALF)
    records = finish(Trial(task, OracleAgent(), engine, options=TrialOptions(references=True)))
    assert (turns, [record.outcome for record in records]) == ([1, 2, 3], ["failed", "not reached", "not reached"])
    assert [record.agent_seconds for record in records[1:]] == [None, None]
    assert [state for state in ReferenceIndex(engine.name).oldest_first() if state.task == task.name] == []


class Remembering:
    """An agent that remembers the rounds it has played; each turn is a function of its number."""

    name = "remembering"

    def __init__(self, turns: dict[int, Callable[[RoundContext], None]]) -> None:
        self.memory: list[int] = []
        self.asked: list[int] = []
        self._turns = turns

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Remember the round."""
        index = context.round.index
        self.asked.append(index)
        context.environment.exec(f"echo {index} >> played")
        self.memory.append(index)
        if index in self._turns:
            self._turns[index](context)
        return RoundTranscript()

    def save_state(self) -> list[int]:
        """Return the memory."""
        return self.memory

    def load_state(self, state: list[int]) -> None:
        """Restore the memory."""
        self.memory = list(state)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.matrix
def test_a_session_that_is_stopped_before_the_verdict_has_not_played_what_was_ahead(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    moment: str,
    wake: Wake,
    directory: AttemptDirectory,
    passes: bool,
) -> None:
    third = threading.Event()

    def work(context: RoundContext) -> None:
        third.set()
        until_dropped(context)

    played = "test $(tr -d '\\n' < played) = 123"
    suites = f"sleep {moment}; {PASS if passes else FAIL}", PASS, f"{played} && {PASS} || {FAIL}"
    task = make_task(*suites, toml=BOUND, steps=HALF)
    with Trial(task, Remembering({3: work}), engine, directory=directory, options=SPECULATE) as trial:
        assert third.wait(300)
    assert [trial.wait(index).outcome for index in range(1, 4)] == ["not reached"] * 3
    state = directory.read_state()
    assert state is not None
    assert ([turn.index for turn in state.turns], state.agent) == ([1], [1])

    resumed = Remembering({2: lambda _: wake()})
    options = TrialOptions(speculate=True, resume=True)
    records = finish(Trial(task, resumed, engine, directory=directory, options=options))
    if passes:
        assert ([record.outcome for record in records], resumed.asked) == (["passed"] * 3, [2, 3])
        assert resumed.memory == [1, 2, 3]
    else:
        assert [record.outcome for record in records] == ["failed", "not reached", "not reached"]
        assert [path.name for path in (directory.path / "steps").iterdir()] == ["round-1"]
    assert directory.read_state() is None


@pytest.mark.nightly
def test_a_round_whose_fork_failed_is_gone_on_from_without_what_was_ahead(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    directory: AttemptDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    third = threading.Event()

    def work(context: RoundContext) -> None:
        third.set()
        until_dropped(context)

    def break_down(*_: object) -> None:
        assert third.wait(300)
        raise EnvironmentFault("no space left")

    played = "test $(tr -d '\\n' < played) = 123"
    task = make_task(PASS, PASS, f"{played} && {PASS} || {FAIL}", steps={1: "min_reward = 0.0"})
    agent = Remembering({3: work})
    with monkeypatch.context() as patch:
        patch.setattr("pytest_evocode.trial.suites.runner.SuiteRunner.run_and_leave", break_down)
        records = finish(Trial(task, agent, engine, directory=directory))
    assert ([record.outcome for record in records], agent.asked) == (["error", "not reached", "not reached"], [1, 2, 3])
    resumed = Remembering({})
    records = finish(Trial(task, resumed, engine, directory=directory, options=TrialOptions(resume=True)))
    assert ([record.outcome for record in records], resumed.asked) == (["passed"] * 3, [2, 3])
    assert resumed.memory == [1, 2, 3]
