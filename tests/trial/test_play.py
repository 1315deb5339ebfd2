"""Tasks that are played from Python, turn by turn: on what attempts of sessions run on, with forks at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.command_environment import SHELL
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.errors import AgentFault, EpisodeFault, EvocodeError, RecordFault, UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.play import Episode, RoundObservation, RoundResult, _engines, play
from pytest_evocode.trial import Trial, TrialOptions

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

T = TypeVar("T")
HAS = """
for n in $(seq {rounds}); do
    if grep -qsx $n work; then s=success; else s=fail; fi
    echo CASE_RESULT case_id=line-$n origin_step=round-$n status=$s
done
if grep -qsx {rounds} work; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
"""A suite with a case for each line that ``work`` is to have so far, of which the last one decides."""
ONE, TWO, THREE = (HAS.format(rounds=rounds) for rounds in (1, 2, 3))
HANGS = 120.0


def played(play_it: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(asyncio.wait_for(play_it(), HANGS))


async def do(episode: Episode, *commands: str) -> list[RoundResult]:
    """Take the turns of as many rounds, each by one command."""
    results = []
    for command in commands:
        done = await episode.exec(command)
        assert done.ok, done.output
        results.append(await episode.finish_round())
    return results


async def started(processes: Callable[[str], list[int]], text: str, *, but: int = 0) -> int:
    """A process that has a text in its command line, once there is one; ``but`` is another one, which may be ending."""
    while not (found := [process for process in processes(text) if process != but]):
        await asyncio.sleep(0.01)
    return found[0]


def test_an_episode_goes_from_round_to_round_with_a_reward_for_each_case_and_round(
    engine: Engine, make_task: MakeTask
) -> None:
    task = make_task(ONE, TWO, THREE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            assert await episode.reset() == RoundObservation("round-1", 1, "Do round 1.\n", "/app", None)
            first, second, third = await do(episode, "echo 1 > work", "true", "echo 3 >> work")
            assert (first.reward, first.passed, first.case_rewards) == (1.0, True, {"line-1": 1.0})
            assert first.observation is not None
            assert first.observation.instruction == "Do round 2.\n"
            assert (second.reward, second.case_rewards) == (0.0, {"line-1": 1.0, "line-2": 0.0})
            assert (third.reward, third.done, episode.observation) == (1.0, True, None)
            assert [record.outcome for record in episode.records] == ["passed", "failed", "passed"]
            assert episode.rewards == pytest.approx({"reward": 2 / 3})
            assert episode.reward == pytest.approx(2 / 3)

    played(play_it)


@pytest.mark.parametrize(("strategy", "rewards"), [("mean", 0.5), ("final", 1.0)])
def test_the_reward_of_an_episode_is_by_the_tasks_strategy(
    engine: Engine, make_task: MakeTask, strategy: str, rewards: float
) -> None:
    task = make_task(ONE, TWO, toml=f'multi_step_reward_strategy = "{strategy}"')

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await do(episode, "true", "seq 2 > work")
            assert (episode.rewards, episode.reward) == ({"reward": rewards}, rewards)

    played(play_it)


def test_an_episode_comes_to_the_same_as_an_attempt_of_a_session(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish
) -> None:
    task = make_task(ONE, TWO, THREE, steps={2: "min_reward = 1.0"})
    turns = ("echo 1 > work", "echo 3 > work", "seq 3 > work")
    attempt = finish(Trial(task, scripted(*turns), engine))

    async def play_it() -> Episode:
        async with play(task, engine) as episode:
            await episode.reset()
            assert (await do(episode, *turns[:2]))[-1].done
            return episode

    episode = played(play_it)
    assert [(each.round, each.outcome, each.verdict) for each in episode.records] == [
        (each.round, each.outcome, each.verdict) for each in attempt
    ]
    assert [each.outcome for each in attempt] == ["passed", "failed", "not reached"]


def test_a_fork_of_a_turn_goes_on_beside_the_episode(
    engine: Engine, make_task: MakeTask, processes: Callable[[str], list[int]], moment: str
) -> None:
    files = {"steps/round-2/workdir/setup.sh": "rm setup.sh; echo prepared >> /app/log\n"}
    task = make_task(ONE, TWO, files=files)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await do(episode, "echo 1 > work")
            await episode.exec(f"echo begun > note; sleep {moment} >/dev/null 2>&1 &")
            daemon = await started(processes, moment)
            async with await episode.fork() as fork:
                assert fork.observation == episode.observation
                assert (await fork.exec("cat note log")).output == "begun\nprepared\n"
                await fork.exec("echo of the fork > note")
                assert (await episode.exec("cat note")).output == "begun\n"
                assert processes(moment) == [daemon]  # The episode's goes on, and there is none in the fork.
                [of_fork] = await do(fork, "echo 2 >> work")
                [of_episode] = await do(episode, "echo 2 > work")
            assert (of_fork.reward, fork.rewards) == (1.0, {"reward": 1.0})
            assert (of_episode.reward, episode.rewards) == (1.0, {"reward": 1.0})
            kinds = (
                {case.id: case.failure for case in of_episode.record.verdict.cases} if of_episode.record.verdict else {}
            )
            assert kinds == {"line-1": "regression", "line-2": None}

    played(play_it)


def test_the_daemon_of_an_image_answers_in_an_episode_and_in_its_fork(engine: Engine, make_task: MakeTask) -> None:
    """Each has its own, with the files of the moment of the fork."""
    dockerfile = 'FROM debian:bookworm-slim\nWORKDIR /app\nCOPY entry.sh /\nENTRYPOINT ["sh", "/entry.sh"]\n'
    answer = '[ -e "$each" ] && rm "$each" && echo "${each#ask-}" >> told'
    daemon = f"while :; do for each in ask-*; do {answer}; done; sleep 0.01; done &\n"
    task = make_task(ONE, dockerfile=dockerfile, files={"environment/entry.sh": f'{daemon}exec "$@"\n'})
    ask = "touch ask-{0}; until grep -qs {0} told; do sleep 0.01; done; cat told"

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            assert (await episode.exec(ask.format(1))).output == "1\n"
            async with await episode.fork() as fork:
                assert (await fork.exec(ask.format(2))).output == "1\n2\n"
                assert (await episode.exec(ask.format(3))).output == "1\n3\n"
                assert (await fork.exec(ask.format(4))).output == "1\n2\n4\n"

    played(play_it)


def test_forks_and_saved_states_go_on_whose_agent_has_removed_bash(
    engine: Engine, make_task: MakeTask, tmp_path: Path
) -> None:
    task = make_task(ONE, ONE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await episode.exec("echo 1 > work; rm -f /usr/bin/bash /bin/bash")
            await episode.exec("true")  # The shell that is brought for it is in the fork as well.
            async with await episode.fork() as fork:
                mended = await fork.exec(f"cp -an {SHELL}/image/. /; cat work")
                assert mended.output.endswith("\n1\n")
                assert (await fork.finish_round()).reward == 1.0
                assert not (await fork.exec(["test", "-e", SHELL])).ok
            await episode.save(tmp_path)
            await episode.load(tmp_path)
            assert (await episode.exec("cat work")).output.endswith("\n1\n")

    played(play_it)


def test_forks_have_forks_and_can_begin_again(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(ONE, TWO, THREE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await do(episode, "echo 1 > work")
            forks = [await episode.fork() for _ in range(3)]
            await do(forks[0], "echo 2 >> work")
            forks.append(await forks[0].fork())
            (last,) = await do(forks[3], "echo 3 >> work")
            assert last.case_rewards == {"line-1": 1.0, "line-2": 1.0, "line-3": 1.0}
            assert forks[3].rewards == {"reward": 1.0}
            await forks[1].exec("echo 9 > work")
            assert (await forks[1].reset()).round == "round-2"
            assert (await forks[1].exec("cat work")).output == "1\n"
            assert [record.round for record in forks[1].records] == ["round-1"]
            await asyncio.gather(*(each.close() for each in forks))

    played(play_it)


def test_a_saved_state_is_gone_on_from_more_than_once(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(ONE, TWO)
    saved = tmp_path / "saved"

    async def begin() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await do(episode, "echo 1 > work")
            await episode.exec("echo later > note")
            await episode.save(saved)
            await episode.exec("rm note work")

    async def go_on() -> dict[str, float] | None:
        async with play(task, engine) as episode:
            assert (await episode.load(saved)).round == "round-2"
            assert (await episode.exec("cat note")).output == "later\n"
            await episode.exec("seq 2 > work")
            await episode.finish_round()
            return episode.rewards

    played(begin)
    assert [played(go_on), played(go_on)] == [{"reward": 1.0}, {"reward": 1.0}]
    state = json.loads((saved / "snapshot.json").read_text())
    snapshot = engine.find_snapshot(state["reference"])
    assert snapshot is not None
    snapshot.discard()
    with pytest.raises(UsageError, match="not on this machine"):
        played(go_on)
    for change, why in (({"task_hash": "0"}, "another task now"), ({"environment": "docker"}, "env='docker'")):
        (saved / "snapshot.json").write_text(json.dumps({**state, **change}))
        with pytest.raises(UsageError, match=why):
            played(go_on)
    (saved / "snapshot.json").write_text(json.dumps({**state, "index": 3}))
    with pytest.raises(RecordFault, match="it is of round 3, and the task has 2"):
        played(go_on)
    (saved / "snapshot.json").write_text("{}")
    with pytest.raises(RecordFault, match=r"snapshot\.json: it does not say which version"):
        played(go_on)


def test_a_turn_ends_at_its_limit_and_the_next_one_begins_when_it_is_finished(
    engine: Engine, make_task: MakeTask, processes: Callable[[str], list[int]], moment: str
) -> None:
    task = make_task(ONE, TWO, steps=dict.fromkeys((1, 2), "[steps.agent]\ntimeout_sec = 1.5"))

    async def play_it() -> None:
        async with play(task, engine) as episode:
            assert (await episode.reset()).limit == 1.5
            began = time.monotonic()
            await episode.exec(f"echo 1 > work; sleep {moment} >/dev/null 2>&1 &")
            assert (await episode.exec(f"sleep {moment}")).timed_out
            await asyncio.sleep(2)
            with pytest.raises(EpisodeFault, match="time is over"):
                await episode.exec("true")
            assert processes(moment) == []
            result = await episode.finish_round()
            assert (result.passed, result.record.timed_out) == (True, "agent")
            assert result.record.agent_seconds is not None
            assert result.record.agent_seconds < time.monotonic() - began - 1  # Of two that nobody worked in.
            assert (await do(episode, "echo 2 >> work"))[0].passed

    played(play_it)


def test_a_fork_has_what_is_left_of_the_time(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(ONE, toml="[agent]\ntimeout_sec = 600")
    options = TrialOptions(budget=Budget(minutes=100))

    async def play_it() -> None:
        async with play(task, engine, options=options) as episode:
            await episode.reset()
            await asyncio.sleep(1)
            async with await episode.fork() as fork, await fork.fork() as other:
                await other.save(tmp_path)
                (result,) = await do(other, "echo 1 > work")
            assert result.record.agent_seconds is not None
            assert result.record.agent_seconds > 1
            await episode.load(tmp_path)
            (result,) = await do(episode, "echo 1 > work")
            assert result.record.agent_seconds is not None
            assert result.record.agent_seconds > 1

    played(play_it)


def test_a_result_is_not_lost_with_whoever_waited_for_it(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(
        ONE,
        f"sleep 1; {TWO}",
        f"sleep 1; {THREE}",
        steps={2: "min_reward = 1.0"},
        files={"steps/round-2/workdir/setup.sh": "sleep 1\n"},
    )

    async def play_it() -> None:
        async with play(task, engine, results=tmp_path / "attempt") as episode:
            await episode.reset()
            for number in (1, 2, 3):
                await episode.exec(f"seq {number} > work")
                cancelled = 0
                while True:
                    try:
                        result = await asyncio.wait_for(episode.finish_round(), 0.3)
                        break
                    except TimeoutError:
                        cancelled += 1
                assert cancelled > 0
                assert (result.passed, result.done) == (True, number == 3)
            assert [record.outcome for record in episode.records] == ["passed"] * 3
        assert json.loads((tmp_path / "attempt/result.json").read_text())["rewards"] == {"reward": 1.0}

    played(play_it)


def test_what_is_cancelled_is_killed_and_the_turn_goes_on(
    engine: Engine, make_task: MakeTask, processes: Callable[[str], list[int]], moment: str
) -> None:
    task = make_task(ONE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(episode.exec(f"sleep {moment}"), 0.5)
            assert (await episode.exec("echo 1 > work")).ok
            assert processes(moment) == []
            assert (await episode.finish_round()).passed

    played(play_it)


def test_what_is_cancelled_before_it_begins_is_never_run(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(ONE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            first = asyncio.create_task(episode.exec("sleep 1; echo first >> log"))
            await asyncio.sleep(0.3)
            second = asyncio.create_task(episode.exec("echo second >> log"))
            await asyncio.sleep(0)
            second.cancel()
            assert (await first).ok
            for delay in (0.0, 0.001, 0.003):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(episode.exec("sleep 5; echo late >> log"), delay)
            assert (await episode.exec("cat log")).output == "first\n"
            await episode.finish_round()

    played(play_it)


def test_cancelling_starts_the_entry_point_again(
    engine: Engine, make_task: MakeTask, processes: Callable[[str], list[int]], moment: str
) -> None:
    dockerfile = 'FROM debian:bookworm-slim\nWORKDIR /app\nCOPY entry.sh /\nENTRYPOINT ["sh", "/entry.sh"]\n'
    files = {"environment/entry.sh": f'sleep {moment} &\nexec "$@"\n'}
    task = make_task(ONE, dockerfile=dockerfile, files=files)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            before = await started(processes, moment)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(episode.exec("sleep 60"), 0.5)
            after = await started(processes, moment, but=before)
            while processes(moment) != [after]:
                await asyncio.sleep(0.01)

    played(play_it)


@pytest.mark.parametrize("broken", ["mkdir -p /tests; echo 1 > /tests/own", "kill -9 -1", "rm -rf /app; cd /"])
def test_a_fork_does_not_depend_on_what_the_agent_left(engine: Engine, make_task: MakeTask, broken: str) -> None:
    task = make_task(ONE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await episode.exec(f"echo 1 > work; {broken}")
            async with await episode.fork() as fork:
                assert (await fork.exec("cat work; ls /tests")).output == (
                    await episode.exec("cat work; ls /tests")
                ).output
                assert (await fork.finish_round()).reward == (await episode.finish_round()).reward

    played(play_it)


def test_a_fork_that_is_cancelled_leaves_nothing(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(ONE)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            for delay in (0.0, 0.001, 0.01, 0.05):
                with contextlib.suppress(TimeoutError):
                    await (await asyncio.wait_for(episode.fork(), delay)).close()  # Where it was in time.
            assert (await episode.exec("true")).ok

    played(play_it)


def test_a_state_whose_saving_is_cancelled_is_not_there(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    assert isinstance(engine, SandboxEngine)
    kept, task, saved = engine._settings.kept, make_task(ONE), tmp_path / "saved"
    before = {*kept.glob("*")}

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            waiting = asyncio.create_task(episode.exec("sleep 0.5"))
            for delay in (0.0, 0.001, 0.01):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(episode.save(saved), delay)
            await waiting
            shutil.rmtree(saved, ignore_errors=True)
            await episode.exec("true")  # After all that was asked before.

    played(play_it)
    assert not saved.exists()
    assert {*kept.glob("*")} == before


@pytest.mark.parametrize("broken", ["touch /app/data", "rm /usr/bin/mkdir", "rm -rf /app; ln -s /proc /app"])
def test_an_agent_cannot_make_its_failure_one_of_the_infrastructure(
    engine: Engine, make_task: MakeTask, broken: str
) -> None:
    task = make_task(ONE, TWO, files={"steps/round-2/workdir/setup.sh": "mkdir data\n"})

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            (result,) = await do(episode, broken)
            assert (result.reward, result.done, episode.rewards) == (0.0, True, {"reward": 0.0})
            assert (episode.records[-1].outcome, episode.records[-1].fault) == ("error", "agent")
            assert (
                "round-2 cannot be prepared on what the agent left. It can be on the image as built"
                in episode.records[-1].cause
            )

    played(play_it)


def test_a_sandbox_that_the_agent_keeps_from_starting_again_is_its_failure(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(ONE, TWO)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await episode.exec("rm /usr/bin/bash /usr/bin/tail")  # Without bash alone it is started with sh.
            trial = episode._trial
            assert trial is not None
            assert isinstance(trial.environment, SandboxEnvironment)
            with pytest.raises(AgentFault):
                await asyncio.to_thread(trial.environment._relaunch)
            with pytest.raises(EpisodeFault, match="what ran in it is to blame"):
                await episode.exec("true")
            while episode.observation is not None:
                assert (await episode.finish_round()).reward == 0.0
            assert episode.reward == 0.0

    played(play_it)


def test_what_is_closed_before_its_verdict_has_no_reward(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(f"sleep 60; {ONE}", TWO)

    async def play_it() -> None:
        episode = play(task, engine, results=tmp_path / "attempt")
        await episode.__aenter__()
        await episode.reset()
        await episode.exec("echo 1 > work")
        waiting = asyncio.create_task(episode.finish_round())
        await asyncio.sleep(0.5)
        await episode.close()
        with pytest.raises(EpisodeFault, match="closed"):
            await waiting
        assert not (tmp_path / "attempt/state.json").exists()

    played(play_it)


def test_a_fault_of_the_infrastructure_has_no_reward(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(ONE, TWO)

    async def play_it() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            assert (await do(episode, "echo 1 > work"))[0].reward == 1.0
            trial = episode._trial
            assert trial is not None
            assert trial.environment is not None
            await asyncio.to_thread(trial.environment.stop)
            with pytest.raises(EvocodeError):
                await episode.exec("true")
            result = await episode.finish_round()
            assert (result.record.outcome, result.reward, episode.rewards) == ("error", None, None)
            assert episode.reward is None
            assert (await episode.reset()).round == "round-1"
            assert (await do(episode, "true", "true"))[-1].reward == 0.0

    played(play_it)


def test_what_cannot_be_done_is_said(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(ONE)

    async def before_reset() -> None:
        async with play(task, engine) as episode:
            await episode.exec("true")

    async def after_the_end() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await episode.finish_round()
            await episode.finish_round()

    async def out_of_context() -> None:
        await play(task, engine).reset()

    async def without_image() -> None:
        missing = replace(task, config=task.config.model_copy(update={"environment": _healthcheck(task)}))
        async with play(missing, engine) as episode:
            await episode.reset()

    async def with_a_limit_that_nobody_counts() -> None:
        play(task, engine, options=TrialOptions(budget=Budget(turns=2)))

    async def with_a_command_of_bytes() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            command: Any = b"true"
            await episode.exec(command)

    async def with_a_number_in_a_command() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            command: Any = ["echo", 1]
            await episode.exec(command)

    async def with_no_command() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            await episode.exec([])

    async def with_a_number_as_a_variable() -> None:
        async with play(task, engine) as episode:
            await episode.reset()
            env: Any = {"PORT": 1}
            await episode.exec("true", env=env)

    async def with_a_number_as_name() -> None:
        name: Any = 5
        play(task, engine, name=name)

    async def with_results_of_another() -> None:
        (tmp_path / "steps").mkdir()
        async with play(task, engine, results=tmp_path) as episode:
            await episode.reset()

    async def with_results_of_a_part() -> None:
        async with play(task, engine, results=tmp_path) as episode:
            await episode.load(tmp_path)

    for play_it, why in (
        (with_a_limit_that_nobody_counts, "minutes alone"),
        (with_a_command_of_bytes, "a command is a text, or a list of texts that is not empty, and not b'true'"),
        (with_a_number_in_a_command, r"and not \['echo', 1\]"),
        (with_no_command, r"and not \[\]"),
        (with_a_number_as_a_variable, "values of env are texts"),
        (with_a_number_as_name, "a name is a text"),
        (with_results_of_another, "has an attempt"),
        (with_results_of_a_part, "whole attempts"),
        (before_reset, "no turn is under way"),
        (after_the_end, "no turn is under way"),
        (out_of_context, "async with play"),
        (without_image, "healthcheck of the environment failed"),
    ):
        with pytest.raises(EvocodeError, match=why):
            played(play_it)


def _healthcheck(task: Any) -> Any:
    from pytest_evocode.tasks import Healthcheck

    check = Healthcheck(command="false", retries=1, start_interval_sec=0.1, interval_sec=0.1, start_period_sec=0)
    return task.config.environment.model_copy(update={"healthcheck": check})


def test_many_episodes_go_on_at_once_with_one_engine(make_task: MakeTask) -> None:
    task = make_task(ONE, TWO)

    async def one(number: int) -> float | None:
        async with play(task, "sandbox") as episode:
            await episode.reset()
            async with await episode.fork() as fork:
                results = await do(fork, "echo 1 > work", "echo 2 >> work" if number % 2 else "rm work")
            return results[-1].reward

    async def play_it() -> list[float | None]:
        return await asyncio.gather(*map(one, range(12)))

    assert played(play_it) == [0.0, 1.0] * 6
    assert _engines._open == {}


def test_results_have_the_trajectories_of_turns(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    task, results = make_task(ONE, TWO), tmp_path / "attempt"

    async def play_it() -> None:
        options = TrialOptions(agent={"spec": "policy"})
        async with play(task, engine, name="policy", results=results, options=options) as episode:
            await episode.reset()
            await do(episode, "echo 1 > work", "echo 2 >> work")

    played(play_it)
    record = json.loads((results / "result.json").read_text())
    assert (record["agent"], record["rewards"]) == ("policy", {"reward": 1.0})
    assert [each["tool_calls"] for each in record["rounds"]] == [1, 1]
    trajectory = json.loads((results / "steps/round-2/agent/trajectory.json").read_text())
    [step] = [each for each in trajectory["steps"] if each.get("tool_calls")]
    assert step["tool_calls"][0]["arguments"] == {"command": "echo 2 >> work"}
