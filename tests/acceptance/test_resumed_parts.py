"""``--evocode-resume`` that does not fit, or that fits a part of a run: the rest of the run stays as it was."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from tests.acceptance.models import at, solver
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Tokens
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

GPT = "openai/gpt-5"
BOTH = ("--evocode-agent=oracle", "--evocode-agent=nop")
# Ctrl-C when the round that a file names is set up.
INTERRUPTS = """
from pathlib import Path

def pytest_runtest_setup(item):
    if item.nodeid.endswith(Path(__file__).with_name("interrupt").read_text()):
        raise KeyboardInterrupt
"""


def interrupted(pytester: pytest.Pytester, run_tasks: RunTasks, place: str, *arguments: str) -> Session:
    """A session that somebody ends when a round is set up; those that follow come to their ends."""
    pytester.makeconftest(INTERRUPTS)
    (pytester.path / "interrupt").write_text(place)
    session = run_tasks(*arguments, "tasks", agent=None, subprocess=True, replay=False)
    assert session.exit_status == pytest.ExitCode.INTERRUPTED
    (pytester.path / "interrupt").write_text("none")
    return session


def run_file(session: Session) -> bytes:
    (path,) = (session.results / "runs").glob("*.json")
    return path.read_bytes()


def scores_of(session: Session) -> dict[str, object]:
    return {agent: scores["dataset_score"] for agent, scores in session.run.scores.items()}


def shown() -> tuple[dict[str, float], set[str]]:
    """The Dataset Score of each agent in ``evocode results``, and the states of what is in no score."""
    found = json.loads(CliRunner().invoke(main, ["results", "--json"]).stdout)
    scores = {row["agent"]: row["scores"]["dataset_score"] for row in found["rows"]}
    return scores, {f"{each['task']} {each['agent']} {each['state']}" for each in found["unscored"]}


@pytest.mark.usefixtures("model_sdks")
def test_a_resume_with_other_options_is_refused_before_anything_begins_and_changes_nothing(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    for name, price in (("dear", 1000.0), ("dearer", 2000.0)):
        prices = {"models": {"gpt-5": {"input": price, "output": 0.0}}}
        (pytester.path / f"{name}.json").write_text(json.dumps(prices))
    write_task("a", 2)
    with ModelServer(solver(2), tokens=Tokens(prompt=1000, completion=50)) as server:
        options = [*at(server, GPT), "--evocode-attempts=3", "tasks"]
        dear, dearer = (f"--evocode-agent-option=prices={name}.json" for name in ("dear", "dearer"))
        first = run_tasks(*options, dear, "--evocode-budget=total-cost=5", agent=None)
        assert first.run.waiting
        before, asked = run_file(first), len(server.asked)
        for others, why in (
            (
                [dear, "--evocode-agent-option=temperature=0.5"],
                "no options.temperature against options.temperature 0.5",
            ),
            ([dearer], "options.prices.* against *"),
        ):
            refused = run_tasks("--evocode-resume", *options, *others, agent=None)
            assert refused.exit_status == pytest.ExitCode.USAGE_ERROR
            refused.result.stderr.fnmatch_lines(
                [f"*gpt-5 of the run {first.run.run} was begun with other options or as another agent, {why} now; *"]
            )
            assert "evocode benchmark" not in refused.text
            assert (run_file(first), len(server.asked)) == (before, asked)
        again = run_tasks("--evocode-resume", *options, dear, agent=None)
        assert again.outcomes == {"passed": 6}


def test_auto_begins_a_run_where_that_of_the_same_agent_is_of_other_task_contents(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    task = write_task("a", 1)
    first = run_tasks("tasks")
    before = run_file(first)
    with (task / "steps/round-1/instruction.md").open("a") as file:
        file.write("And more.\n")
    refused = run_tasks("--evocode-resume", "tasks")
    assert refused.exit_status == pytest.ExitCode.USAGE_ERROR
    refused.result.stderr.fnmatch_lines(["*a__a1: the task's files have changed since this attempt was begun*"])
    assert run_file(first) == before
    assert run_tasks("--evocode-resume=auto", "tasks").outcomes == {"passed": 1}
    assert len(list((first.results / "runs").glob("*.json"))) == 2


def test_a_resume_of_one_agent_leaves_what_was_interrupted_of_the_other_out_of_all_scores(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    write_task("b", 1)
    ended = interrupted(pytester, run_tasks, "b/task.toml::oracle::round-1", *BOTH)
    ended.has(f"evocode: 2 attempts are unfinished; continue with --evocode-resume={ended.run.run} *")
    part = run_tasks("--evocode-resume", "tasks")
    assert part.outcomes == {"passed": 2}
    assert part.run.interrupted
    assert {agent: scores["dataset_score"] for agent, scores in part.run.scores.items()} == {
        "oracle": 100.0,
        "nop": 0.0,
    }
    assert shown() == ({"oracle": 100.0, "nop": 0.0}, {"b nop never started"})
    of_task = run_tasks("--evocode-resume", *BOTH, "tasks/a", agent=None)
    assert of_task.run.interrupted
    whole = run_tasks("--evocode-resume", *BOTH, "tasks", agent=None)
    assert not whole.run.interrupted
    assert shown() == ({"oracle": 100.0, "nop": 0.0}, set())


def test_an_attempt_that_cannot_go_on_stays_unfinished(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, solve={3: "sleep 600"})
    session = interrupted(pytester, run_tasks, "round-3", "--evocode-agent=oracle")
    (session.attempt() / "state.json").write_text("{")
    assert run_tasks("--evocode-resume", "tasks").exit_status == pytest.ExitCode.TESTS_FAILED
    assert session.run.interrupted
    assert shown() == ({}, {"a oracle unfinished"})


def test_scores_of_a_run_keep_the_agents_and_tasks_that_a_resume_leaves_out(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    write_task("a", 2, solve={2: f"[ -e {pytester.path}/mended ] || exit 3"})
    write_task("b", 1, test={1: "echo 0 > /logs/verifier/reward.txt"})
    first = run_tasks(*BOTH, "tasks", agent=None)
    assert scores_of(first) == {"oracle": 25.0, "nop": 0.0}
    assert scores_of(run_tasks("--evocode-resume", "tasks/a")) == {"oracle": 25.0, "nop": 0.0}


def test_a_resume_that_finds_nothing_to_go_changes_nothing_and_says_so(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, test={2: "echo 0 > /logs/verifier/reward.txt"})
    first = run_tasks("tasks")
    before = run_file(first)
    again = run_tasks("--evocode-resume", "tasks", "--evocode-fail-under=10")
    again.has(
        "evocode: results evocode-results, the newest unfinished run of what is selected, else the newest",
        "evocode: resuming *: 2 turns kept, nothing to go; what was recorded is reported again",
    )
    assert again.exit_status == pytest.ExitCode.OK
    assert run_file(first) == before
    assert run_tasks("--evocode-resume", "tasks").exit_status == first.exit_status == pytest.ExitCode.TESTS_FAILED


def test_a_session_that_is_interrupted_before_its_first_attempt_says_how_to_go_on(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    session = interrupted(pytester, run_tasks, "a/task.toml::oracle::round-1", *BOTH)
    session.has(f"evocode: 2 attempts are unfinished; continue with --evocode-resume={session.run.run} *")
