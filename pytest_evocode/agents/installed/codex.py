"""Codex: ``codex exec --json``."""

from __future__ import annotations

import json
import shlex
from typing import Any, Literal

from pydantic import Field

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent
from pytest_evocode.agents.installed.event_reader import Event, EventReader, text_of
from pytest_evocode.agents.installed.npm import NpmProgram
from pytest_evocode.agents.installed.session_log import SessionLog
from pytest_evocode.agents.installed.staged_files import UserFiles
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall

_KEY = "CODEX_API_KEY"
_PROVIDER = "evocode"
#: Actions by the kind of item, and what their results are in.
_ACTIONS = {
    "command_execution": "aggregated_output",
    "file_change": "status",
    "mcp_tool_call": "result",
    "web_search": "result",
    "collab_tool_call": "result",
}


class CodexOptions(CliOptions):
    """Codex's."""

    version: str = Field(default="0.169.0", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class CodexAgent(InstalledAgent):
    """Codex of OpenAI."""

    name = "codex"
    options_type = CodexOptions
    npm = NpmProgram("@openai/codex", "codex", native=("*/vendor/*/bin/codex", "*/vendor/*/codex/codex"), above=1)
    user_files = UserFiles(rules=".codex/AGENTS.md", skills=".codex/skills")
    options: CodexOptions

    @property
    def keys(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return (_KEY, "OPENAI_API_KEY")

    def arguments(self) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        # The commands that it runs have no use for its key.
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
        line = ["exec", "resume", self._session] if self._session else ["exec"]
        line += ["--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
        line += ["--model", self.model] if self.model is not None else []
        for name, value in settings.items():
            line += ["--config", f"{name}={json.dumps(value)}"]
        return [*line, "-"]

    def variables(self, key_name: str, key: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return {_KEY: key}

    def reader(self, context: RoundContext) -> EventReader:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        reader = CodexReader(context.recorder, self.facts)
        reader.watch(context, self._session)
        return reader


class CodexReader(EventReader):
    """Reads ``--json``, which has no answers of the model but what they come to, item by item.

    The tokens of each request are in the log of the session as soon as it is answered, and in the events at the turn's
    end only.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._updates = 0
        self._counted = self._resumed = False
        self._context: RoundContext | None = None
        self._log: SessionLog | None = None

    def watch(self, context: RoundContext, session: str) -> None:
        """Look into the log of the session, which may be there from earlier turns."""
        self._context = context
        self._resumed = bool(session)
        if session:
            self._open_log(session)
            assert self._log is not None
            self._log.new()

    def _open_log(self, session: str) -> None:
        if self._context is not None and self._log is None:
            pattern = f"~/.codex/sessions/*/*/*/*-{shlex.quote(session)}.jsonl"
            self._log = SessionLog(self._context.environment, self._context.round.agent_user, pattern)

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        kind = event.get("type")
        if kind == "thread.started":
            self.session = event["thread_id"]
            self._open_log(self.session)
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._take_item(event["item"], kind.removeprefix("item."))
        elif kind == "error":
            self.trouble = text_of(event.get("message"))
        elif kind == "turn.failed":
            self._fail(text_of((event.get("error") or {}).get("message")) or self.trouble)
        elif kind == "turn.completed":
            self._tell()
            self._count()
            # Of a session that was resumed, this has the earlier turns too.
            if not self._counted and not self._resumed and (usage := event.get("usage")):
                self.recorder.amend(usage=self._usage(usage).model_copy(update={"requests": None}))

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self._tell()
        self._count()

    def _fail(self, said: str) -> None:
        self.close()
        if "context window" in said:
            self.stopped = f"context: the conversation is longer than the model takes ({said})"
        else:
            self.failure = said

    def _take_item(self, item: Event, moment: str) -> None:
        kind = item.get("type", "")
        if kind == "agent_message" and moment == "completed":
            self._texts.append(item["text"])
        elif kind == "reasoning" and moment == "completed":
            self._thoughts.append(item["text"])
        elif kind == "todo_list" and moment != "completed":
            self._updates += 1
            plan = [{"step": each["text"], "completed": each["completed"]} for each in item["items"]]
            self._call(
                ToolCall(
                    tool_call_id=f"{item['id']}.{self._updates}", function_name="update_plan", arguments={"plan": plan}
                )
            )
            self.result(f"{item['id']}.{self._updates}", "")
        elif kind in _ACTIONS:
            if not self.has_begun(item["id"]):
                self._call(_as_call(item))
            if moment == "completed":
                self._complete(item)

    def _call(self, call: ToolCall) -> None:
        if self.waits and not self._texts and not self._thoughts:
            self.call_too(call)
        else:
            self._tell([call])

    def _tell(self, calls: list[ToolCall] | None = None) -> None:
        """Take down what the model has said and thought since its last call, and its next one."""
        if calls or self._texts or self._thoughts:
            self.reply("\n\n".join(self._texts), calls or (), reasoning="\n\n".join(self._thoughts))
            self._texts, self._thoughts = [], []

    def _complete(self, item: Event) -> None:
        shown = text_of(item.get(_ACTIONS[item["type"]]))
        if item.get("error"):
            shown = text_of(item["error"].get("message")) or shown
        code = item.get("exit_code")
        self.result(item["id"], shown, exit_code=code if isinstance(code, int) else None)
        self._count()

    def _count(self) -> None:
        """Charge what was asked of the model since the last look."""
        for entry in self._log.new() if self._log is not None else ():
            payload = entry.get("payload") or {}
            usage = (payload.get("info") or {}).get("last_token_usage")
            if payload.get("type") == "token_count" and usage and self.replies:
                self._counted = True
                self.recorder.amend(usage=self._usage(usage))

    def _usage(self, count: Event) -> Usage:
        return self.usage(
            prompt=count["input_tokens"],
            completion=count["output_tokens"],
            cached=count.get("cached_input_tokens", 0),
            written=count.get("cache_write_input_tokens", 0),
        )


def _as_call(item: Event) -> ToolCall:
    """An item as a call of a tool, by the name that Codex has for it."""
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
    """The script of ``bash -lc SCRIPT``, which is how Codex runs and shows every command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    is_shell = len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-lc", "-c")
    return words[2] if is_shell else command
