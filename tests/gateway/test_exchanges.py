"""Exchanges in a journal: what they take, what they leave out, and how a later session goes on with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.gateway import Exchange
from pytest_evocode.gateway.replies import journal_entry, reply_of, tokens_in
from pytest_evocode.llm.budget import AttemptSpending
from tests.gateway.conftest import Program, each_api, route_to, whole_and_streamed
from tests.model_scripts import Asked, Run, Say
from tests.providers.exchanges import Step
from tests.providers.faults import Broken
from tests.providers.requests_by_hand import right
from tests.providers.server import KEY, ProviderServer

Start = Callable[..., Program]


def look(asked: Asked) -> Step:
    return [Say("I will look at the log, and at all that is beside it."), Run("cat log.txt")]


def longer(number: int, *, tool_result: str = "log.txt") -> dict[str, Any]:
    """A conversation of Messages with so many calls."""
    messages = [{"role": "user", "content": "Look at all of them, one after the other." * 20}]
    for at in range(number):
        call = {"type": "tool_use", "id": f"toolu_{at}", "name": "bash", "input": {"command": "ls"}}
        messages.append({"role": "assistant", "content": [call]})  # type: ignore[dict-item]
        result = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": tool_result}
        messages.append({"role": "user", "content": [result]})  # type: ignore[dict-item]
    return right("messages") | {"messages": messages, "metadata": {"user_id": "somebody"}}


@whole_and_streamed
@each_api
def test_a_later_session_gets_the_answers_that_were_paid_for(api: str, stream: bool, program: Start) -> None:
    with ProviderServer(look) as server:
        first = program(route_to(server, api))
        before = [first.ask(api, stream=stream) for _ in range(2)]
        kept = [Exchange.from_json(json.loads(json.dumps(journal_entry(each)))) for each in first.end()]
        assert [exchange.request for exchange in kept] == ["", ""]
        spending = AttemptSpending()
        later = program(route_to(server, api), earlier=kept, spending=spending)
        again = [later.ask(api, stream=stream) for _ in range(3)]
        exchanges = later.end()
        assert len(server.exchanges) == 3
    assert [answer for _, _, answer in again[:2]] == [answer for _, _, answer in before]
    assert [status for status, _, _ in again] == [200] * 3
    assert [exchange.replayed for exchange in exchanges] == [True, True, False]
    assert [exchange.usage for exchange in exchanges[:2]] == [exchange.usage for exchange in kept]
    assert spending.spent.turns == 3
    assert later.session.lost is None
    replies = [reply_of(exchange) for exchange in exchanges]
    assert all(reply is not None and reply.calls for reply in replies)


def test_an_answer_is_replayed_whatever_tools_gave_and_no_answer_is_replayed_for_another_question(
    program: Start,
) -> None:
    with ProviderServer(look) as server:
        first = program(route_to(server, "messages"))
        first.ask("messages", longer(2, tool_result="ended after 12 ms"))
        later = program(route_to(server, "messages"), earlier=first.end())
        later.ask("messages", longer(3, tool_result="ended after 12 ms"))
        later.ask("messages", longer(2, tool_result="ended after 13 ms"))
        assert len(server.exchanges) == 2
        assert [exchange.replayed for exchange in later.end()] == [False, True]


def test_a_broken_answer_is_not_replayed(program: Start) -> None:
    with ProviderServer(look, faults={1: Broken(after=4)}) as server:
        first = program(route_to(server, "messages"))
        with pytest.raises(Exception, match=r"IncompleteRead|reset"):
            first.ask("messages", stream=True)
        later = program(route_to(server, "messages"), earlier=first.end())
        assert later.ask("messages", stream=True)[0] == 200
        assert [exchange.replayed for exchange in later.end()] == [False]
    lost = later.session.lost
    assert lost is not None
    assert lost.at_least
    assert lost == first.session.usage


def test_no_record_has_a_key_wherever_the_program_found_it(program: Start) -> None:
    with ProviderServer(lambda asked: Say(f"The key is {KEY}.")) as server:
        asker = program(route_to(server, "messages"))
        body = right("messages") | {"system": f"Your key is {KEY} and your token {asker.session.token}."}
        asker.ask("messages", body)
        [exchange] = asker.end()
    written = json.dumps(exchange.as_json())
    assert KEY not in written
    assert asker.session.token not in written


def test_ids_and_log_probabilities_of_tokens_are_read_where_a_server_sends_them() -> None:
    chunk = {
        "prompt_token_ids": [1, 2, 3],
        "choices": [{"delta": {"content": "Hi"}, "token_ids": [7], "logprobs": {"content": [{"logprob": -0.5}]}}],
    }
    more = {"choices": [{"delta": {"content": "!"}, "token_ids": [8], "logprobs": {"content": [{"logprob": -1.0}]}}]}
    response = "".join(f"data: {json.dumps(each)}\n\n" for each in (chunk, more)) + "data: [DONE]\n\n"
    exchange = Exchange(
        number=1, api="chat", method="POST", path="/openai/v1/chat/completions", began="", seconds=1.0,
        status=200, streamed=True, response=response,
    )  # fmt: skip
    facts = tokens_in(exchange)
    assert (facts.prompt_ids, facts.completion_ids, facts.logprobs) == ((1, 2, 3), (7, 8), (-0.5, -1.0))
