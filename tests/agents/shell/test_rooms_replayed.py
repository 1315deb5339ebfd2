"""A turn that was broken off after room was made in its conversation, and goes on in another session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_evocode.agents.journal import Journal
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.shell.agent import ShellAgent, ShellOptions
from pytest_evocode.agents.shell.conversation import ELIDED, SUMMARISER, Conversation, put_summary
from pytest_evocode.agents.shell.model_turn import ModelTurn
from pytest_evocode.agents.shell.tools import BASH
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.errors import Cancelled, ConversationRefused, ModelFault
from pytest_evocode.llm.protocol import Ending, Message, ModelClient, Reply, RequestedCall, Tool
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder

WINDOW = 1000
OUTPUT = "x" * 10_000


@dataclass
class Client:
    """A model that does what ``answer`` returns or raises."""

    answer: Callable[[Sequence[Message]], Reply]
    asked: list[list[Message]] = field(default_factory=list)
    model: str = "a-model"
    context_tokens: int | None = WINDOW
    knows_price: bool = True

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        self.asked.append(list(conversation))
        return self.answer(conversation)


def reply(text: str, *, ending: Ending = "done") -> Reply:
    return Reply(text, usage=Usage(prompt_tokens=100, completion_tokens=1, cost_usd=0.5, requests=1), ending=ending)


def full(results: int) -> Conversation:
    """A conversation that takes 85 % of the window, nearly all of it for results of commands."""
    found = Conversation([Message("system", "You are an agent."), Message("user", "A request.")], filled=850)
    for number in range(results):
        found.add(Message("assistant", "I look.", (RequestedCall(f"c{number}", "bash", {"command": "ls"}),)))
        found.add(Message("tool", OUTPUT, call_id=f"c{number}"))
    return found


def context_with(journal: Journal) -> RoundContext:
    return RoundContext(
        task=cast(Any, None),
        round=cast(Any, SimpleNamespace(name="round-1")),
        instruction="",
        environment=cast(Any, None),
        solution_env={},
        timeout=None,
        recorder=Recorder(AgentInfo(name="shell", version="1"), "a-session"),
        journal=journal,
    )


def turn_of(client: Client, conversation: Conversation, journal: Path) -> ModelTurn:
    context, model = context_with(Journal(journal)), cast(ModelClient, client)
    return ModelTurn(model, conversation, context, Deadline(None), tools=lambda: [BASH], compact_at=0.8)


def test_a_turn_that_was_stopped_while_the_model_was_asked_makes_no_more_room_than_it_did(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def stopped(conversation: Sequence[Message]) -> Reply:
        raise Cancelled("the session was stopped")

    before = Client(stopped)
    with pytest.raises(Cancelled):
        turn_of(before, full(9), journal).ask()
    [sent] = before.asked
    assert sum(message.text == ELIDED for message in sent) == 4

    after = Client(lambda conversation: reply("Done."))
    turn_of(after, full(9), journal).ask()
    assert after.asked == [sent]


def test_what_a_reply_used_that_broke_off_is_paid_for_once(tmp_path: Path) -> None:
    lost = Usage(prompt_tokens=70, completion_tokens=1, cost_usd=0.25, requests=1, at_least=True)

    class BreakingClient(Client):
        def take_lost(self) -> Usage | None:
            return lost if len(self.asked) == 1 else None

    def ask_twice() -> tuple[Client, Recorder]:
        client, context = (
            BreakingClient(lambda conversation: reply("I look.")),
            context_with(Journal(tmp_path / "journal")),
        )
        conversation = Conversation([Message("user", "A request.")])
        turn = ModelTurn(
            cast(ModelClient, client), conversation, context, Deadline(None), tools=lambda: [BASH], compact_at=0.8
        )
        turn.ask()
        turn.ask()
        return client, context.recorder

    before, paid = ask_twice()
    after, replayed = ask_twice()
    assert (len(before.asked), len(after.asked)) == (2, 0)
    assert replayed.usage == paid.usage
    assert paid.usage is not None
    assert (paid.usage.prompt_tokens, paid.usage.cost_usd, paid.usage.at_least) == (270, 1.25, True)
    assert replayed.spending.spent == paid.spending.spent


def test_a_reply_that_the_provider_refuses_to_see_again_stays_in_words(tmp_path: Path) -> None:
    def answer(conversation: Sequence[Message]) -> Reply:
        if any(message.role == "assistant" for message in conversation):
            raise ConversationRefused("a name in it is wrong")
        return reply("Done.")

    first, again = Client(answer), Client(answer)
    for client in (first, again):
        conversation = full(2)
        conversation.filled = 0
        conversation.messages[2:4] = []  # One reply is left, with its result.
        turn_of(client, conversation, tmp_path / "journal").ask()
        assert [message.role for message in conversation] == ["system", "user", "user", "assistant"]
        told = conversation.messages[2]
        assert told.is_nudge
        assert all(each in told.text for each in ("I look.", "[runs bash]", '{"command": "ls"}', OUTPUT))
    assert (len(first.asked), len(again.asked)) == (2, 0)


def test_what_is_refused_without_any_reply_is_the_providers_fault(tmp_path: Path) -> None:
    def refuse(conversation: Sequence[Message]) -> Reply:
        raise ConversationRefused("nothing of it is liked")

    client = Client(refuse)
    with pytest.raises(ModelFault, match="nothing of it is liked"):
        turn_of(client, full(1), tmp_path / "journal").ask()
    assert len(client.asked) == 2  # With the reply and without.


def test_room_is_made_after_a_reply_that_filled_the_window(tmp_path: Path) -> None:
    endings: list[Ending] = ["context", "done"]
    client = Client(lambda conversation: reply("I look.", ending=endings.pop(0)), context_tokens=None)
    conversation = full(9)
    turn = turn_of(client, conversation, tmp_path / "journal")
    turn.ask()
    conversation.add(Message("user", "Go on.", is_nudge=True))
    turn.ask()
    elided = [sum(message.text == ELIDED for message in asked) for asked in client.asked]
    assert elided == [0, 7]  # All but the last two.


def test_a_summary_that_the_model_refuses_to_write_takes_the_place_of_nothing(tmp_path: Path) -> None:
    def answer(conversation: Sequence[Message]) -> Reply:
        if conversation[0].text == SUMMARISER:
            return reply("I cannot help with that.", ending="refused")
        return reply("Done.")

    conversation = Conversation([Message("system", "You are an agent."), Message("user", "A request.")], filled=900)
    for number in range(30):
        conversation.add(Message("assistant", f"I look at {number}."))
        conversation.add(Message("user", "Go on."))
    client = Client(answer)
    turn_of(client, conversation, tmp_path / "journal").ask()
    assert len(client.asked) == 2
    assert "A request." in [message.text for message in client.asked[-1]]
    assert "I cannot help with that." not in str(client.asked[-1])


def test_the_answer_to_a_question_does_not_take_the_place_of_the_request_that_was_asked_about() -> None:
    client = Client(lambda conversation: reply("Done."))
    agent = ShellAgent(cast(ModelClient, client), ShellOptions())
    conversation = Conversation([Message("system", "You are an agent."), Message("user", "The request.")])
    conversation.add(Message("assistant", "Which one?"))
    agent.load_state({"conversation": conversation.as_json(), "filled": 0})
    agent.run_round(replace(context_with(Journal()), instruction="No preference.", goes_on=True))
    after = Conversation.from_json(agent.save_state()["conversation"])
    for number in range(2):
        after.add(Message("assistant", f"I look at {number}."))
    put_summary(after, "All is well.")
    assert "The request." in [message.text for message in after]
