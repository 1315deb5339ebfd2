"""What the recorder counts, whatever the order in which it comes to know of it."""

from __future__ import annotations

from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall, actions_of
from pytest_evocode.trajectories.recorder import Action, Recorder

PAID = Usage(prompt_tokens=900, cached_tokens=0, completion_tokens=100, cost_usd=0.25, requests=1)


def recorder(spending: AttemptSpending) -> Recorder:
    return Recorder(AgentInfo(name="somebody", version="1"), "session", spending=spending)


def test_what_a_reply_cost_that_nobody_heard_is_paid_all_the_same() -> None:
    spending = AttemptSpending()
    silent = recorder(spending)
    silent.say("user", "Do it.")
    silent.amend(usage=PAID)
    assert silent.usage == PAID
    assert (spending.spent.tokens, spending.spent.cost_usd) == (1000, 0.25)


def test_a_total_that_comes_last_is_charged_as_far_as_it_is_more() -> None:
    spending = AttemptSpending()
    told = recorder(spending)
    told.reply("Done.", usage=PAID)
    told.settle(PAID.model_copy(update={"prompt_tokens": 1900, "cost_usd": 0.5}))
    assert (spending.spent.tokens, spending.spent.cost_usd, spending.spent.turns) == (2000, 0.5, 1)


def test_what_is_known_of_single_tokens_stays_when_more_usage_becomes_known() -> None:
    recorder = Recorder(AgentInfo(name="a", version="0"), "session")
    known = {"prompt_token_ids": (1, 2), "completion_token_ids": (7,), "logprobs": (-0.5,)}
    recorder.reply("Done.", usage=Usage(prompt_tokens=2, completion_tokens=1), tokens=known)
    recorder.amend(usage=Usage(prompt_tokens=3, completion_tokens=1))
    (step,) = recorder.trajectory().steps
    assert step.metrics is not None
    assert (step.metrics.prompt_tokens, step.metrics.completion_token_ids) == (5, (7,))
    assert step.metrics.model_dump(include=set(known)) == known


def test_an_exit_code_that_becomes_known_after_the_result_is_its_actions() -> None:
    recorder = Recorder(AgentInfo(name="a", version="0"), "session")
    recorder.reply("", [ToolCall(tool_call_id=each, function_name="bash") for each in ("c1", "c2")])
    recorder.observe("c1", "no", Action())
    recorder.observe("c2", "a", Action(exit_code=0))
    recorder.exited({"c1": 3, "c9": 1})
    assert [action["exit_code"] for action in actions_of(recorder.trajectory().steps[0])] == [3, 0]
