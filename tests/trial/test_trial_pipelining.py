"""A suite runs while the next round is already under way, unless the chain needs its verdict."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import RoundContext
from pytest_evocode.agents.oracle import NopAgent
from pytest_evocode.environments import Engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.trial import Trial
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
BOUND = "[verifier]\ntimeout_sec = 60\n"  # For the suites that sleep, should nobody wake them.
FindProcesses = Callable[[str], list[int]]


def test_turns_begin_while_suites_run_beside_one_another(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], moment: str, processes: FindProcesses
) -> None:
    """The first two suites sleep for ten minutes; only the third turn of the agent wakes them."""
    both: list[int] = []

    def wake_both(context: RoundContext) -> None:
        found = wait_until(lambda: processes(moment)[1:] and processes(moment))
        both.extend(found)
        for process in found:
            os.kill(process, signal.SIGKILL)

    suite = f"sleep {moment}\n{PASS}"
    records = finish(Trial(make_task(suite, suite, PASS, toml=BOUND), scripted("true", "true", wake_both), engine))
    assert len(both) == 2
    assert [record.outcome for record in records] == ["passed"] * 3


def test_a_suite_judges_the_moment_its_round_ended_and_not_what_came_after(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], moment: str, processes: FindProcesses
) -> None:
    def change_and_wake(context: RoundContext) -> None:
        found = wait_until(lambda: processes(moment))
        context.environment.exec("echo two > answer.txt")
        for process in found:
            os.kill(process, signal.SIGKILL)

    task = make_task(f"sleep {moment}; cat answer.txt; grep -q one answer.txt && {PASS}", PASS, toml=BOUND)
    first, _ = finish(Trial(task, scripted("echo one > answer.txt", change_and_wake), engine))
    assert first.outcome == "passed", first.cause


def test_a_round_with_a_min_reward_is_waited_for(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    directory = AttemptDirectory(tmp_path / "attempt")
    reward = directory.path / "steps/round-1/verifier/reward.txt"
    there: list[bool] = []
    task = make_task(f"sleep 0.5; {PASS}", PASS, steps={1: "min_reward = 0.5"})
    agent = scripted("true", lambda context: there.append(reward.is_file()))
    records = finish(Trial(task, agent, engine, directory=directory))
    assert there == [True]
    assert [record.outcome for record in records] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("minimum", "rewards", "goes_on"),
    [
        ("0.5", '{"reward": 0.5}', True),
        ("0.5", '{"reward": 0.49}', False),
        ("1", '{"reward": 0.999}', False),
        ("0.0", '{"reward": 0}', True),
        ("{ tests = 0.5, style = 0.25 }", '{"reward": 0, "tests": 0.5, "style": 0.25}', True),
        ("{ tests = 0.5, style = 0.25 }", '{"reward": 1, "tests": 0.5, "style": 0.2}', False),
        ("{ tests = 0.5 }", '{"reward": 1}', False),
        ("0.5", '{"correctness": 0.75}', True),
    ],
)
@pytest.mark.matrix
def test_below_a_min_reward_the_chain_ends(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    minimum: str,
    rewards: str,
    goes_on: bool,
) -> None:
    suite = f"echo '{rewards}' > /logs/verifier/reward.json"
    task = make_task(suite, PASS, PASS, steps={1: f"min_reward = {minimum}"})
    agent = scripted()
    records = finish(Trial(task, agent, engine))
    assert records[0].verdict is not None
    assert [context.round.index for context in agent.asked] == ([1, 2, 3] if goes_on else [1])
    assert [record.outcome for record in records[1:]] == ["passed" if goes_on else "not reached"] * 2
    assert {record.cause for record in records[1:]} == {"" if goes_on else "round-1 stayed below its min_reward"}


def test_a_round_without_a_verdict_reaches_no_min_reward(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    records = finish(Trial(make_task("true", PASS, steps={1: "min_reward = 0.0"}), NopAgent(), engine))
    assert [record.outcome for record in records] == ["error", "not reached"]


def test_a_min_reward_of_the_last_round_changes_nothing(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    task = make_task("echo 0 > /logs/verifier/reward.txt", steps={1: "min_reward = 1.0"})
    assert [record.outcome for record in finish(Trial(task, NopAgent(), engine))] == ["failed"]
