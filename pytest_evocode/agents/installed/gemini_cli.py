"""Gemini CLI: ``gemini --output-format stream-json``."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from pydantic import Field

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent
from pytest_evocode.agents.installed.event_reader import Event, EventReader, text_of
from pytest_evocode.agents.installed.npm import NpmProgram
from pytest_evocode.agents.installed.session_log import SessionLog
from pytest_evocode.agents.installed.staged_files import StagedFiles, UserFiles
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall

_SHELL = "run_shell_command"
#: What the model is told of a command, unless it has ended with 0.
_EXIT_CODE = re.compile(r"^Exit Code: (\d+)", re.MULTILINE)


class GeminiCliOptions(CliOptions):
    """Gemini CLI's."""

    version: str = Field(default="0.61.0", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
    max_turns: int | None = Field(default=None, gt=0)
    """Of the whole session."""


class GeminiCliAgent(InstalledAgent):
    """Gemini CLI of Google."""

    name = "gemini-cli"
    options_type = GeminiCliOptions
    npm = NpmProgram("@google/gemini-cli", "gemini")
    user_files = UserFiles(rules=".gemini/GEMINI.md", skills=".gemini/skills")
    options: GeminiCliOptions

    @property
    def keys(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return ("GEMINI_API_KEY", "GOOGLE_API_KEY")

    def make_ready(self, stage: StagedFiles) -> None:
        """Write the settings of a user who has a key; with a ``base_url`` there is no other way to say so."""
        settings: dict[str, Any] = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        }
        if self.options.max_turns is not None:
            settings["model"] = {"maxSessionTurns": self.options.max_turns}
        write = f"mkdir -p ~/.gemini && printf %s {shlex.quote(json.dumps(settings))} >~/.gemini/settings.json"
        stage.run(f"[ -e ~/.gemini/settings.json ] || {{ {write}; }}")

    def arguments(self) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        line = ["--output-format", "stream-json", "--yolo"]
        line += ["--model", self.model] if self.model is not None else []
        return [*line, "--resume", self._session] if self._session else line

    def variables(self, key_name: str, key: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        found = {"GEMINI_API_KEY": key, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        if self.options.base_url is not None:
            found["GOOGLE_GEMINI_BASE_URL"] = self.options.base_url
        return found

    def reader(self, context: RoundContext) -> EventReader:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        reader = GeminiCliReader(context.recorder, self.facts)
        reader.watch(context, self._session)
        return reader


class GeminiCliReader(EventReader):
    """Reads ``--output-format stream-json``; the tokens of each request are in the log of the session only."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._text = ""
        self._counted: set[str] = set()
        self._exit_codes: dict[str, int] = {}
        self._context: RoundContext | None = None
        self._log: SessionLog | None = None

    def watch(self, context: RoundContext, session: str) -> None:
        """Look into the log of the session, which may be there from earlier turns."""
        self._context = context
        if session:
            self._open_log(session)
            assert self._log is not None
            self._counted.update(entry["id"] for entry in self._log.new() if "id" in entry)

    def _open_log(self, session: str) -> None:
        if self._context is not None and self._log is None:
            pattern = f"~/.gemini/tmp/*/chats/session-*-{shlex.quote(session[:8])}.jsonl"
            self._log = SessionLog(self._context.environment, self._context.round.agent_user, pattern)

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        kind = event.get("type")
        if kind == "init":
            self._open_log(event["session_id"])
            self.session = event["session_id"]
        elif kind == "message" and event.get("role") == "assistant":
            self._text += text_of(event.get("content"))
        elif kind == "tool_use":
            call = ToolCall(
                tool_call_id=event["tool_id"],
                function_name=event["tool_name"],
                arguments=event.get("parameters") or {},
            )
            if self.waits and not self._text:
                self.call_too(call)
            else:
                self._tell([call])
        elif kind == "tool_result":
            self._take_result(event)
        elif kind == "error":
            self.trouble = text_of(event.get("message"))
        elif kind == "result":
            self._take_end(event)

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self._tell()
        self._count()

    def _tell(self, calls: list[ToolCall] | None = None) -> None:
        if calls or self._text:
            self.reply(self._text, calls or ())
            self._text = ""

    def _take_result(self, event: Event) -> None:
        shown = text_of(event.get("output"))
        if event.get("status") == "error":
            shown = shown or text_of((event.get("error") or {}).get("message"))
        self._count()
        self.result(event["tool_id"], shown, exit_code=self._exit_codes.get(event["tool_id"]))

    def _take_end(self, event: Event) -> None:
        self.close()
        stats = event.get("stats") or {}
        if not self._counted and stats.get("total_tokens"):
            prompt, all_ = stats["input_tokens"], stats["total_tokens"]
            usage = self.usage(prompt=prompt, completion=all_ - prompt, cached=stats.get("cached", 0))
            self.recorder.amend(usage=usage.model_copy(update={"requests": None}))
        if event.get("status") == "error":
            self.failure = text_of((event.get("error") or {}).get("message")) or self.trouble

    def _count(self) -> None:
        """Take what the log has since the last look; an entry is written again when it has changed."""
        for entry in self._log.new() if self._log is not None else ():
            tokens = entry.get("tokens")
            if entry.get("type") == "gemini" and tokens and entry.get("id") not in self._counted and self.replies:
                self._counted.add(entry["id"])
                self.recorder.amend(usage=self._usage(tokens))
            self._exit_codes.update(_exit_codes(entry))

    def _usage(self, tokens: Event) -> Usage:
        completion = tokens["output"] + tokens.get("thoughts", 0)
        return self.usage(prompt=tokens["input"], completion=completion, cached=tokens.get("cached", 0))


def _exit_codes(entry: Event) -> dict[str, int]:
    """How the commands of an entry of the log ended, by their calls."""
    found = {}
    for call in entry.get("toolCalls") or ():
        told = json.dumps(call.get("result"), ensure_ascii=False).replace("\\n", "\n")
        if call.get("name") == _SHELL and call.get("result") and "Output:" in told:
            code = _EXIT_CODE.search(told)
            found[str(call["id"])] = int(code[1]) if code else 0
    return found
