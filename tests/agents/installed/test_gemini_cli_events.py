"""What Gemini CLI's stream of events comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.gemini_cli import GeminiCliReader
from tests.agents.installed.conftest import Told, answered

Tell = Callable[..., Told]
INIT = {"type": "init", "session_id": "48a20d67-cc45", "model": "gemini-x"}
END = {"type": "result", "status": "success", "stats": {"total_tokens": 260}}


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
        END,
    )
    first, last = found.steps
    assert (first["message"], len(first["tool_calls"])) == ("I look.", 2)
    assert first["tool_calls"][0]["arguments"] == {"command": "ls"}
    assert [each["content"] for each in first["observation"]["results"]] == ["a", "/app"]
    assert last["message"] == found.reader.final == "Done."
    assert found.reader.session == "48a20d67-cc45"


def test_a_reply_of_another_model_than_was_asked_says_so(told: Tell) -> None:
    found = told(GeminiCliReader, INIT, said("Done."), answered(100, model="gemini-2.5-flash"), END)
    (step,) = found.steps
    assert (step["model_name"], step["metrics"]["prompt_tokens"]) == ("gemini-2.5-flash", 100)


class Log:
    """A log that has an entry more each time that it is looked at."""

    def __init__(self, *entries: Any) -> None:
        self.entries = [*entries]

    def new(self) -> list[Any]:
        return [self.entries.pop(0)] if self.entries else []


@pytest.mark.parametrize("odd", [{"toolCalls": [7]}, {"toolCalls": [{"name": "run_shell_command"}]}, {"toolCalls": 1}])
def test_entries_of_the_log_of_another_form_are_left_out(told: Tell, odd: dict[str, Any]) -> None:
    class Logged(GeminiCliReader):
        _log: Any = Log({}, {"type": "gemini", "id": "0", **odd})

    assert len(told(Logged, INIT, call(1, command="ls"), result(1)).steps) == 1


def test_a_call_that_failed_has_its_message(told: Tell) -> None:
    failed = result(1, "", "error", error={"type": "T", "message": "denied"})
    found = told(GeminiCliReader, INIT, call(1, command="x"), failed)
    assert found.steps[0]["observation"]["results"][0]["content"] == "denied"


def test_a_turn_that_failed_is_an_error_in_the_providers_words(told: Tell) -> None:
    end = {"type": "result", "status": "error", "error": {"type": "Error", "message": "API key not valid"}}
    assert told(GeminiCliReader, INIT, end).reader.failure == "API key not valid"
