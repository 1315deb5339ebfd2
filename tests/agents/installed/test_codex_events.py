"""What the events of ``codex exec --json`` come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.codex import CodexReader
from tests.agents.installed.conftest import Told

Tell = Callable[..., Told]
Lines = list[dict[str, Any]]
BEGIN = ({"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"})


def item(moment: str, number: int, kind: str, **values: Any) -> dict[str, Any]:
    return {"type": f"item.{moment}", "item": {"id": f"item_{number}", "type": kind, **values}}


def command(number: int, line: str, code: int = 0, output: str = "") -> list[dict[str, Any]]:
    shown = {"command": f"/bin/bash -lc {line}", "aggregated_output": ""}
    ended = {**shown, "aggregated_output": output, "exit_code": code, "status": "completed" if code == 0 else "failed"}
    return [
        item("started", number, "command_execution", **shown, exit_code=None, status="in_progress"),
        item("completed", number, "command_execution", **ended),
    ]


def test_what_was_thought_and_said_belongs_to_the_next_call(told: Tell) -> None:
    found = told(
        CodexReader,
        *BEGIN,
        item("completed", 0, "error", message="Model metadata not found."),
        item("completed", 1, "reasoning", text="**Looking**"),
        item("completed", 2, "agent_message", text="I look."),
        *command(3, "'ls -a; false'", 1, "a\n"),
        item("completed", 4, "agent_message", text="Done."),
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 200, "cached_input_tokens": 100, "output_tokens": 30},
        },
    )
    first, last = found.steps
    assert (first["message"], first["reasoning_content"]) == ("I look.", "**Looking**")
    assert first["tool_calls"] == [
        {"tool_call_id": "item_3", "function_name": "shell", "arguments": {"command": "ls -a; false"}}
    ]
    assert first["observation"]["results"] == [{"source_call_id": "item_3", "content": "a\n"}]
    assert found.actions == [{"tool_call_id": "item_3", "exit_code": 1, "timed_out": False}]
    assert last["message"] == found.reader.final == "Done."
    cost = (100 * 1 + 100 * 0.5 + 30 * 10) / 1e6
    assert found.used == {
        "prompt_tokens": 200,
        "cached_tokens": 100,
        "completion_tokens": 30,
        "cache_write_tokens": 0,
        "reasoning_tokens": None,
        "cost_usd": pytest.approx(cost),
        "requests": None,
    }
    assert (found.spending.spent.tokens, found.spending.spent.turns) == (230, 2)
    assert found.reader.session == "t-1"


def test_calls_of_one_answer_are_one_step(told: Tell) -> None:
    (first, first_end), (second, second_end) = command(1, "one"), command(2, "two")
    found = told(CodexReader, *BEGIN, first, second, second_end, first_end)
    (step,) = found.steps
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["item_1", "item_2"]
    assert [action["tool_call_id"] for action in found.actions] == ["item_2", "item_1"]
    assert found.between == [False] * 5 + [True]


def test_other_actions_are_calls_by_the_names_that_codex_has_for_them(told: Tell) -> None:
    changes = [{"path": "a.py", "kind": "update"}]
    found = told(
        CodexReader,
        *BEGIN,
        item("completed", 1, "file_change", changes=changes, status="completed"),
        item("started", 2, "mcp_tool_call", server="docs", tool="find", arguments={"q": "x"}, status="in_progress"),
        item("completed", 2, "mcp_tool_call", server="docs", tool="find", error={"message": "gone"}, status="failed"),
        item("completed", 3, "web_search", query="how to"),
    )
    called = [(call["function_name"], call["arguments"]) for step in found.steps for call in step["tool_calls"]]
    assert called == [
        ("apply_patch", {"changes": changes}),
        ("docs.find", {"q": "x"}),
        ("web_search", {"query": "how to"}),
    ]
    assert [step["observation"]["results"][0]["content"] for step in found.steps] == ["completed", "gone", ""]


def test_a_plan_is_a_call_each_time_it_changes_and_never_keeps_the_budget_waiting(told: Tell) -> None:
    def plan(moment: str, done: bool) -> dict[str, Any]:
        return item(moment, 1, "todo_list", items=[{"text": "look", "completed": done}])

    found = told(CodexReader, *BEGIN, plan("started", False), plan("updated", True), plan("completed", True))
    plans = [call["arguments"]["plan"] for step in found.steps for call in step["tool_calls"]]
    assert plans == [[{"step": "look", "completed": False}], [{"step": "look", "completed": True}]]
    assert found.between[-1]


@pytest.mark.parametrize("said", ["unexpected status 401 Unauthorized", "stream disconnected"])
def test_a_turn_that_failed_is_an_error_in_the_providers_words(told: Tell, said: str) -> None:
    found = told(
        CodexReader,
        *BEGIN,
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "turn.failed", "error": {"message": said}},
    )
    assert (found.reader.failure, found.reader.trouble) == (said, "Reconnecting... 1/5")


def test_a_conversation_that_is_too_long_ends_the_turn_and_is_no_error(told: Tell) -> None:
    said = "Codex ran out of room in the model's context window."
    found = told(CodexReader, *BEGIN, {"type": "turn.failed", "error": {"message": said}})
    assert found.reader.failure == ""
    assert found.reader.stopped == f"context: the conversation is longer than the model takes ({said})"


# The log of the session, which has the tokens of each request.


def made(kind: str, **values: Any) -> Lines:
    return [{"type": "response_item", "payload": {"type": kind, **values}}]


def called(name: str, number: int = 1, **arguments: Any) -> Lines:
    return made("function_call", name=name, arguments=json.dumps(arguments), call_id=f"call_{number}")


def gave(number: int, output: str) -> Lines:
    return made("function_call_output", call_id=f"call_{number}", output=output)


def counted(tokens: int, **info: Any) -> Lines:
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 1, "reasoning_output_tokens": 1}
    return [{"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": usage, **info}}}]


def said(text: str) -> Lines:
    return made("message", role="assistant", content=[{"type": "output_text", "text": text}])


def reader_of(*log: Lines) -> Any:
    """A reader whose log grows by the next of these each time that it looks."""
    grown = list(log)

    class Reader(CodexReader):
        def new_entries(self) -> Any:
            return grown.pop(0) if grown else []

    return Reader


def plan() -> dict[str, Any]:
    return item("started", 1, "todo_list", items=[{"text": "look", "completed": False}])


PLAN = called("update_plan", plan=[])
LS = called("exec_command", 2, cmd="ls")
EVENTS = (*BEGIN, plan(), *command(2, "ls"), item("completed", 3, "agent_message", text="Done."))


def tokens_of(found: Told) -> list[int | None]:
    """The prompt's tokens of each step; None for a step that counts none."""
    return [step.get("metrics", {}).get("prompt_tokens") for step in found.steps]


