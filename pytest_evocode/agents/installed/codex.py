"""The agent ``codex``: ``codex exec --json`` of OpenAI."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, Literal

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent, Version
from pytest_evocode.agents.installed.event_reader import Event, EventReader, text_of
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.gateway import Exchange, Family
from pytest_evocode.gateway.replies import reply_of, results_in
from pytest_evocode.llm.protocol import Reply
from pytest_evocode.trajectories.atif import ToolCall

#: Calls of which Codex prints no event.
_UNSEEN = frozenset({"write_stdin", "view_image", "wait", "list_mcp_resources", "list_mcp_resource_templates"})
#: How its words for a reply end that has come to its limit: no error of the provider's or its own.
_CUT_OFF = "reason: max_output_tokens"
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


class CodexReader(EventReader):
    """Reads the output of ``--json``: items such as messages, thoughts and commands, but no replies as such."""

    _updates = 0
    _error = ""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unseen: set[str] = set()
        """Calls without an event whose results are not known yet."""
        self._seen: list[Exchange] = []

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        kind = event.get("type")
        if kind == "thread.started":
            self.session = event["thread_id"]
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._take_item(event["item"], kind.removeprefix("item."))
        elif kind == "error":
            self._error = text_of(event.get("message"))
        elif kind == "turn.failed":
            self.close()
            words = text_of((event.get("error") or {}).get("message")) or self._error
            if words.endswith(_CUT_OFF):
                self.stopped = "cut off: the model's last reply reached the limit of its tokens, at which codex ends"
            else:
                self.failure = words
        elif kind == "turn.completed":
            self.close()

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

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self.flush()

    def flush(self, calls: Sequence[ToolCall] = (), *, continues: bool = False) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self._seen += self._with_events()
        super().flush(calls, continues=continues)

    def take_new(self) -> list[Exchange]:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        seen, self._seen = self._seen, []
        return [*seen, *self._with_events()]

    def _with_events(self) -> list[Exchange]:
        """Return those of the new exchanges of which there are events; the others are steps of their own."""
        found = []
        for exchange in super().take_new():
            results = results_in(exchange)
            for call_id in self._unseen & results.keys():
                self._unseen.remove(call_id)
                self.result(call_id, results[call_id])
            reply = reply_of(exchange)
            if reply is not None and reply.calls and all(call.name in _UNSEEN for call in reply.calls):
                self._reply_alone(exchange, reply)
            else:
                found.append(exchange)
        return found

    def _reply_alone(self, exchange: Exchange, reply: Reply) -> None:
        is_told = reply.text in self._texts
        if is_told:
            self._texts.remove(reply.text)
        calls = [
            ToolCall(tool_call_id=call.id, function_name=call.name, arguments=call.arguments or {})
            for call in reply.calls
        ]
        self.recorder.reply(reply.text if is_told else "", calls, usage=exchange.usage, extra={"from": "gateway"})
        self._unseen.update(call.id for call in reply.calls)


class CodexAgent(InstalledAgent):
    """Codex, OpenAI's CLI."""

    name = "codex"
    options_type = CodexOptions
    npm = NpmProgram("@openai/codex", "codex", native=("*/vendor/*/bin/codex", "*/vendor/*/codex/codex"), above=1)
    user_files = UserFiles(rules=".codex/AGENTS.md", skills=".codex/skills")
    reader_type = CodexReader
    keys = (_KEY, "OPENAI_API_KEY")
    options: CodexOptions
    family: Family = "openai"
    mcp_transports = frozenset(("stdio", "http"))

    def arguments(self, base_url: str) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        # The commands that Codex runs have no use for its key.
        settings: dict[str, Any] = {
            "shell_environment_policy.exclude": [_KEY],
            "model_provider": _PROVIDER,
            f"model_providers.{_PROVIDER}.name": _PROVIDER,
            f"model_providers.{_PROVIDER}.base_url": base_url,
            f"model_providers.{_PROVIDER}.env_key": _KEY,
            f"model_providers.{_PROVIDER}.wire_api": "responses",
        }
        if self.options.effort is not None:
            settings["model_reasoning_effort"] = self.options.effort
        for server in self.mcp_servers:
            settings |= _settings_of(server)
        line = ["exec", "resume", self._session] if self._session else ["exec"]
        line += ["--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
        line += ["--model", self.model] if self.model is not None else []
        for name, value in settings.items():
            line += ["--config", f"{name}={_as_toml(value)}"]
        return [*line, "-"]

    def variables(self, key_name: str, token: str, base_url: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return {_KEY: token}


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
