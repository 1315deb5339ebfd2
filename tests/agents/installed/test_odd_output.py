"""Programs that print what no program should."""

from __future__ import annotations

import json

from pytest_evocode.agents.installed.codex import CodexReader
from pytest_evocode.agents.installed.event_reader import Event, EventReader
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall
from pytest_evocode.trajectories.recorder import Recorder


class Calling(EventReader):
    """Takes every event for a call."""

    def take(self, event: Event) -> None:
        self.reply("", [ToolCall(tool_call_id="1", function_name="f", arguments=event["arguments"])])


def recorder() -> Recorder:
    return Recorder(AgentInfo(name="somebody", version="1"), "session")


def test_an_event_of_another_form_is_left_out_and_said() -> None:
    recorded = recorder()
    reader = Calling(recorded)
    reader.read(b'{"arguments": ["no", "table"]}')
    reader.read(b'{"arguments": {"a": "table"}}')
    first, second = recorded.trajectory().steps
    assert str(first.message).startswith("An event of unknown form was left out")
    assert second.tool_calls is not None


def test_codex_may_end_a_turn_in_which_its_model_said_nothing() -> None:
    recorded = recorder()
    reader = CodexReader(recorded)
    reader.read(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 0}}).encode())
    assert (reader.replies, reader.failure) == (0, "")
