"""Tasks as Harbor's authors write them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import Verdict
from pytest_evocode.results.rewards import trial_rewards
from tests.acceptance.models import at
from tests.model_scripts import Asked, Run, Say, Step
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)


def single(root: Path, name: str, toml: str = "", **files: str) -> Path:
    """Write a task without steps, whose suite passes."""
    task = root / "tasks" / name
    for path, text in {
        "task.toml": toml,
        "instruction.md": "Write the program.",
        "environment/Dockerfile": "FROM python:3.11-slim-bookworm\nWORKDIR /app\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt",
        "solution/solve.sh": "true",
        **files,
    }.items():
        (task / path).parent.mkdir(parents=True, exist_ok=True)
        (task / path).write_text(text + "\n")
    return task


@pytest.mark.parametrize("workers", [(), ("-n2",)])
@pytest.mark.matrix
def test_limits_that_are_not_set_are_told_once(
    pytester: pytest.Pytester, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    for name in "ab":
        single(pytester.path, name, "[environment]\nstorage_mb = 100\n")
    session = run_tasks(*workers, "tasks", "--evocode-attempts=2", agent="nop")
    assert session.outcomes == {"passed": 4}
    session.has("evocode: the sandbox environment sets no limit of storage, which 2 tasks ask for*")
    assert session.text.count("limit of storage") == 1
    session.lacks("*warning*")


def test_a_name_with_spaces_is_played_recorded_and_reported(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 1)
    (task / "steps/round-1").rename(task / "steps/First step (é)")
    toml = task / "task.toml"
    toml.write_text(toml.read_text().replace("round-1", "First step (é)"))
    session = run_tasks("-v", "tasks/a/task.toml::oracle::First step (é)", "--evocode-report", "--junitxml=junit.xml")
    assert session.outcomes == {"passed": 1}
    session.has("tasks/a/task.toml::oracle::First step (é) PASSED*")
    assert (session.attempt() / "steps/First step (é)/round.json").is_file()
    assert [round_.round for round_ in session.record().rounds] == ["First step (é)"]


def test_the_task_s_solution_and_suite_serve_steps_without_their_own(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    task = write_task("a", 3, solve=dict.fromkeys((2, 3)))
    for path, text in {
        "solution/solve.sh": "echo line-$(($(wc -l < log.txt) + 1)) >> log.txt",
        "tests/test.sh": "grep -qx line-$EVOCODE_ROUND_INDEX log.txt; echo $((1 - $?)) > /logs/verifier/reward.txt",
    }.items():
        (task / path).parent.mkdir()
        (task / path).write_text(f"{text}\n")
    (task / "steps/round-3/tests/test.sh").unlink()
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 3}


def test_a_task_without_an_environment_is_collected_and_an_error_when_it_is_run(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    task = write_task("a", 1)
    (task / "environment/Dockerfile").unlink()
    session = run_tasks("tasks", "-W", "default::pytest_evocode.TaskWarning")
    assert session.outcomes == {"errors": 1, "warnings": 1}
    message = f"{task}/task.toml: no environment to run in; create {task}/environment/Dockerfile or set docker_image"
    assert message in session.text
    session.has("*tasks/a/task.toml:1: TaskWarning: no environment to run in*")


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        (("-o", "evocode_reward_key=style", "--evocode-reward-key=tests"), {"passed": 1}),
        (("--evocode-reward-key=tests",), {"passed": 1}),
        (("-o", "evocode_reward_key=style"), {"failed": 1}),
    ],
)
@pytest.mark.matrix
def test_the_session_names_the_reward_that_decides(
    write_task: WriteTask, run_tasks: RunTasks, arguments: tuple[str, ...], outcomes: dict[str, int]
) -> None:
    rewards = """echo '{"tests": 1, "style": 0.5}' > /logs/verifier/reward.json"""
    write_task("a", 1, test={1: rewards})
    session = run_tasks("tasks", *arguments)
    assert session.outcomes == outcomes
    facts = session.record().facts
    assert facts is not None
    assert facts.reward_key == arguments[-1].rpartition("=")[2]


SEVERAL = """echo '{"tests": 1, "style": 0.5}' > /logs/verifier/reward.json"""


def test_of_several_rewards_the_smallest_decides_and_the_session_says_so_once(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, test={1: SEVERAL, 2: SEVERAL})
    write_task("b", 2, test={1: SEVERAL, 2: SEVERAL}, step={1: "min_reward = { tests = 0.5 }"})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 3, "failed": 2}
    session.has(
        "several rewards in a: style decides, it is the smallest; another one can be named with --evocode-reward-key",
        "several rewards in b: tests decides, it is the smallest of those that min_reward names",
    )
    assert session.text.count("several rewards") == 2
    verdicts = [round_.verdict for name in "ab" for round_ in session.record(name).rounds if round_.verdict]
    assert [(each.reward, each.deciding_key, each.deciding_rule) for each in verdicts] == [
        (0.5, "style", "smallest"),
        (0.5, "style", "smallest"),
        (1.0, "", None),
        (1.0, "tests", "min_reward"),
        (1.0, "tests", "min_reward"),
    ]
    assert (session.attempt() / "steps/round-1/verifier/reward.txt").read_text() == "0.5\n"


WHY = "reward.json has several rewards (style, tests) and none named 'reward'"


def resume_without_rule(run_tasks: RunTasks, *options: str, undecided: tuple[int, ...] = (1,)) -> Session:
    """Play ``tasks``, record some rounds as versions without a rule for several rewards did, and resume."""
    played = run_tasks("tasks", *(each for each in options if each.startswith("--evocode-mode")))
    record, directory = played.record(), AttemptDirectory(played.attempt())
    verdict = Verdict(reward=None, rewards={"tests": 1.0, "style": 0.5})
    old = {"outcome": "undecided", "cause": WHY, "verdict": verdict}
    rounds = tuple(each.model_copy(update=old) if each.index in undecided else each for each in record.rounds)
    for each in rounds:
        directory.write_round(each, output="", done=True)
    rewards = trial_rewards(rounds, range(1, len(rounds) + 1), "mean")
    directory.write_attempt(record.model_copy(update={"rounds": rounds, "rewards": rewards}))
    return run_tasks("tasks", "--evocode-resume", *options)


@pytest.mark.parametrize("options", [(), ("-n2",), ("--evocode-mode=fail-stop",), ("-o", "evocode_cases=subtests")])
@pytest.mark.matrix
def test_rounds_that_no_reward_decides_have_neither_passed_nor_failed(
    write_task: WriteTask, run_tasks: RunTasks, options: tuple[str, ...]
) -> None:
    write_task("a", 3)
    arguments = ("-v", "--junitxml=junit.xml", "--evocode-fail-under=100", *options)
    session = resume_without_rule(run_tasks, *arguments, undecided=(1, 2))
    assert (session.outcomes["undecided"], session.outcomes["passed"]) == (2, 1)
    assert session.exit_status == 0, "of what is decided everything passed"
    session.lacks("UNDECIDED*")
    session.has("*::round-1 UNDECIDED*" if options != ("-n2",) else "*UNDECIDED*")
    for line in (
        "a, oracle, round-1, round-2: reward.json has several rewards (style, tests) and none named 'reward'*",
        "a      u  u  .",
        "2 rounds are undecided for oracle*",
        "mean rewards of oracle*: reward 33.3, style 33.3, tests 66.7",
    ):
        session.has(line)
    record = session.record()
    assert [each.outcome for each in record.rounds] == ["undecided", "undecided", "passed"]
    assert record.rounds[0].verdict is not None
    assert (record.rounds[0].verdict.reward, record.rounds[0].verdict.rewards) == (None, {"tests": 1.0, "style": 0.5})
    verifier = session.attempt() / "steps/round-1/verifier"
    assert json.loads((verifier / "reward.json").read_text()) == {"tests": 1.0, "style": 0.5}
    assert not (verifier / "reward.txt").exists()
    assert 'message="undecided: reward.json has several' in Path("junit.xml").read_text()


@pytest.mark.parametrize("options", [("-rA",), ("-ra",), ("-ru",), ("-rNu",), ("-rA", "-n2")])
@pytest.mark.matrix
def test_the_short_summary_lists_undecided_rounds_where_it_is_asked_to(
    write_task: WriteTask, run_tasks: RunTasks, options: tuple[str, ...]
) -> None:
    write_task("a", 2)
    session = resume_without_rule(run_tasks, *options)
    session.has(
        "*= short test summary info =*",
        *(["PASSED tasks/a/task.toml::oracle::round-2"] if "-rA" in options else []),
        "UNDECIDED tasks/a/task.toml::oracle::round-1 - reward.json has several rewards (style, tests) and none *",
        "*= 1 passed, 1 undecided in *",
    )
    assert session.text.count("short test summary info") == 1
    session.lacks("SKIPPED*")


@pytest.mark.parametrize("options", [("-rs",), ("-rAN",), ("-rp",)])
@pytest.mark.matrix
def test_the_short_summary_lists_no_undecided_rounds_otherwise(
    write_task: WriteTask, run_tasks: RunTasks, options: tuple[str, ...]
) -> None:
    write_task("a", 1)
    session = resume_without_rule(run_tasks, *options)
    assert session.outcomes == {"undecided": 1}
    session.lacks("UNDECIDED*")


def test_a_score_that_no_reward_decides_reaches_no_bound(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = resume_without_rule(run_tasks, "--evocode-fail-under=0")
    assert session.exit_status == 1
    session.has("--evocode-fail-under=0: not reached with a Dataset Score of n/a")


def test_a_min_reward_holds_for_each_of_several_rewards(write_task: WriteTask, run_tasks: RunTasks) -> None:
    leasts = {
        "reached": "{ tests = 1, style = 0.5 }",
        "missed": "{ tests = 1, style = 0.6 }",
        "any": "0.1",
        "no": "0.6",
    }
    for name, least in leasts.items():
        write_task(name, 2, test={1: SEVERAL, 2: SEVERAL}, step={1: f"min_reward = {least}"})
    session = run_tasks("tasks")
    assert {name: [each.outcome for each in session.record(name).rounds] for name in leasts} == {
        "reached": ["failed", "failed"],
        "missed": ["failed", "not reached"],
        "any": ["failed", "failed"],
        "no": ["failed", "not reached"],
    }


PRIOR = json.dumps(
    {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "somebody", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "You are somebody else."},
            {"step_id": 2, "source": "agent", "message": "I look around."},
            {
                "step_id": 3,
                "source": "agent",
                "message": "",
                "tool_calls": [
                    {"tool_call_id": "call.1", "function_name": "fs.read", "arguments": {"path": "word"}},
                    {"tool_call_id": "call.2", "function_name": "fs.read", "arguments": {}},
                ],
                "observation": {"results": [{"source_call_id": "call.1", "content": "The word is cormorant."}]},
            },
            {"step_id": 4, "source": "user", "message": [{"type": "text", "text": "Remember the word."}]},
        ],
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["openai/gpt-5.4", "anthropic/claude-opus-4-8"])
@pytest.mark.matrix
def test_a_model_goes_on_from_the_conversation_of_the_task(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-tests")
    suite = "grep -qx cormorant word.txt; echo $((1 - $?)) > /logs/verifier/reward.txt"
    write_task("a", 1, test={1: suite}, files={"steps/round-1/trajectory.json": PRIOR})
    heard: list[str] = []

    def remembers(asked: Asked) -> Step:
        heard.append(str(asked))
        word = re.search(r"The word is (\w+)", heard[-1])
        return Say("Done.") if len(heard) > 1 else Run(f"echo {word[1] if word else 'forgotten'} > word.txt")

    with ModelServer(remembers) as server:
        session = run_tasks(*at(server, spec), "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    assert "Remember the word." in heard[0]
    assert "You are somebody else." not in heard[0]


def test_an_agent_that_cannot_begin_from_a_conversation_refuses_the_task(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    task = write_task("a", 2, files={"steps/round-2/trajectory.json": PRIOR})
    assert run_tasks("tasks").outcomes == {"passed": 2}
    pytester.makeconftest(
        """
        from pytest_evocode.agents import RoundTranscript

        class Other:
            name = "other"

            def run_round(self, context):
                return RoundTranscript()

        def pytest_evocode_make_agent(name):
            return Other() if name == "other" else None
        """
    )
    session = run_tasks("tasks", agent="other")
    assert session.outcomes == {"errors": 1, "skipped": 1}
    session.has(f"*{task}/steps/round-2/trajectory.json: the round begins from this conversation, and other can begin*")
    (task / "steps/round-2/trajectory.json").write_text("{}")
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1, "skipped": 1}
    session.has(f"*{task}/steps/round-2/trajectory.json: this is not an ATIF trajectory: *agent*")