@pytest.mark.parametrize(
    "log",
    [
        [[*PLAN, *counted(1), *LS, *counted(2), *said("Done."), *counted(3)]],
        [[], PLAN, [*counted(1), *LS], [], [*counted(2), *said("Done."), *counted(3)]],
        [[], [], [], [], [*PLAN, *counted(1), *LS, *counted(2), *said("Done."), *counted(3)]],
    ],
    ids=["log ahead", "log beside", "log behind"],
)
def test_tokens_are_on_the_step_that_took_them_though_it_ran_no_command(told: Tell, log: list[Lines]) -> None:
    found = told(reader_of(*log), *EVENTS)
    assert tokens_of(found) == [1, 2, 3]
    assert (found.used["prompt_tokens"], found.used["reasoning_tokens"], found.used["requests"]) == (6, 3, 3)
    assert found.spending.spent.turns == 3


def test_a_request_of_which_there_is_no_event_is_a_step_of_its_own(told: Tell) -> None:
    thought = made("reasoning", summary=[], encrypted_content="x")
    poll = called("write_stdin", 7, session_id=1, chars="")
    log = [*LS, *counted(1), *poll, *counted(2), *gave(7, "more"), *thought, *counted(3), *said("Done."), *counted(4)]
    found = told(reader_of(log), *BEGIN, *command(2, "ls"), item("completed", 3, "agent_message", text="Done."))
    assert tokens_of(found) == [1, 2, 3, 4]
    unseen = found.steps[1]
    assert [call["function_name"] for call in unseen["tool_calls"]] == ["write_stdin"]
    assert unseen["observation"]["results"] == [{"source_call_id": "call_7", "content": "more"}]
    assert [step["message"] for step in found.steps] == ["", "", "", "Done."]
    assert found.spending.spent.turns == 4


def test_a_turn_that_ends_with_a_request_of_which_there_is_no_event_counts_it(told: Tell) -> None:
    thought = made("reasoning", summary=[], encrypted_content="x")
    found = told(reader_of([*LS, *counted(1)], [], [*thought, *counted(2)]), *BEGIN, *command(2, "ls"))
    assert tokens_of(found) == [1, 2]


