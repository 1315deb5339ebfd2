"""The agent ``codex``: ``codex exec --json`` of OpenAI, and the log of its session, which has what events lack."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent, Version
from pytest_evocode.agents.installed.event_reader import UNKNOWN_FORM, Event, LoggedEventReader, text_of
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Recorder

Key = tuple[str, str]
"""What the log and the events call the same: its kind, and its text where both have it."""
_SHELLS = frozenset({"shell", "shell_command", "exec_command", "container.exec"})
#: Calls of which Codex prints no event.
_UNSEEN = frozenset({"write_stdin", "view_image", "wait", "list_mcp_resources", "list_mcp_resource_templates"})
_WORDS = ("text", "thought")
_PARTS = ("cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens")


@dataclass
class LoggedRequest:
    """A request of the log, whose tokens follow what the model made in it."""

    keys: list[Key] = field(default_factory=list)
    """What of it the events have as well."""
    unseen: list[ToolCall] = field(default_factory=list)
    """Calls of which there is no event."""
    items: int = 0
    usage: Mapping[str, int] = field(default_factory=dict)
    """Its numbers of tokens, by Codex' names."""

    @property
    def has_no_event(self) -> bool:
        """Whether it made something, and nothing that the events have."""
        return bool(self.items) and not self.keys

    def take(self, item: Event) -> None:
        """Add an item that the model made."""
        self.items += 1
        kind, name = item.get("type"), str(item.get("name") or "")
        if kind == "message":
            self.keys.append(("text", text_of(item.get("content"))))
        elif kind == "reasoning":
            self.keys += [("thought", str(part.get("text"))) for part in item.get("summary") or ()]
        elif kind == "web_search_call":
            self.keys.append(("web_search", ""))
        elif name in _UNSEEN:
            self.unseen.append(_logged_call(item))
        else:
            self.keys.append(_key_of(kind, name, item))


def keys_of(texts: Iterable[str], thoughts: Iterable[str], calls: Iterable[ToolCall]) -> list[Key]:
    """Return the keys of a step that events made."""
    found: list[Key] = [("text", text) for text in texts]
    found += [("thought", text) for text in thoughts]
    for call in calls:
        name, arguments = call.function_name, call.arguments
        script = str(arguments.get("command", "")) if name == "shell" else ""
        kinds = {"shell": "command", "apply_patch": "patch", "update_plan": "plan", "web_search": "web_search"}
        found.append((kinds[name], script) if name in kinds else ("tool", name.rpartition(".")[2]))
    return found


