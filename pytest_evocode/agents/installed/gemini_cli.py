"""The agent ``gemini-cli``: ``gemini --output-format stream-json`` of Google."""

from __future__ import annotations

import json
import shlex
from typing import Any

from pydantic import Field

from pytest_evocode.agents.installed.base import CliOptions, Event, InstalledAgent, Told, Version
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import SERVERS, StagedFiles, UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.gateway import Family


class GeminiCliOptions(CliOptions):
    """Options of Gemini CLI."""

    #: Versions 0.44.0 to 0.61.0 send the results of earlier rounds' calls twice (google-gemini/gemini-cli#29365), and
    #: every round after the first fails.
    version: Version = "0.43.0"
    max_turns: int | None = Field(default=None, gt=0)
    """Limit of the model's turns in the whole session."""


class GeminiCliAgent(InstalledAgent):
    """Gemini CLI, Google's."""

    name = "gemini-cli"
    options_type = GeminiCliOptions
    npm = NpmProgram("@google/gemini-cli", "gemini")
    user_files = UserFiles(rules=".gemini/GEMINI.md", skills=".gemini/skills")
    tells_failures = True
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

    def take(self, event: Event, told: Told) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        if event.get("type") == "init":
            told.session = str(event["session_id"])
        elif event.get("type") == "result" and event.get("status") == "error":
            told.failure = str((event.get("error") or {}).get("message") or "it ended with an error")


def _settings_of(server: ToolServer) -> dict[str, Any]:
    """Return what Gemini CLI's settings say of an MCP server."""
    if server.transport == "stdio":
        return {"command": server.command, "args": [*server.args], "env": {**server.env}, "trust": True}
    address = "url" if server.transport == "sse" else "httpUrl"
    return {address: server.url, "headers": {**server.headers}, "trust": True}