def test_a_reply_of_which_events_make_two_steps_is_counted_once(told: Tell) -> None:
    both = [*LS, *called("exec_command", 3, cmd="pwd")]
    log = [*both, *counted(1), *called("exec_command", 4, cmd="id"), *counted(2), *said("Done."), *counted(3)]
    events = (
        *command(2, "ls"),
        *command(3, "pwd"),
        *command(4, "id"),
        item("completed", 5, "agent_message", text="Done."),
    )
    for grown in ([log], [[], [], [], [], [], [], log]):
        found = told(reader_of(*grown), *BEGIN, *events)
        assert tokens_of(found) == [1, None, 2, 3]


def test_tokens_that_the_log_repeats_with_rate_limits_count_once(told: Tell) -> None:
    first, second = {"total_token_usage": {"total_tokens": 5}}, {"total_token_usage": {"total_tokens": 9}}
    log = [*LS, *counted(1, **first), *counted(1, **first), *said("Done."), *counted(2, **second)]
    found = told(reader_of(log), *BEGIN, *command(2, "ls"), item("completed", 3, "agent_message", text="Done."))
    assert tokens_of(found) == [1, 2]


def test_a_turn_whose_log_comes_after_its_end_is_counted_once(told: Tell) -> None:
    end = {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 1}}
    done = item("completed", 3, "agent_message", text="Done.")
    found = told(reader_of([], [], [*said("Done."), *counted(7)]), *BEGIN, done, end)
    assert (found.used["prompt_tokens"], tokens_of(found)) == (7, [7])


@pytest.mark.parametrize(
    "odd",
    [
        [{"type": "event_msg", "payload": "none"}],
        [{"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": ["many"]}}}],
        [
            {
                "type": "event_msg",
                "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 1e999}}},
            }
        ],
        made("reasoning", summary=["a text"]),
        made("web_search_call", action=None) + made("message", role="assistant", content=7),
    ],
)
def test_entries_of_the_log_of_another_form_are_left_out(told: Tell, odd: Lines) -> None:
    log = [*odd, *LS, *counted(1), *said("Done."), *counted(2), *odd]
    found = told(reader_of(log), *BEGIN, *command(2, "ls"), item("completed", 3, "agent_message", text="Done."))
    assert found.used["prompt_tokens"] == 3


def test_commands_that_the_log_writes_in_other_words_have_their_tokens_in_order(told: Tell) -> None:
    shown = {"action": {"command": ["zsh", "-x", "a"]}}
    script = made("custom_tool_call", name="exec", input="await tools.exec_command({cmd: 'b'})", call_id="c")
    log = [*made("local_shell_call", **shown), *counted(1), *script, *counted(2), *said("Done."), *counted(3)]
    found = told(
        reader_of(log), *BEGIN, *command(2, "a"), *command(3, "b"), item("completed", 4, "agent_message", text="Done.")
    )
    assert tokens_of(found) == [1, 2, 3]


def test_a_session_of_the_real_program_has_the_tokens_of_each_request(told: Tell) -> None:
    """What version 0.169.0 printed and logged: a call that it does not know, a command that goes on, and a poll."""
    thought = made("reasoning", summary=[{"type": "summary_text", "text": "Plan."}], encrypted_content="x")
    script = "echo hi; sleep 4; echo there"
    log = [
        [*thought, *called("update_plan", 3, plan=[]), *gave(3, "unsupported call: update_plan"), *counted(100)],
        [*said("I look."), *called("exec_command", 7, cmd=script, yield_time_ms=1000)],
        [*gave(7, "Process running with session ID 75969"), *counted(200)],
        [*called("write_stdin", 10, session_id=1), *gave(10, "write_stdin failed"), *counted(300)],
        [*said("Done."), *counted(400)],
    ]
    events = (
        {"type": "thread.started", "thread_id": "t-1"},
        item("completed", 0, "error", message="Model metadata not found."),
        {"type": "turn.started"},
        item("completed", 1, "reasoning", text="Plan."),
        item("completed", 2, "agent_message", text="I look."),
        command(3, f"'{script}'")[0],
        item("completed", 4, "agent_message", text="Done."),
    )
    whole = [entry for part in log for entry in part]
    for grown in ([whole], [[*log[0], *log[1]], [*log[2], *log[3], *log[4]]]):
        found = told(reader_of(*grown), *events)
        assert tokens_of(found) == [100, 200, 300, 400]
        assert [step["message"] for step in found.steps] == ["", "I look.", "", "Done."]
        assert found.steps[0]["reasoning_content"] == "Plan."
        assert (found.used["prompt_tokens"], found.used["requests"]) == (1000, 4)
    late = told(reader_of([], [], whole), *events)  # What comes too late is with the next step, and is all there.
    assert late.used["prompt_tokens"] == 1000
