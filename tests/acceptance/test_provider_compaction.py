"""Conversations that the model's provider makes shorter: what is recorded and paid, and sessions that are killed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.models import at, steps_of
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.acceptance.test_long_conversations import KILLS, SUMMARY, WINDOW
from tests.model_scripts import Asked, Run, Say, Step, Think, Tokens
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

OPTIONS = [
    f"--evocode-agent-option=context_tokens={WINDOW}",
    "--evocode-agent-option=compaction=provider",
    "--evocode-agent-option=prices=prices.toml",
]
PRICES = """
[models.claude-opus-5-5]
input = 5
cached_input = 0.5
output = 25
[models.gpt-5]
input = 1
output = 10
"""
#: Models, each with further options: one whose thoughts are bound to what was said before them, and one by Responses.
OPUS: tuple[str, list[str]] = ("anthropic/claude-opus-5-5", [])
GPT = ("openai/gpt-5", ["--evocode-agent-option=api=responses"])
each_model = pytest.mark.parametrize(("spec", "options"), [OPUS, GPT], ids=["messages", "responses"])
REQUEST = "Append line-1 to log.txt. Mind the cormorant."


@pytest.fixture(autouse=True)
def _prices(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", prices=PRICES)


def needs_room(asked: Asked) -> Step:
    """A model that says so much that room is needed, and then does what it was asked for."""
    counted = Tokens(prompt=len(json.dumps(asked.body)) // 4, completion=10)
    if asked.compacts:
        return [Say(SUMMARY), counted]
    if asked.summary:
        assert asked.summary == SUMMARY
        assert asked.system
        assert "Mind the cormorant." in " ".join(asked.said)  # The newest request is never left out.
        done = "here it ends" in asked.last_result
        return [Say("Done.") if done else Run("echo line-1 >> log.txt; echo here it ends"), counted]
    return [Think(f"Hm {len(asked.results)}."), Say("I think about it. " * 40), Run(f"echo {asked.replies}"), counted]


def notes(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        step["extra"]["evocode"]
        for step in steps
        if step["source"] == "system" and "compaction" in (step.get("extra") or {}).get("evocode", {})
    ]


@each_model
@pytest.mark.matrix
def test_what_the_provider_says_it_did_is_recorded_and_paid_for(
    write_task: WriteTask, run_tasks: RunTasks, spec: str, options: list[str]
) -> None:
    write_task("a", 1, files={"steps/round-1/instruction.md": REQUEST})
    with ModelServer(needs_room, context_tokens=WINDOW) as server:
        session = run_tasks(*at(server, spec), *options, *OPTIONS, "tasks", agent=None)
        counted = server.counted
        refused = [asked for asked in server.asked if "bound to a different" in json.dumps(asked.body)]
    name = spec.partition("/")[2]
    assert session.outcomes == {"passed": 1}
    steps = steps_of(session, "round-1", name)
    [note] = notes(steps)
    assert note["compaction"] == "provider"
    assert note.get("summary", "") == (SUMMARY if spec == OPUS[0] else "")
    assert ("encrypted" in note) == (spec == GPT[0])
    assert note["usage"]["requests"] == 1
    assert refused == []
    assert not any("thinking_dropped" in (step.get("extra") or {}).get("evocode", {}) for step in steps)
    usage = session.record(agent=name).rounds[0].usage
    assert usage is not None
    assert usage.requests == len(counted)
    assert usage.prompt_tokens == sum(each.prompt for each in counted)
    assert usage.completion_tokens == sum(each.completion for each in counted)
    prices = {"claude-opus-5-5": (5, 25), "gpt-5": (1, 10)}[name]
    cost = (usage.prompt_tokens * prices[0] + usage.completion_tokens * prices[1]) / 1e6
    assert usage.cost_usd == pytest.approx(cost)


@each_model
@pytest.mark.nightly
def test_a_killed_session_neither_asks_nor_pays_for_it_twice(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, spec: str, options: list[str]
) -> None:
    write_task("a", 1, files={"steps/round-1/instruction.md": REQUEST})
    pytester.makeconftest(KILLS)
    (pytester.path / "kill").touch()
    with ModelServer(needs_room, context_tokens=WINDOW) as server:
        arguments = [*at(server, spec), *options, *OPTIONS, "tasks"]
        assert run_tasks(*arguments, agent=None, subprocess=True).exit_status == -9
        before = list(server.asked)
        (pytester.path / "kill").unlink()
        session = run_tasks(*arguments, "--evocode-resume", agent=None)
        [last] = server.asked[len(before) :]
        counted = server.counted
    assert session.outcomes == {"passed": 1}
    assert sum(asked.compacts for asked in before) == 1
    key = "messages" if spec == OPUS[0] else "input"
    sent = [_plain(message) for message in before[-1].body[key]]
    assert [_plain(message) for message in last.body[key]][: len(sent)] == sent
    name = spec.partition("/")[2]
    assert len(notes(steps_of(session, "round-1", name))) == 1
    usage = session.record(agent=name).rounds[0].usage
    assert usage is not None
    assert usage.prompt_tokens == sum(each.prompt for each in counted)


def _plain(message: Any) -> Any:
    """A message without the marks of what is to be cached, which move on."""
    if isinstance(message, dict):
        return {name: _plain(each) for name, each in message.items() if name != "cache_control"}
    return [_plain(each) for each in message] if isinstance(message, list) else message


@pytest.mark.nightly
def test_where_the_provider_refuses_to_the_agent_makes_room(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, files={"steps/round-1/instruction.md": REQUEST})

    def answer(asked: Asked) -> Step:
        counted = Tokens(prompt=len(json.dumps(asked.body)) // 4, completion=10)
        if asked.compacts:
            return [counted]
        if "left out to make room" in json.dumps(asked.body):
            return [
                Say("Done.") if "it is done" in asked.last_result else Run("echo line-1 >> log.txt; echo it is done"),
                counted,
            ]
        return [Think("Hm."), Run("seq 900"), counted]

    with ModelServer(answer, context_tokens=WINDOW) as server:
        session = run_tasks(*at(server, OPUS[0]), *OPTIONS, "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    steps = steps_of(session, "round-1", "claude-opus-5-5")
    told = notes(steps)
    assert told[0] | {"usage": 0, "request_id": 0} == {
        "compaction": "provider", "stop_reason": "refusal", "ending": "refused", "usage": 0, "request_id": 0,
    }  # fmt: skip
    # What the agent leaves out is before thoughts of the model's, which it refuses to see again then.
    dropped = [step["extra"]["evocode"].get("thinking_dropped", 0) for step in steps if step["source"] == "agent"]
    assert dropped[0] == 0
    assert dropped[-1] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["compaction=provider"],
         "gpt-5: compaction=provider is not possible: Chat Completions has no compaction of its own; "
         "set compaction=agent"),
        (["compaction=provider", "api=responses"],
         "gpt-5: compaction=provider is not possible: the server at {url}/v1 has no /responses/compact; "
         "set compaction=agent"),
        (["compaction=provider", "api=responses", "compact_at=0"],
         "compact_at=0 shortens nothing, whatever compaction says; leave one of them out"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_before_a_container_starts(
    write_task: WriteTask, run_tasks: RunTasks, options: list[str], message: str
) -> None:
    write_task("a", 1)
    given = [f"--evocode-agent-option={option}" for option in options]
    with ModelServer([], compacts=False) as server:
        session = run_tasks(*at(server, GPT[0]), *given, "tasks", agent=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert message.format(url=server.url) in " ".join(session.text.split())
