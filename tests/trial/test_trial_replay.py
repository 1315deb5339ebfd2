"""Replays: an attempt is recorded, played again, and ends as it did."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents import Agent, RoundContext, RoundTranscript
from pytest_evocode.agents.replay import ReplayAgent
from pytest_evocode.agents.shell.tools import run_script
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.environments import Engine
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, Usage
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import AgentInfo, Step, StepMetrics, ToolCall, Trajectory
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trial.trial import Trial
from tests import atif

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

# Its reward is what the workspace has, to the last digit.
BY_CHANCE = "echo 0.$(cat chance) > /logs/verifier/reward.txt"
PASSING = "echo 1 > /logs/verifier/reward.txt"

Play = Callable[[Task, Agent], tuple[list[RoundRecord], Path]]


@pytest.fixture
def play(engine: Engine, finish: Finish, tmp_path: Path) -> Play:
    """Run an attempt and return its records and where its results are."""

    def run(task: Task, agent: Agent) -> tuple[list[RoundRecord], Path]:
        directory = AttemptDirectory.of(tmp_path / "results", task.name, agent.name, "now", 1)
        return finish(Trial(task, agent, engine, directory=directory)), directory.path

    return run


def records(*commands: str, stopped: str = "") -> Callable[[RoundContext], RoundTranscript]:
    """A turn that runs commands and takes it down as an agent with a model does."""

    def turn(context: RoundContext) -> RoundTranscript:
        recorder = context.recorder
        recorder.agent = AgentInfo(name="original", version="7", model_name="a-model")
        recorder.say("user", context.instruction)
        for number, command in enumerate(commands):
            call = ToolCall(tool_call_id=f"call-{number}", function_name="bash", arguments={"command": command})
            usage = Usage(prompt_tokens=100, cached_tokens=10, completion_tokens=10, cost_usd=0.5, requests=1)
            recorder.reply("I act.", [call], reasoning="I think.", usage=usage)
            result = context.environment.exec(command, user=context.round.agent_user, timeout=context.timeout)
            recorder.observe(
                call.tool_call_id, result.output, Action(result.exit_code, result.seconds, result.timed_out)
            )
            if result.timed_out:
                return RoundTranscript(timed_out=True)
        return RoundTranscript(stopped=stopped)

    return turn


def trajectory_of(attempt: Path, round_name: str = "round-1") -> dict[str, Any]:
    return atif.read(attempt / "steps" / round_name / "agent" / "trajectory.json")


def changes_of(attempt: Path, round_name: str = "round-1") -> list[Any]:
    """What the actions of a round changed, one entry per action."""
    return [
        action.get("changes", [])
        for step in trajectory_of(attempt, round_name)["steps"]
        for action in step.get("extra", {}).get("evocode", {}).get("actions", [])
    ]


def replayed(attempt: Path) -> list[dict[str, Any]]:
    """What had to be done so that actions did what they had done."""
    steps = trajectory_of(attempt)["steps"]
    actions = [action for step in steps for action in step.get("extra", {}).get("evocode", {}).get("actions", [])]
    return [action.get("replayed", {}) for action in actions]


def test_a_replay_ends_in_the_same_verdicts_for_the_same_reasons_and_says_what_it_replays_and_pays_nothing(
    make_task: MakeTask, scripted: type[Scripted], play: Play
) -> None:
    task = make_task(BY_CHANCE, BY_CHANCE)
    first = records("date +%N > chance; echo same > same", "cat chance; false", "mkdir d; mv same d; printf '\\0' > b")
    stopped = "budget: turns 1 of 1 used"
    second = records("date +%N >> chance; tr -d '\\n' < chance > x; mv x chance", stopped=stopped)
    original, recorded = play(task, scripted(first, second))
    again, played = play(task, ReplayAgent(recorded))
    assert [record.verdict for record in again] == [record.verdict for record in original]
    assert original[0].verdict is not None
    assert 0 < (original[0].verdict.reward or 0.0) < 1
    for name in ("round-1", "round-2"):
        assert changes_of(played, name) == changes_of(recorded, name)
    assert [record.usage for record in again] == [None, None]
    assert [record.tool_calls for record in again] == [record.tool_calls for record in original]
    assert replayed(played) == [{"put_right": ["chance"]}, {}, {}]
    assert again[1].stopped == original[1].stopped == stopped
    assert again[1].cause == original[1].cause

    trajectory = trajectory_of(played)
    agent = trajectory["agent"]
    assert (agent["name"], agent["model_name"]) == ("replay", "a-model")
    made_by = {"name": "original", "version": "7", "session_id": trajectory_of(recorded)["session_id"]}
    assert agent["extra"]["evocode"]["replayed"] == made_by
    step = trajectory["steps"][1]
    assert (step["message"], step["reasoning_content"], "metrics" in step) == ("I act.", "I think.", False)
    taken = {"prompt_tokens": 100, "cached_tokens": 10, "completion_tokens": 10, "cost_usd": 0.5}
    assert step["extra"]["evocode"]["replayed"] == taken
    assert "total_cost_usd" not in trajectory["final_metrics"]


@pytest.mark.nightly
def test_files_that_chance_named_are_as_they_were(make_task: MakeTask, scripted: type[Scripted], play: Play) -> None:
    task = make_task(PASSING)
    commands = ("echo 1 > of-$(date +%N); echo old > kept", "rm of-*; [ -e once ] || echo $RANDOM$RANDOM > kept")
    _, recorded = play(task, scripted(records(*commands)))
    _, played = play(task, ReplayAgent(recorded))
    assert changes_of(played) == changes_of(recorded)
    made = changes_of(recorded)[0][1]["path"]
    assert made in replayed(played)[0]["put_right"]


@pytest.mark.nightly
def test_edits_by_other_tools_are_made_from_what_they_changed(
    make_task: MakeTask, scripted: type[Scripted], play: Play
) -> None:
    def edits(context: RoundContext) -> None:
        context.recorder.say("user", context.instruction)
        calls = [ToolCall(tool_call_id=name, function_name="Edit", arguments={"file_path": name}) for name in "ab"]
        context.recorder.reply("", calls)
        for call in calls:
            context.environment.exec(f"echo edited > {call.tool_call_id}")
            context.recorder.observe(call.tool_call_id, "done", Action())

    task = make_task("grep -q edited a && grep -q edited b && " + PASSING)
    original, recorded = play(task, scripted(edits))
    again, played = play(task, ReplayAgent(recorded))
    assert changes_of(played) == changes_of(recorded)
    assert replayed(played) == [{"put_right": ["a"], "run": False}, {"put_right": ["b"], "run": False}]
    assert original[0].passed
    assert again[0].passed


@pytest.mark.nightly
def test_a_turn_that_was_out_of_time_is_so_again(make_task: MakeTask, scripted: type[Scripted], play: Play) -> None:
    task = make_task(PASSING, toml="[agent]\ntimeout_sec = 3\n")
    original, recorded = play(task, scripted(records("echo 1 > a; sleep 60; echo 2 > a")))
    again, played = play(task, ReplayAgent(recorded))
    assert [record.timed_out for record in (*original, *again)] == ["agent", "agent"]
    assert changes_of(played) == changes_of(recorded)


@pytest.mark.nightly  # By day the other replays have what a command left.
def test_a_command_that_was_killed_is_killed_again_and_services_live_on(
    make_task: MakeTask, scripted: type[Scripted], play: Play
) -> None:
    def waits(context: RoundContext) -> None:
        context.recorder.say("user", context.instruction)
        service = "(while sleep 0.1; do :; done) >/dev/null 2>&1 & echo $! > pid"
        scripts: list[tuple[str, float]] = [(service, 60), ("sleep 60", 0.3), ("kill -0 $(cat pid)", 60)]
        for number, (script, seconds) in enumerate(scripts):
            call = ToolCall(tool_call_id=str(number), function_name="bash", arguments={"command": script})
            context.recorder.reply("", [call])
            shown, action = run_script(script, context, Deadline(None), seconds=seconds, limit=1000)
            context.recorder.observe(call.tool_call_id, shown, action)

    task = make_task(PASSING)
    _, recorded = play(task, scripted(waits))
    path = recorded / "steps/round-1/agent/trajectory.json"
    # Which process it is, is chance: without this it would be put right before the service is asked for.
    path.write_text(path.read_text().replace('"watched": true', '"watched": false'))
    _, played = play(task, ReplayAgent(recorded))
    steps = trajectory_of(played)["steps"]
    actions = [step["extra"]["evocode"]["actions"][0] for step in steps if step["source"] == "agent"]
    assert [(action["timed_out"], action["exit_code"]) for action in actions] == [(False, 0), (True, None), (False, 0)]


def test_what_changed_by_no_action_is_there_again(make_task: MakeTask, scripted: type[Scripted], play: Play) -> None:
    def acts_on_its_own(context: RoundContext) -> RoundTranscript:
        context.recorder.begin()
        context.environment.exec("date +%N > chance")
        call = ToolCall(tool_call_id="1", function_name="Write", arguments={"file_path": "chance", "content": "?"})
        step = Step(step_id=1, source="agent", message="", tool_calls=(call,), metrics=StepMetrics(prompt_tokens=5))
        return RoundTranscript(trajectory=Trajectory(agent=AgentInfo(name="cli", version="1"), steps=(step,)))

    task = make_task(BY_CHANCE)
    original, recorded = play(task, scripted(acts_on_its_own))
    (change,) = trajectory_of(recorded)["extra"]["evocode"]["changes"]
    assert change["path"] == "chance"
    again, _ = play(task, ReplayAgent(recorded))
    assert again[0].verdict == original[0].verdict


def test_commands_of_a_foreign_trajectory_are_run(make_task: MakeTask, play: Play, tmp_path: Path) -> None:
    foreign = {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "other", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Do it."},
            {
                "step_id": 2,
                "source": "agent",
                "message": [{"type": "text", "text": "Yes."}],
                "tool_calls": [
                    {"tool_call_id": "1", "function_name": "shell", "arguments": {"command": ["touch", "a b"]}},
                    {
                        "tool_call_id": "1",
                        "function_name": "exec_command",
                        "arguments": {"cmd": "[ -e 'a b' ] && touch c"},
                    },
                ],
                "observation": {"results": [{"content": "fine"}]},
            },
        ],
    }
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(foreign))
    task = make_task("[ -e c ] && " + PASSING)
    records_, played = play(task, ReplayAgent(path))
    assert records_[0].passed
    results = trajectory_of(played)["steps"][1]["observation"]["results"]
    assert [result["content"] for result in results] == ["[exit code 0]", "[exit code 0]"]


@pytest.mark.nightly
def test_a_recording_that_was_broken_off_is_replayed_as_far_as_it_goes(
    make_task: MakeTask, scripted: type[Scripted], play: Play
) -> None:
    task = make_task("[ -e a -a ! -e b ] && " + PASSING)
    _, recorded = play(task, scripted(records("touch a", "touch b")))
    path = recorded / "steps/round-1/agent/trajectory.json"
    trajectory = json.loads(path.read_text())
    del trajectory["steps"][2]["observation"], trajectory["steps"][2]["extra"]
    path.write_text(json.dumps(trajectory))
    again, played = play(task, ReplayAgent(recorded))
    assert again[0].passed
    assert len(changes_of(played)) == 1


def test_what_secrets_were_taken_out_of_is_left_as_it_is(
    make_task: MakeTask, scripted: type[Scripted], play: Play
) -> None:
    task = make_task(PASSING)
    _, recorded = play(task, scripted(records("echo $RANDOM$RANDOM > a")))
    path = recorded / "steps/round-1/agent/trajectory.json"
    trajectory = json.loads(path.read_text())
    (change,) = trajectory["steps"][1]["extra"]["evocode"]["actions"][0]["changes"]
    change["diff"] = change["diff"].replace(change["diff"].split("\n+")[2].strip(), "[TOKEN]")
    path.write_text(json.dumps(trajectory))
    again, played = play(task, ReplayAgent(recorded))
    assert again[0].passed
    assert replayed(played) == [{"different": {"a": "with the recorded diff it would not be what it was"}}]


@pytest.mark.nightly
def test_what_is_put_right_is_the_agents_own(make_task: MakeTask, scripted: type[Scripted], play: Play) -> None:
    task = make_task(
        PASSING,
        toml='[agent]\nuser = "nobody"\n',
        dockerfile="FROM debian:bookworm-slim\nWORKDIR /app\nRUN chmod 777 /app\n",
    )
    commands = (
        "mkdir d$(date +%N); date +%N > $(ls -d d*)/chance",
        "date +%N >> d*/chance && touch $(ls -d d*)/new && [ $(ls -d d* | wc -l) = 1 ]",
    )
    _, recorded = play(task, scripted(records(*commands)))
    _, played = play(task, ReplayAgent(recorded))
    assert changes_of(played) == changes_of(recorded)
    steps = trajectory_of(played)["steps"][1:]
    assert [step["observation"]["results"][0]["content"] for step in steps] == ["[exit code 0]"] * 2


def test_the_files_of_a_harness_are_not_the_agents_work(
    make_task: MakeTask, scripted: type[Scripted], play: Play
) -> None:
    def with_rules(context: RoundContext) -> RoundTranscript:
        context.environment.exec("echo rules > AGENTS.md")
        context.recorder.leave_out("AGENTS.md")
        return records("echo more >> AGENTS.md; echo 1 > a")(context)

    _, recorded = play(make_task(PASSING), scripted(with_rules))
    (changes,) = changes_of(recorded)
    assert [change["path"] for change in changes] == ["a"]


# Where recordings are.


def kept(task: Task, recorded: Path, place: Path, form: str) -> Path:
    """Put the rounds' trajectories somewhere else."""
    for round_ in task.rounds:
        path = place / form.format(round_.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(recorded / "steps" / round_.name / "agent" / "trajectory.json", path)
    return place


@pytest.mark.nightly
def test_every_place_that_recordings_may_be_at(
    make_task: MakeTask, scripted: type[Scripted], play: Play, tmp_path: Path
) -> None:
    task = make_task(BY_CHANCE, BY_CHANCE)
    turn = records("date +%N > chance")
    original, recorded = play(task, scripted(turn, turn))
    run = {"version": 1, "attempts": [str(recorded.relative_to(tmp_path / "results"))]}
    (tmp_path / "results/runs").mkdir()
    (tmp_path / "results/runs/now.json").write_text(json.dumps(run))
    places = [
        recorded,
        recorded.parent,
        tmp_path / "results",
        tmp_path / "results/runs/now.json",
        kept(task, recorded, tmp_path / "flat", "{}.json"),
        kept(task, recorded, tmp_path / "folders", "{}/trajectory.json"),
    ]
    for place in places:
        again, played = play(task, ReplayAgent(place))
        assert [record.verdict for record in again] == [record.verdict for record in original], place
        shutil.rmtree(played.parent)


def only_message(play: Play, task: Task, path: Path) -> str:
    records_, _ = play(task, ReplayAgent(path))
    assert records_[0].outcome == "error"
    return records_[0].cause


def test_what_is_missing_is_named(make_task: MakeTask, scripted: type[Scripted], play: Play, tmp_path: Path) -> None:
    task = make_task(PASSING, PASSING)
    _, recorded = play(task, scripted(records("true")))
    missing = recorded / "steps/round-2/agent/trajectory.json"
    records_, _ = play(task, ReplayAgent(recorded))
    assert [record.outcome for record in records_] == ["passed", "error"]
    assert records_[1].cause.startswith(f"{missing}: there is no trajectory to replay in round-2")
    (tmp_path / "nothing").mkdir()
    assert "no trajectory of small is here; name an attempt's directory" in only_message(
        play, task, tmp_path / "nothing"
    )
    one = recorded / "steps/round-1/agent/trajectory.json"
    assert f"{one}: this is the trajectory of one round, and small has 2" in only_message(play, task, one)
    one.write_text('{"steps": [{"source": "robot"}]}')
    message = only_message(play, task, recorded)
    assert message.startswith(f"{one}: this is not an ATIF trajectory: agent: Field required")


def test_several_attempts_are_listed(make_task: MakeTask, scripted: type[Scripted], play: Play, tmp_path: Path) -> None:
    task = make_task(PASSING)
    _, recorded = play(task, scripted(records("true")))
    other = recorded.with_name("small__a2")
    shutil.copytree(recorded, other)
    assert f"several attempts at small are here; name one of them:\n  {recorded}\n  {other}" in only_message(
        play, task, tmp_path / "results"
    )


def test_a_path_that_does_not_exist_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"replay: there is no .*nowhere; name an attempt's directory"):
        ReplayAgent(tmp_path / "nowhere").check({}, Budget())
