"""What Gemini CLI's stream of events comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pytest_evocode.agents.installed.gemini_cli import GeminiCliReader
from pytest_evocode.llm.prices import find_model_facts
from tests.agents.installed.conftest import Told

Tell = Callable[..., Told]
INIT = {"type": "init", "session_id": "48a20d67-cc45", "model": "gemini-x"}
STATS = {"total_tokens": 260, "input_tokens": 200, "output_tokens": 40, "cached": 100}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def call(number: int, **parameters: Any) -> dict[str, Any]:
    return {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": f"c{number}", "parameters": parameters}


def result(number: int, output: str = "", status: str = "success", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": f"c{number}", "status": status, "output": output, **more}


def test_pieces_of_text_and_the_calls_after_them_are_one_step(told: Tell) -> None:
    found = told(
        GeminiCliReader,
        INIT,
        {"type": "message", "role": "user", "content": "Do it."},
        said("I "),
        said("look."),
        call(1, command="ls"),
        call(2, command="pwd"),
        result(1, "a"),
        result(2, "/app"),
        said("Done."),
        {"type": "result", "status": "success", "stats": STATS},
    )
    first, last = found.steps
    assert (first["message"], len(first["tool_calls"])) == ("I look.", 2)
    assert first["tool_calls"][0]["arguments"] == {"command": "ls"}
    assert [each["content"] for each in first["observation"]["results"]] == ["a", "/app"]
    assert last["message"] == found.reader.final == "Done."
    assert found.between == [False] * 7 + [True] * 2 + [False]
    assert found.reader.session == "48a20d67-cc45"


def test_the_tokens_of_the_turn_count_its_thoughts(told: Tell) -> None:
    found = told(GeminiCliReader, INIT, said("Done."), {"type": "result", "status": "success", "stats": STATS})
    cost = (100 * 1 + 100 * 0.5 + 60 * 10) / 1e6
    assert found.used == {
        "prompt_tokens": 200,
        "cached_tokens": 100,
        "completion_tokens": 60,
        "cache_write_tokens": 0,
        "reasoning_tokens": None,
        "cost_usd": pytest.approx(cost),
        "requests": None,
    }
    assert found.spending.spent.tokens == 260


class Logged(GeminiCliReader):
    """A reader whose log has an entry more each time that it looks."""

    log: ClassVar[list[Any]]

    def new_entries(self) -> list[Any]:
        return [self.log.pop(0)] if self.log else []


def test_a_turn_whose_log_comes_after_its_end_is_counted_once(told: Tell) -> None:
    Logged.log = [{}, {"type": "gemini", "id": "1", "tokens": {"input": 200, "output": 60}}]
    found = told(Logged, INIT, said("Done."), {"type": "result", "status": "success", "stats": STATS})
    assert (found.used["prompt_tokens"], found.used["completion_tokens"]) == (200, 60)


def test_a_reply_of_another_model_than_was_asked_says_so_and_has_its_price(told: Tell) -> None:
    tokens = {"input": 1_000_000, "output": 0}
    Logged.log = [{"type": "gemini", "id": "1", "model": "gemini-2.5-flash", "tokens": tokens}]
    found = told(Logged, INIT, said("Done."), {"type": "result", "status": "success", "stats": STATS})
    assert found.steps[0]["model_name"] == "gemini-2.5-flash"
    flash = find_model_facts("gemini-2.5-flash")
    assert flash is not None
    assert found.used["cost_usd"] == pytest.approx(flash.input)


@pytest.mark.parametrize("odd", [{"tokens": "many"}, {"tokens": {"input": "x", "output": "y"}}, {"toolCalls": [7]}])
def test_entries_of_the_log_of_another_form_are_left_out(told: Tell, odd: dict[str, Any]) -> None:
    Logged.log = [{}, {"type": "gemini", "id": "0", **odd}]
    assert len(told(Logged, INIT, call(1, command="ls"), result(1)).steps) == 1


def test_a_call_that_failed_has_its_message(told: Tell) -> None:
    failed = result(1, "", "error", error={"type": "T", "message": "denied"})
    found = told(GeminiCliReader, INIT, call(1, command="x"), failed)
    assert found.steps[0]["observation"]["results"][0]["content"] == "denied"


def test_a_turn_that_failed_is_an_error_in_the_providers_words(told: Tell) -> None:
    end = {"type": "result", "status": "error", "error": {"type": "Error", "message": "API key not valid"}}
    assert told(GeminiCliReader, INIT, end).reader.failure == "API key not valid"
