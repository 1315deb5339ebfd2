"""The agent ``claude-code``: ``claude -p`` of Anthropic with its stream of JSON events."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from pytest_evocode.agents.harness import read_file
from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent, Version
from pytest_evocode.agents.installed.event_reader import Event, EventReader, text_of
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import SERVERS, StagedFiles, UserFiles
from pytest_evocode.agents.mcp.servers import as_json
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.gateway import Family
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")
_TIMED_OUT = re.compile(r"^Command timed out after ", re.MULTILINE)


class ClaudeCodeOptions(CliOptions):
    """Options of Claude Code."""

    version: Version = "2.1.330"
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How hard the model is to think."""
    thinking: int | None = Field(default=None, ge=0)
    """Tokens that the model may think before a reply."""
    max_turns: int | None = Field(default=None, gt=0)
    """Limit of the model's turns in one round."""


@dataclass(slots=True)
class _Message:
    """A reply of the model, whose blocks come one by one."""

    id: str
    model: str = ""
    request_id: str = ""
    parent: str | None = None
    """Call that started the subagent which this reply belongs to."""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)


class ClaudeCodeReader(EventReader):
    """Reads the output of ``stream-json``.

    A reply of the model comes as several events with one id, each with one of its blocks, and becomes one step.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._begun: dict[str | None, _Message] = {}

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        kind, parent = event.get("type"), event.get("parent_tool_use_id")
        if kind == "system":
            self._take_system(event)
            return
        self.session = event.get("session_id") or self.session
        if kind == "stream_event":
            self._take_streamed(event["event"], parent)
        elif kind == "assistant":
            self._take_blocks(event, parent)
        elif kind == "user":
            self._take_results(event)
        elif kind == "result":
            self._take_end(event)

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        for parent in list(self._begun):
            self._record(parent)

    def _take_system(self, event: Event) -> None:
        if event.get("subtype") == "init":
            version, model = event.get("claude_code_version"), event.get("model")
            known = self.recorder.agent
            self.recorder.agent = AgentInfo(
                name=known.name, version=version or known.version, model_name=known.model_name or model
            )

    def _take_streamed(self, event: Event, parent: str | None) -> None:
        """Read that a reply has begun, or is complete."""
        if event["type"] == "message_start":
            self._message(event["message"], parent)
        elif event["type"] == "message_stop":
            self._record(parent)

    def _message(self, message: Event, parent: str | None) -> _Message:
        begun = self._begun.get(parent)
        if begun is None or begun.id != message["id"]:
            self._record(parent)
            begun = self._begun[parent] = _Message(message["id"], message.get("model", ""), parent=parent)
        return begun

    def _take_blocks(self, event: Event, parent: str | None) -> None:
        content = event["message"]["content"]
        if event.get("error") or event["message"].get("model") == "<synthetic>":
            return  # The program's own words about an error.
        message = self._message(event["message"], parent)
        message.request_id = event.get("request_id") or message.request_id
        for block in content:
            if block["type"] == "text":
                message.texts.append(block["text"])
            elif block["type"] == "thinking":
                message.thoughts.append(block["thinking"])
            elif block["type"] == "tool_use":
                call = ToolCall(tool_call_id=block["id"], function_name=block["name"], arguments=block["input"])
                message.calls.append(call)

    def _record(self, parent: str | None) -> None:
        """Record a reply with the blocks that have come."""
        message = self._begun.pop(parent, None)
        if message is None or not (message.texts or message.thoughts or message.calls):
            return
        facts = {"request_id": message.request_id, "helper_of": message.parent or ""}
        refused = self.refused
        self.reply(
            "\n".join(message.texts),
            message.calls,
            reasoning="\n".join(message.thoughts),
            model=message.model,
            extra={name: value for name, value in facts.items() if value},
        )
        if message.parent is not None:  # What a subagent refuses, the turn need not.
            self.refused = refused

    def _take_results(self, event: Event) -> None:
        content = event["message"]["content"]
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict) or block.get("type") != "tool_result":
                continue
            call_id, text = block["tool_use_id"], text_of(block.get("content"))
            for parent in [parent for parent, each in self._begun.items() if _calls(each, call_id)]:
                self._record(parent)
            found = _EXIT_CODE.match(text) if block.get("is_error") else None
            ran = event.get("tool_use_result")
            ended_well = isinstance(ran, dict) and "stdout" in ran and not ran.get("backgroundTaskId")
            self.result(
                call_id,
                text,
                exit_code=int(found[1]) if found else 0 if ended_well else None,
                timed_out=bool(found and _TIMED_OUT.search(text)),
            )

    def _take_end(self, event: Event) -> None:
        self.close()
        words = text_of(event.get("result")) or "; ".join(map(str, event.get("errors") or ()))
        if event.get("subtype") == "error_max_turns":
            self.stopped = "claude-code: max_turns reached"
        elif event.get("is_error"):
            self.failure = words or f"it ended with {event.get('subtype')}"
        else:
            self.final = words


class ClaudeCodeAgent(InstalledAgent):
    """Claude Code, Anthropic's CLI; the harness's prompt is added to its system prompt."""

    name = "claude-code"
    options_type = ClaudeCodeOptions
    npm = NpmProgram("@anthropic-ai/claude-code", "claude", native=("*/claude-code-linux-*/claude",))
    user_files = UserFiles(rules=".claude/CLAUDE.md", skills=".claude/skills")
    reader_type = ClaudeCodeReader
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    bearer_keys = keys[1:]
    options: ClaudeCodeOptions
    family: Family = "anthropic"

    @property
    def has_known_prices(self) -> bool:
        """Whether it asks Anthropic, the prices of whose models are known."""
        return self.options.base_url is None

    def arguments(self, base_url: str) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        options = self.options
        line = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
        line += ["--dangerously-skip-permissions"]
        line += ["--model", self.model] if self.model is not None else []
        line += ["--effort", options.effort] if options.effort is not None else []
        line += ["--max-turns", str(options.max_turns)] if options.max_turns is not None else []
        line += ["--append-system-prompt", read_file(options.prompt)] if options.prompt is not None else []
        line += ["--mcp-config", SERVERS] if self.mcp_servers else []
        return [*line, "--resume", self._session] if self._session else line

    def stage_servers(self, stage: StagedFiles) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        stage.add_servers(as_json(self.mcp_servers))

    def variables(self, key_name: str, token: str, base_url: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        found = {
            key_name: token,
            "ANTHROPIC_BASE_URL": base_url,
            "IS_SANDBOX": "1",  # Without it, root may not skip the requests for permission.
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
        }
        if self.options.thinking is not None:
            found["MAX_THINKING_TOKENS"] = str(self.options.thinking)
        return found

    def text_for(self, context: RoundContext) -> str:
        """Return the instruction alone: the prompt is an argument."""
        return context.instruction

    def introduce(self, context: RoundContext) -> None:
        """Record the prompt in the first turn."""
        if self.options.prompt is not None and not self._session:
            context.recorder.say("system", read_file(self.options.prompt))


def _calls(message: _Message, call_id: str) -> bool:
    return any(call.tool_call_id == call_id for call in message.calls)