class LoggedRequests:
    """The requests of one turn as the log grows, each with the place of the step that it is, once that is known."""

    def __init__(self) -> None:
        self._open = LoggedRequest()
        self._waiting: list[LoggedRequest] = []
        self._marks: list[tuple[Key, int]] = []
        self._later: list[Key] = []
        self._charged: set[int] = set()
        self._total: Event | None = None
        self.outputs: dict[str, str] = {}
        """What calls gave, by their ids."""

    def read(self, entries: Iterable[Event]) -> None:
        """Take the new entries of the log; those of another form are left out, because the agent can write there."""
        for entry in entries:
            with contextlib.suppress(*UNKNOWN_FORM):
                self._take(entry)

    def _take(self, entry: Event) -> None:
        payload: Any = entry.get("payload") or {}
        kind = str(payload.get("type") or "")
        if kind == "token_count":
            self._count(payload.get("info") or {})
        elif kind.endswith("_output"):
            self.outputs[str(payload.get("call_id"))] = text_of(payload.get("output"))
        elif entry.get("type") == "response_item" and (kind != "message" or payload.get("role") == "assistant"):
            self._open.take(payload)

    def _count(self, info: Event) -> None:
        """Take the tokens of the request that has just been answered."""
        # They are written again with each new word about rate limits.
        total = info.get("total_token_usage")
        if (usage := info.get("last_token_usage")) and (total is None or total != self._total):
            names = ("input_tokens", "output_tokens", *(name for name in _PARTS if usage.get(name) is not None))
            self._open.usage = {name: int(usage[name]) for name in names}
            self._waiting.append(self._open)
            self._open = LoggedRequest()
        self._total = total or self._total

    def skip(self, entries: Iterable[Event]) -> None:
        """Take entries of earlier turns, whose requests are no matter of this one."""
        self.read(entries)
        self._open, self._waiting = LoggedRequest(), []

    def mark(self, keys: Iterable[Key], place: int) -> None:
        """Note what the step at a place made, by the events."""
        for key in keys:
            if key in self._later:  # Its request was found already, by another step that it made.
                self._later.remove(key)
                self._charged.add(place)
            else:
                self._marks.append((key, place))

    def known(self) -> list[tuple[int, LoggedRequest]]:
        """Return the requests whose steps are known by now, in order, each with the place of its step."""
        found = []
        while self._waiting and (place := self._place_of(self._waiting[0])) is not None:
            request = self._waiting.pop(0)
            found.append((place, request))
            self._charged.add(place)
            for key in request.keys:
                # Each was made once: the same words in a later request are those of a later step.
                mark = next((mark for mark in self._marks if mark[0] == key), None)
                if mark is not None:
                    self._marks.remove(mark)
                    self._charged.add(mark[1])
        return found

    def before(self, keys: Sequence[Key]) -> list[LoggedRequest]:
        """Return the requests that were answered before the step with some keys, and are no step yet.

        Of these there is no event, or none but words that were printed before those of the step. There are none once a
        request may be that of the step itself.
        """
        found = []
        while self._waiting and (
            (self._waiting[0].has_no_event and self._has_begun(keys)) or self._has_words_only(self._waiting[0], keys)
        ):
            found.append(self._waiting.pop(0))
        return found

    def _has_words_only(self, request: LoggedRequest, keys: Sequence[Key]) -> bool:
        """Whether a request made words of what a step would have, and a later one made more of it."""
        shared = [key for key in request.keys if key in keys]
        later = [key for each in (*self._waiting[1:], self._open) for key in each.keys if key not in request.keys]
        return bool(shared) and all(kind in _WORDS for kind, _ in shared) and any(key in keys for key in later)

    def rest(self) -> list[LoggedRequest]:
        """Return the requests that are left, because the turn is over."""
        rest, self._waiting = self._waiting, []
        return rest

    def _has_begun(self, keys: Sequence[Key]) -> bool:
        """Whether the log has come as far as a step; kinds are enough, because texts may be written differently."""
        kinds = {kind for kind, _ in keys}
        return any(kind in kinds for request in (*self._waiting, self._open) for kind, _ in request.keys)

    def _place_of(self, request: LoggedRequest) -> int | None:
        """Return the place of a request's step: one that made the same, else the first that made such things."""
        for key in request.keys:
            if (place := next((at for each, at in self._marks if each == key), None)) is not None:
                self._later += [each for each in request.keys if not any(each == made for made, _ in self._marks)]
                return place
        if request.has_no_event:
            return None
        kinds = {kind for kind, _ in request.keys}
        free = ((kind, at) for (kind, _), at in self._marks if at not in self._charged)
        return next((at for kind, at in free if not kinds or kind in kinds), None)


def _key_of(kind: Any, name: str, item: Event) -> Key:
    given = item.get("input") or item.get("arguments") or item.get("action") or ""
    if name == "update_plan":
        return ("plan", "")
    if name == "apply_patch" or "*** Begin Patch" in str(given):
        return ("patch", "")
    if kind == "custom_tool_call":
        return ("command", "")
    if kind != "local_shell_call" and name not in _SHELLS:
        return ("tool", name.rpartition("__")[2])
    arguments = _arguments(given)
    script = arguments.get("cmd") or arguments.get("command") or ""
    if isinstance(script, list):
        is_shell = len(script) == 3 and script[1] in ("-lc", "-c")
        script = script[2] if is_shell else shlex.join(map(str, script))
    return ("command", str(script))


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    return given if isinstance(given, dict) else {}


def _logged_call(item: Event) -> ToolCall:
    return ToolCall(
        tool_call_id=str(item.get("call_id")),
        function_name=str(item.get("name")),
        arguments=_arguments(item.get("arguments")),
    )


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
