"""The agent ``codex``: ``codex exec --json`` of OpenAI."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, Literal

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent, Version
from pytest_evocode.agents.installed.codex_log import LoggedRequest, LoggedRequests, keys_of
from pytest_evocode.agents.installed.event_reader import Event, LoggedEventReader, text_of
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.staged_files import UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.llm.rates import ModelFacts
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Recorder

_KEY = "CODEX_API_KEY"
_PROVIDER = "evocode"
#: Kinds of items that are actions, with the fields that have their results.
_ACTIONS = {
    "command_execution": "aggregated_output",
    "file_change": "status",
    "mcp_tool_call": "result",
    "web_search": "result",
    "collab_tool_call": "result",
}


class CodexOptions(CliOptions):
    """Options of Codex."""

    version: Version = "0.169.0"
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How hard the model is to think."""


class CodexReader(LoggedEventReader):
    """Reads the output of ``--json``: items such as messages, thoughts and commands, but no replies as such.

    The tokens of a request are in the session's log as soon as it is answered, in the events only at the turn's end. A
    request of which there is no event is a step of its own.
    """

    _updates = 0
    _counted = _resumed = False

    def __init__(self, recorder: Recorder, facts: ModelFacts | None = None) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        super().__init__(recorder, facts)
        self._requests = LoggedRequests()

    def pattern(self, session: str) -> str:
        """See :class:`~pytest_evocode.agents.installed.event_reader.LoggedEventReader`."""
        return f"~/.codex/sessions/*/*/*/*-{shlex.quote(session)}.jsonl"

    def skip(self, entries: list[Event]) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.LoggedEventReader`."""
        self._resumed = True
        self._requests.skip(entries)

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        kind = event.get("type")
        if kind == "thread.started":
            self.session = event["thread_id"]
            self.open_log(self.session)
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._take_item(event["item"], kind.removeprefix("item."))
        elif kind == "error":
            self.trouble = text_of(event.get("message"))
        elif kind == "turn.failed":
            self._fail(text_of((event.get("error") or {}).get("message")) or self.trouble)
        elif kind == "turn.completed":
            self.close()
            # In a resumed session, this includes the earlier turns.
            if not self._counted and not self._resumed and (usage := event.get("usage")):
                self.charge_whole(self._usage(usage))

    def _fail(self, words: str) -> None:
        self.close()
        if "context window" in words:
            self.stopped = f"context: the conversation is longer than the model takes ({words})"
        else:
            self.failure = words

    def _take_item(self, item: Event, moment: str) -> None:
        kind = item.get("type", "")
        if kind == "agent_message" and moment == "completed":
            self._texts.append(item["text"])
        elif kind == "reasoning" and moment == "completed":
            self._thoughts.append(item["text"])
        elif kind == "todo_list" and moment != "completed":
            self._updates += 1
            plan = [{"step": each["text"], "completed": each["completed"]} for each in item["items"]]
            call_id = f"{item['id']}.{self._updates}"
            call = ToolCall(tool_call_id=call_id, function_name="update_plan", arguments={"plan": plan})
            self.flush([call], continues=self.waits)
            self.result(call_id, "")
        elif kind in _ACTIONS:
            if item["id"] not in self._began:
                self.flush([_as_call(item)], continues=self.waits)
            if moment == "completed":
                self._complete(item)

    def _complete(self, item: Event) -> None:
        shown = text_of(item.get(_ACTIONS[item["type"]]))
        if item.get("error"):
            shown = text_of(item["error"].get("message")) or shown
        code = item.get("exit_code")
        self.result(item["id"], shown, exit_code=code if isinstance(code, int) else None)
        self.count()

    def flush(self, calls: Sequence[ToolCall] = (), *, continues: bool = False) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        made = keys_of(self._texts, self._thoughts, calls)
        if not made:
            return
        if not continues or self._texts or self._thoughts:
            self.count()
            for request in self._requests.before(made):
                self._reply_alone(request)
        left = keys_of(self._texts, self._thoughts, calls)
        super().flush(calls, continues=continues)
        self._requests.mark(left, self.recorder.last_reply)

    def count(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.LoggedEventReader`."""
        self._requests.read(self.new_entries())
        for place, request in self._requests.known():
            self._counted = True
            self.recorder.amend(usage=self._usage(request.usage), at=place)

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        super().close()
        for request in self._requests.rest():
            if request.has_no_event or not self.replies:
                self._reply_alone(request)
            else:
                self._counted = True
                self.recorder.amend(usage=self._usage(request.usage))

    def _reply_alone(self, request: LoggedRequest) -> None:
        """Record a request of which there is no event, or none but words."""
        self._counted = True
        texts = [text for text in self._texts if ("text", text) in request.keys]
        thoughts = [text for text in self._thoughts if ("thought", text) in request.keys]
        self._texts = [text for text in self._texts if text not in texts]
        self._thoughts = [text for text in self._thoughts if text not in thoughts]
        usage = self._usage(request.usage)
        words, reasoning = "\n\n".join(texts), "\n\n".join(thoughts)
        self.reply(words, request.unseen, reasoning=reasoning, usage=usage, extra={"from": "log"})
        for call in request.unseen:
            self.result(call.tool_call_id, self._requests.outputs.get(call.tool_call_id, ""))

    def _usage(self, count: Event) -> Usage:
        return self.usage(
            prompt=count["input_tokens"],
            completion=count["output_tokens"],
            cached=count.get("cached_input_tokens", 0),
            written=count.get("cache_write_input_tokens", 0),
            reasoning=count.get("reasoning_output_tokens"),
        )


class CodexAgent(InstalledAgent):
    """Codex, OpenAI's CLI."""

    name = "codex"
    options_type = CodexOptions
    npm = NpmProgram("@openai/codex", "codex", native=("*/vendor/*/bin/codex", "*/vendor/*/codex/codex"), above=1)
    user_files = UserFiles(rules=".codex/AGENTS.md", skills=".codex/skills")
    reader_type = CodexReader
    keys = (_KEY, "OPENAI_API_KEY")
    options: CodexOptions
    own_hosts = ("api.openai.com",)
    mcp_transports = frozenset(("stdio", "http"))

    def arguments(self) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        # The commands that Codex runs have no use for its key.
        settings: dict[str, Any] = {"shell_environment_policy.exclude": [_KEY]}
        if self.options.effort is not None:
            settings["model_reasoning_effort"] = self.options.effort
        if self.options.base_url is not None:
            settings |= {
                "model_provider": _PROVIDER,
                f"model_providers.{_PROVIDER}.name": _PROVIDER,
                f"model_providers.{_PROVIDER}.base_url": self.options.base_url,
                f"model_providers.{_PROVIDER}.env_key": _KEY,
                f"model_providers.{_PROVIDER}.wire_api": "responses",
            }
        for server in self.mcp_servers:
            settings |= _settings_of(server)
        line = ["exec", "resume", self._session] if self._session else ["exec"]
        line += ["--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
        line += ["--model", self.model] if self.model is not None else []
        for name, value in settings.items():
            line += ["--config", f"{name}={_as_toml(value)}"]
        return [*line, "-"]

    def variables(self, key_name: str, key: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return {_KEY: key}


def _settings_of(server: ToolServer) -> dict[str, Any]:
    """Return what Codex' configuration says of an MCP server."""
    table = f"mcp_servers.{server.key}"
    if server.transport == "stdio":
        found = {f"{table}.command": server.command, f"{table}.args": [*server.args]}
        return found | ({f"{table}.env": {**server.env}} if server.env else {})
    found = {f"{table}.url": server.url}
    return found | ({f"{table}.http_headers": {**server.headers}} if server.headers else {})


def _as_toml(value: Any) -> str:
    """Return a value as Codex' option takes it: texts, lists and numbers are the same in JSON, tables are not.

    >>> _as_toml({"X-Key": "a"})
    '{"X-Key" = "a"}'
    """
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)} = {json.dumps(each)}' for name, each in value.items())}}}"
    return json.dumps(value)


def _as_call(item: Event) -> ToolCall:
    """Return an item as a tool call, by Codex's own name of the tool."""
    kind = item["type"]
    name, arguments = kind, {key: value for key, value in item.items() if key not in ("id", "type", "status")}
    if kind == "command_execution":
        name, arguments = "shell", {"command": _without_shell(item["command"])}
    elif kind == "file_change":
        name, arguments = "apply_patch", {"changes": item.get("changes", [])}
    elif kind == "mcp_tool_call":
        name, arguments = f"{item.get('server')}.{item.get('tool')}", item.get("arguments") or {}
    elif kind == "web_search":
        arguments = {"query": item.get("query", "")}
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    return ToolCall(tool_call_id=item["id"], function_name=name, arguments=arguments)


def _without_shell(command: str) -> str:
    """Return the script of ``bash -lc SCRIPT``, as which Codex shows every command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    is_shell = len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-lc", "-c")
    return words[2] if is_shell else command
