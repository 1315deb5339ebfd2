"""The agent ``gemini-cli``: ``gemini --output-format stream-json`` of Google."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from typing import Any

from pydantic import Field

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent, Version
from pytest_evocode.agents.installed.event_reader import UNKNOWN_FORM, Event, EventReader, SessionLog, text_of
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import SERVERS, StagedFiles, UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.gateway import Family
from pytest_evocode.trajectories.atif import ToolCall

_SHELL = "run_shell_command"
#: In what the model is told of a command that did not end with 0.
_EXIT_CODE = re.compile(r"^Exit Code: (\d+)", re.MULTILINE)


class GeminiCliOptions(CliOptions):
    """Options of Gemini CLI."""

    #: Versions 0.44.0 to 0.61.0 send the results of earlier rounds' calls twice (google-gemini/gemini-cli#29365), and
    #: every round after the first fails.
    version: Version = "0.43.0"
    max_turns: int | None = Field(default=None, gt=0)
    """Limit of the model's turns in the whole session."""


class GeminiCliReader(EventReader):
    """Reads the output of ``stream-json``; the exit codes of commands are only in the session's log."""

    _context: RoundContext | None = None
    _log: SessionLog | None = None
    _error = ""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._exit_codes: dict[str, int] = {}

    def watch(self, context: RoundContext, session: str) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self._context = context
        if session:
            self._open_log(session)
            self._read_log()

    def _open_log(self, session: str) -> None:
        if self._context is not None and self._log is None:
            pattern = f"~/.gemini/tmp/*/chats/session-*-{shlex.quote(session[:8])}.jsonl"
            self._log = SessionLog(self._context.environment, self._context.round.agent_user, pattern)

    def _read_log(self) -> None:
        """Read the log's new entries; an entry is written again when it has changed."""
        for entry in () if self._log is None else self._log.new():
            with contextlib.suppress(*UNKNOWN_FORM):  # The agent can write there.
                self._exit_codes.update(_exit_codes(entry))

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self.flush()

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        kind = event.get("type")
        if kind == "init":
            self._open_log(event["session_id"])
            self.session = event["session_id"]
        elif kind == "message" and event.get("role") == "assistant":
            text = "".join([*self._texts, text_of(event.get("content"))])  # It comes in pieces.
            self._texts = [text] if text else []
        elif kind == "tool_use":
            arguments = event.get("parameters") or {}
            call = ToolCall(tool_call_id=event["tool_id"], function_name=event["tool_name"], arguments=arguments)
            self.flush([call], continues=self.waits)
        elif kind == "tool_result":
            self._take_result(event)
        elif kind == "error":
            self._error = text_of(event.get("message"))
        elif kind == "result":
            self._take_end(event)

    def _take_result(self, event: Event) -> None:
        shown = text_of(event.get("output"))
        if event.get("status") == "error":
            shown = shown or text_of((event.get("error") or {}).get("message"))
        self._read_log()
        self.result(event["tool_id"], shown, exit_code=self._exit_codes.get(event["tool_id"]))

    def _take_end(self, event: Event) -> None:
        self.close()
        if event.get("status") == "error":
            self.failure = text_of((event.get("error") or {}).get("message")) or self._error


class GeminiCliAgent(InstalledAgent):
    """Gemini CLI, Google's."""

    name = "gemini-cli"
    options_type = GeminiCliOptions
    npm = NpmProgram("@google/gemini-cli", "gemini")
    user_files = UserFiles(rules=".gemini/GEMINI.md", skills=".gemini/skills")
    reader_type = GeminiCliReader
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    options: GeminiCliOptions
    family: Family = "google"

    def make_ready(self, stage: StagedFiles) -> None:
        """Write settings that choose the API key, which with a ``base_url`` can be chosen in no other way."""
        settings: dict[str, Any] = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        }
        if self.options.max_turns is not None:
            settings["model"] = {"maxSessionTurns": self.options.max_turns}
        write = f"mkdir -p ~/.gemini && printf %s {shlex.quote(json.dumps(settings))} >~/.gemini/settings.json"
        stage.run(f"[ -e ~/.gemini/settings.json ] || {{ {write}; }}")

    def stage_servers(self, stage: StagedFiles) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        settings = {"mcpServers": {server.key: _settings_of(server) for server in self.mcp_servers}}
        stage.add_servers(settings)

    def arguments(self, base_url: str) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        line = ["--output-format", "stream-json", "--yolo"]
        line += ["--model", self.model] if self.model is not None else []
        return [*line, "--resume", self._session] if self._session else line

    def variables(self, key_name: str, token: str, base_url: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        found = {"GEMINI_API_KEY": token, "GOOGLE_GEMINI_BASE_URL": base_url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        if self.mcp_servers:
            # Beside the user's settings, which the image may have; servers of all files are taken together.
            found["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] = SERVERS
        return found


def _settings_of(server: ToolServer) -> dict[str, Any]:
    """Return what Gemini CLI's settings say of an MCP server."""
    if server.transport == "stdio":
        return {"command": server.command, "args": [*server.args], "env": {**server.env}, "trust": True}
    address = "url" if server.transport == "sse" else "httpUrl"
    return {address: server.url, "headers": {**server.headers}, "trust": True}


def _exit_codes(entry: Event) -> dict[str, int]:
    """Return the exit codes of the commands in an entry of the log, by call id."""
    found = {}
    for call in entry.get("toolCalls") or ():
        shown = json.dumps(call.get("result"), ensure_ascii=False).replace("\\n", "\n")
        if call.get("name") == _SHELL and call.get("result") and "Output:" in shown:
            code = _EXIT_CODE.search(shown)
            found[str(call["id"])] = int(code[1]) if code else 0
    return found
