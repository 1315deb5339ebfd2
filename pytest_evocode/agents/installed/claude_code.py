"""The agent ``claude-code``: ``claude -p`` of Anthropic with its stream of JSON events."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from pytest_evocode.llm.anthropic_messages import ENDINGS
from pytest_evocode.llm.prices import find_model_facts
from pytest_evocode.results.records import Usage, total_usage
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")
_TIMED_OUT = re.compile(r"^Command timed out after ", re.MULTILINE)
#: HTTP statuses that another try does not change.
_FINAL = (400, 401, 402, 403, 404)
_TOO_LONG = re.compile(r"prompt is too long|context (window|limit)", re.IGNORECASE)


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
    usage: dict[str, int] = field(default_factory=dict)
    stop_reason: str = ""

    def count(self, usage: Mapping[str, Any] | None) -> None:
        """Keep the token counts, which are repeated for one reply and only grow."""
        for name, value in (usage or {}).items():
            if isinstance(value, int):
                self.usage[name] = max(value, self.usage.get(name, 0))


class ClaudeCodeReader(EventReader):
    """Reads the output of ``stream-json``.

    A reply of the model comes as several events with one id, each with one of its blocks, and becomes one step.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._begun: dict[str | None, _Message] = {}
        self._recorded: set[str] = set()

    @property
    def used(self) -> Usage | None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        begun = [self._usage(each) for each in self._begun.values() if each.usage and each.id not in self._recorded]
        return total_usage([self.recorder.usage, *begun])

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
            # Which model a default or an alias stands for, only the program knows.
            self.facts = self.facts or (find_model_facts(model) if isinstance(model, str) else None)
            known = self.recorder.agent
            self.recorder.agent = AgentInfo(
                name=known.name, version=version or known.version, model_name=known.model_name or model
            )
        elif event.get("subtype") == "api_retry":
            status, error = event.get("error_status"), event.get("error")
            words = f"the model's provider answers {status} ({error})" if status else "the model cannot be reached"
            self.trouble = words
            if status in _FINAL and not self.replies:
                self.failure = f"{words}; see to the key, the model's name and base_url"

    def _take_streamed(self, event: Event, parent: str | None) -> None:
        """Read parts of a reply for the number of its tokens, which is known at its end."""
        if event["type"] == "message_start":
            self._message(event["message"], parent)
        elif event["type"] == "message_delta" and parent in self._begun:
            self._begun[parent].count(event.get("usage"))
            self._begun[parent].stop_reason = str(event.get("delta", {}).get("stop_reason") or "")
        elif event["type"] == "message_stop":
            self._record(parent)

    def _message(self, message: Event, parent: str | None) -> _Message:
        begun = self._begun.get(parent)
        if begun is None or begun.id != message["id"]:
            self._record(parent)
            begun = self._begun[parent] = _Message(message["id"], message.get("model", ""), parent=parent)
        begun.count(message.get("usage"))
        return begun

    def _take_blocks(self, event: Event, parent: str | None) -> None:
        content = event["message"]["content"]
        if event.get("error") or event["message"].get("model") == "<synthetic>":
            self.trouble = text_of(content)
            return
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
        if message is None:
            return
        ending = ENDINGS.get(message.stop_reason, "")
        # A refusal may have nothing else.
        if not (message.texts or message.thoughts or message.calls or ending == "refused"):
            return
        facts = {
            "request_id": message.request_id,
            "stop_reason": message.stop_reason,
            "ending": ending,
            "helper_of": message.parent or "",
        }
        if message.parent is None:
            self.refused = message.stop_reason if ending == "refused" else ""
        # The rest of a reply that was recorded when the first of its calls was done.
        again = message.id in self._recorded
        self._recorded.add(message.id)
        self.reply(
            "\n".join(message.texts),
            message.calls,
            reasoning="\n".join(message.thoughts),
            usage=None if again else self._usage(message),
            model=message.model,
            extra={name: value for name, value in facts.items() if value},
        )

    def _usage(self, message: _Message) -> Usage:
        count = message.usage
        cached, written = count.get("cache_read_input_tokens", 0), count.get("cache_creation_input_tokens", 0)
        return self.usage(
            prompt=count.get("input_tokens", 0) + cached + written,
            completion=count.get("output_tokens", 0),
            cached=cached,
            written=written,
        )

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
        total = _total(event, len(self._recorded))
        if total is not None and total.tokens:
            if total.cost_usd is None and self.recorder.usage is not None:
                total = total.model_copy(update={"cost_usd": self.recorder.usage.cost_usd})
            self.recorder.settle(total)
        words = text_of(event.get("result")) or "; ".join(map(str, event.get("errors") or ())) or self.trouble
        if event.get("subtype") == "error_max_turns":
            self.stopped = "claude-code: max_turns reached"
        elif _TOO_LONG.search(words) and event.get("is_error"):
            self.stopped = f"context: the conversation is longer than the model takes ({words})"
        elif event.get("is_error") and not self.refused:
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
    options: ClaudeCodeOptions
    own_hosts = ("api.anthropic.com",)

    @property
    def knows_cost(self) -> bool:
        """Whether the CLI reports costs: it knows the prices of all models of Anthropic."""
        return self.options.base_url is None

    def arguments(self) -> list[str]:
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

    def variables(self, key_name: str, key: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        found = {
            key_name: key,
            "IS_SANDBOX": "1",  # Without it, root may not skip the requests for permission.
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
        }
        if self.options.base_url is not None:
            found["ANTHROPIC_BASE_URL"] = self.options.base_url
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


def _total(event: Event, requests: int) -> Usage | None:
    """Return the usage of the whole turn, subagents and side requests included; None where it is not reported."""
    # In a resumed session, modelUsage and total_cost_usd include the earlier turns.
    models = event.get("model_usage_since_last_result") or event.get("modelUsage")
    if not models:
        return None
    sums = {name: sum(each.get(name) or 0 for each in models.values()) for name in _COUNTS}
    cached = sums["cacheReadInputTokens"]
    guessed = any(each.get("costBasis") == "unknown" for each in models.values())
    return Usage(
        prompt_tokens=sums["inputTokens"] + cached + sums["cacheCreationInputTokens"],
        cached_tokens=cached,
        completion_tokens=sums["outputTokens"],
        cache_write_tokens=sums["cacheCreationInputTokens"],
        cost_usd=None if guessed else sum(each.get("costUSD") or 0.0 for each in models.values()),
        requests=requests,
    )


_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
