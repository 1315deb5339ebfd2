"""Rounds with a simulated user: what the agent asks is answered inside the round, recorded, and paid for apart."""

from __future__ import annotations

import pytest

from tests.acceptance.models import at, steps_of
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Asked, Fail, Run, Say, Step, Tokens
from tests.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

GPT = "openai/gpt-5"
USER = """
[metadata.evocode.users.round-1]
model = "openai/gpt-5-mini"
notes = "The line is line-1, in log.txt. The secret word is heron."
answers = 2
"""


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def asking(asked: Asked) -> Step:
    """An agent that asks twice before it works, and the user."""
    counted = Tokens(prompt=100, completion=5)
    if asked.model == "gpt-5-mini":
        assert "The secret word is heron." in asked.system
        questions = asked.said[-1].count("# The engineer")
        return [Say("It is line-1." if questions == 1 else "In log.txt."), counted]
    assert "heron" not in str(asked.body)  # The notes are the user's alone.
    said = " ".join(asked.said)
    if "It is line-1." not in said:
        return [Say("I looked around.\n\nWhich line do you mean? I wait."), counted]
    if "In log.txt." not in said:
        return [Say("And in which file?"), counted]
    if asked.replies == 2:
        return [Run("echo line-1 >> log.txt"), counted]
    return [Say("Done. Anything else?"), counted]


def test_what_the_agent_asks_is_answered_in_the_round_if_it_has_a_user_who_is_paid_apart(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 1, toml=USER)
    write_task("alone", 1)
    with ModelServer(asking) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        assert [asked.model for asked in server.asked].count("gpt-5-mini") == 2  # No third answer.
    assert session.outcomes == {"passed": 1, "failed": 1}
    # Without a user nobody answers.
    [alone] = session.record("alone", "gpt-5").rounds
    assert alone.usage is not None
    assert (alone.usage.requests, alone.user_usage) == (1, None)
    [record] = session.record(agent="gpt-5").rounds
    assert record.usage is not None
    assert record.user_usage is not None
    assert (record.usage.requests, record.user_usage.requests) == (4, 2)
    steps = steps_of(session, "round-1", "gpt-5")
    told = [step["extra"]["evocode"]["simulated_user"] for step in steps if "simulated_user" in str(step.get("extra"))]
    assert [(each["answer"], each["model"]) for each in told] == [
        ("It is line-1.", "openai/gpt-5-mini"),
        ("In log.txt.", "openai/gpt-5-mini"),
    ]
    assert [step["message"] for step in steps if step["source"] == "user"][1:] == ["It is line-1.", "In log.txt."]


@pytest.mark.nightly
def test_a_round_that_ends_with_an_error_says_what_its_user_used(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 1, toml=USER)
    with ModelServer(lambda asked: Fail(401, "no") if "It is line-1." in asked.said else asking(asked)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
    [record] = session.record(agent="gpt-5").rounds
    assert record.outcome == "error"
    assert record.user_usage is not None
    assert record.user_usage.requests == 1


def test_a_user_that_cannot_be_asked_is_refused_before_a_container_starts(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, toml=USER.replace("openai/gpt-5-mini", "anthropic/claude-opus-4-5"))
    session = run_tasks("tasks", agent="nop")
    assert session.outcomes == {"errors": 1}
    session.has("*[[]metadata.evocode.users.round-1]: anthropic/claude-opus-4-5 needs a key: set ANTHROPIC_API_KEY*")


@pytest.mark.nightly
def test_a_killed_session_pays_for_no_answer_twice(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 1, toml=USER)
    kills = """
        import os, signal
        from pathlib import Path
        from pytest_evocode.trajectories.recorder import Recorder

        HERE = Path(__file__).parent
        observe = Recorder.observe

        def killing(self, *arguments):
            os.kill(os.getpid(), signal.SIGKILL)

        if (HERE / "kill").exists():
            Recorder.observe = killing
    """
    pytester.makeconftest(kills)
    (pytester.path / "kill").touch()
    with ModelServer(asking) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        arguments = [*at(server, GPT), "tasks"]
        assert run_tasks(*arguments, agent=None, subprocess=True).exit_status == -9
        assert len(server.asked) == 5
        (pytester.path / "kill").unlink()
        session = run_tasks(*arguments, "--evocode-resume", agent=None)
        assert len(server.asked) == 6
    assert session.outcomes == {"passed": 1}
    record = session.record(agent="gpt-5").rounds[0]
    assert record.user_usage is not None
    assert record.user_usage.requests == 2
