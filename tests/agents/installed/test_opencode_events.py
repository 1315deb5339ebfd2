"""What the events of ``opencode run --format json`` come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.opencode import OpenCodeAgent, OpenCodeOptions, OpenCodeReader
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget
from tests.agents.installed.conftest import Told

Tell = Callable[..., Told]


def event(kind: str, **part: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1, "sessionID": "ses_1", "part": part}


def call(number: int, code: int = 0, **state: Any) -> dict[str, Any]:
    done = {"status": "completed", "input": {"command": "ls"}, "output": "a\n", "metadata": {"exit": code}}
    return event("tool_use", tool="bash", callID=f"c{number}", state={**done, **state})


def finish(cost: float = 0, reason: str = "stop", **tokens: Any) -> dict[str, Any]:
    counts = {"input": 90, "output": 20, "reasoning": 5, "cache": {"read": 10, "write": 0}}
    return event("step_finish", reason=reason, tokens={**counts, **tokens}, cost=cost)


def test_the_parts_of_an_answer_are_one_step_with_its_tokens(told: Tell) -> None:
    found = told(
        OpenCodeReader,
        event("step_start"),
        event("reasoning", text="Hm."),
        event("text", text="I look."),
        call(1, time={"start": 1000, "end": 3500}),
        call(2, code=2),
        finish(),
        event("step_start"),
        event("text", text="Done."),
        finish(),
    )
    first, last = found.steps
    assert (first["message"], first["reasoning_content"], len(first["tool_calls"])) == ("I look.", "Hm.", 2)
    assert [action["exit_code"] for action in found.actions] == [0, 2]
    assert first["extra"]["evocode"]["actions"][0]["seconds"] == 2.5
    cost = (90 * 1 + 10 * 0.5 + 25 * 10) / 1e6
    assert first["metrics"] == {
        "prompt_tokens": 100,
        "cached_tokens": 10,
        "completion_tokens": 25,
        "cost_usd": pytest.approx(cost),
        "extra": {"cache_write_tokens": 0, "reasoning_tokens": 5},
    }
    assert last["message"] == found.reader.final == "Done."
    assert (found.spending.spent.tokens, found.spending.spent.turns) == (250, 2)
    assert found.reader.session == "ses_1"


def test_a_cost_that_it_knows_is_taken_and_0_is_none(told: Tell) -> None:
    found = told(OpenCodeReader, event("step_start"), event("text", text="Done."), finish(cost=0.25))
    assert found.used == {
        "prompt_tokens": 100,
        "cached_tokens": 10,
        "completion_tokens": 25,
        "cache_write_tokens": 0,
        "reasoning_tokens": 5,
        "cost_usd": 0.25,
        "requests": 1,
    }


@pytest.mark.parametrize(
    ("reason", "ending", "refused"),
    [("stop", "done", ""), ("content-filter", "filtered", "content-filter"), ("other", "unknown", "")],
)
def test_why_a_reply_ended_is_on_its_step(told: Tell, reason: str, ending: str, refused: str) -> None:
    found = told(OpenCodeReader, event("step_start"), event("text", text="Done."), finish(reason=reason))
    assert found.steps[0]["extra"]["evocode"] == {"stop_reason": reason, "ending": ending}
    assert found.reader.refused == refused


def test_a_call_that_failed_has_its_error(told: Tell) -> None:
    found = told(OpenCodeReader, call(1, status="error", output=None, error="denied", metadata={}))
    assert found.steps[0]["observation"]["results"][0]["content"] == "denied"
    assert found.actions[0]["exit_code"] is None


def test_an_error_is_told_in_the_providers_words(told: Tell) -> None:
    error = {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "Unauthorized"}}}
    assert told(OpenCodeReader, error).reader.failure == "Unauthorized"


def test_a_model_without_a_provider_is_refused_and_the_key_is_the_providers() -> None:
    with pytest.raises(UsageError, match="opencode needs a model with its provider"):
        OpenCodeAgent("gpt-5.2", OpenCodeOptions()).check({}, Budget())
    agent = OpenCodeAgent("openrouter/some/model", OpenCodeOptions())
    agent.check({"OPENROUTER_API_KEY": "sk-0123456789"}, Budget())
    with pytest.raises(UsageError, match="OPENROUTER_API_KEY is not set"):
        agent.check({}, Budget())
