"""What each CLI says itself of its turn: its session, how it ended, and exit codes that its model is not told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_evocode.agents.installed.base import InstalledAgent, Told
from pytest_evocode.agents.installed.claude_code import ClaudeCodeAgent
from pytest_evocode.agents.installed.codex import CodexAgent
from pytest_evocode.agents.installed.gemini_cli import GeminiCliAgent
from pytest_evocode.agents.installed.opencode import OpenCodeAgent

AGENTS: tuple[type[InstalledAgent], ...] = (ClaudeCodeAgent, CodexAgent, GeminiCliAgent, OpenCodeAgent)
BEGUN: dict[type[InstalledAgent], Any] = {
    CodexAgent: {"type": "thread.started", "thread_id": "s-1"},
    GeminiCliAgent: {"type": "init", "session_id": "s-1", "model": "gemini-x"},
    OpenCodeAgent: {"type": "step_start", "sessionID": "s-1", "part": {}},
}


def told(kind: type[InstalledAgent], *lines: Any) -> Told:
    """What a CLI says that prints some lines."""
    printed = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    return kind("provider/model", kind.options_type())._read("\n".join(printed))


@pytest.mark.parametrize("kind", BEGUN)
def test_the_session_is_what_the_cli_calls_it_from_its_beginning_on(kind: type[InstalledAgent]) -> None:
    assert told(kind, "warning: no such thing", BEGUN[kind]) == Told(session="s-1")


def ended(**error: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, **error}


@pytest.mark.parametrize(
    ("kind", "last", "failure"),
    [
        (ClaudeCodeAgent, ended(result="API Error: 529"), "API Error: 529"),
        (ClaudeCodeAgent, ended(subtype="error_during_execution", errors=["No conversation"]), "No conversation"),
        (ClaudeCodeAgent, ended(subtype="error_of_tomorrow"), "it ended with error_of_tomorrow"),
        (CodexAgent, {"type": "turn.failed", "error": {"message": "401 Unauthorized"}}, "401 Unauthorized"),
        (GeminiCliAgent, {"type": "result", "status": "error", "error": {"message": "API key not valid"}},
         "API key not valid"),
        (GeminiCliAgent, {"type": "result", "status": "error"}, "it ended with an error"),
        (OpenCodeAgent, {"type": "error", "error": {"name": "APIError", "data": {"message": "Unauthorized"}}},
         "Unauthorized"),
        (OpenCodeAgent, {"type": "error", "error": {"name": "UnknownError"}}, "UnknownError"),
    ],
)  # fmt: skip
def test_why_it_failed_is_told_in_its_own_words(kind: type[InstalledAgent], last: Any, failure: str) -> None:
    assert told(kind, last) == Told(failure=failure)


@pytest.mark.parametrize(
    ("kind", "last", "stopped"),
    [
        (ClaudeCodeAgent, ended(subtype="error_max_turns"), "claude-code: max_turns reached"),
        (CodexAgent, {"type": "turn.failed", "error": {"message": "Incomplete, reason: max_output_tokens"}},
         "cut off: the model's last reply reached the limit of its tokens, at which codex ends"),
    ],
)  # fmt: skip
def test_at_a_limit_it_stopped_and_has_not_failed(kind: type[InstalledAgent], last: Any, stopped: str) -> None:
    assert told(kind, last) == Told(stopped=stopped)


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize(
    "line",
    [
        "", "no event", "[1]", "7", "null", '{"type": 7}', '{"type": "error"}', '{"type": "turn.failed", "error": 7}',
        '{"type": "tool_use", "part": {"callID": "c1", "state": {}}}', '{"type": "init"}', '{"type": "thread.started"}',
        "[" * 100_000, '{"type": "result"}', '{"type": "turn.completed", "usage": {"input_tokens": 7}}',
    ],
)  # fmt: skip
def test_a_line_of_another_form_says_nothing(kind: type[InstalledAgent], line: str) -> None:
    assert told(kind, line) == Told()


def test_opencode_alone_knows_how_commands_ended() -> None:
    done = {"status": "completed", "input": {"command": "ls"}, "output": "a\n", "metadata": {"exit": 2}}
    found = told(OpenCodeAgent, {"type": "tool_use", "part": {"tool": "bash", "callID": "c1", "state": done}})
    assert found.exit_codes == {"c1": 2}
