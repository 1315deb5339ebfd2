"""The agent ``opencode``: ``opencode run --format json``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pytest_evocode.agents.installed.base import CliOptions, Event, InstalledAgent, Told, Version
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.errors import UsageError
from pytest_evocode.gateway import Family, Route
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.token_ids import TokenServer

_KEY = "EVOCODE_OPENCODE_KEY"


class _Provider(NamedTuple):
    """A provider that OpenCode knows; any other is taken for a server of OpenAI's API, which base_url names."""

    family: Family = "openai"
    """The APIs that OpenCode asks it by."""
    ending: str = ""
    """What OpenCode's address of a server has at its end."""
    server: str | None = None
    """The address of a server that is not the family's own."""
    keys: Sequence[str] = ()
    """Variables of its key, where they are not PROVIDER_API_KEY."""


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PROVIDERS = {name: _Provider(**about) for name, about in _TABLE.items()}


class OpenCodeOptions(CliOptions):
    """Options of OpenCode."""

    version: Version = "1.18.33"
    effort: str | None = None
    """Variant of the model, as OpenCode calls it."""
    token_ids: TokenServer | None = None
    """Record the ids and log-probabilities of all tokens, to train on: the kind of the server at ``base_url`` that is
    asked for them. One that says no ids ends the attempt with an error."""


class OpenCodeAgent(InstalledAgent):
    """OpenCode; its models are named ``provider/model``."""

    name = "opencode"
    options_type = OpenCodeOptions
    npm = NpmProgram("opencode-ai", "opencode", native=("*/opencode-linux-*/bin/opencode",), above=1)
    user_files = UserFiles(rules=".config/opencode/AGENTS.md", skills=".config/opencode/skills")
    options: OpenCodeOptions

    @property
    def _provider(self) -> str:
        return (self.model or "").partition("/")[0]

    @property
    def _about(self) -> _Provider:
        return _PROVIDERS.get(self._provider, _Provider())

    @property
    def family(self) -> Family:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return self._about.family

    @property
    def upstream(self) -> str | None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        if self.options.base_url is None:
            return self._about.server
        return self.options.base_url.rstrip("/").removesuffix(self._about.ending)

    @property
    def answered_by(self) -> dict[str, Any]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return {} if self.upstream == self._about.server else super().answered_by

    @property
    def keys(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return tuple(self._about.keys) or (f"{self._provider.upper().replace('-', '_')}_API_KEY",)

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        if "/" not in (self.model or ""):
            raise UsageError("opencode needs a model with its provider, such as opencode:anthropic/claude-sonnet-4-5")
        if self.options.base_url is None and self._provider not in _PROVIDERS:
            raise UsageError(
                f"where the models of {self._provider} are is not known; name the server's address with "
                "--evocode-agent-option base_url=URL"
            )
        if self.options.token_ids is not None and (self._provider in _PROVIDERS or self.options.base_url is None):
            raise UsageError(
                f"token_ids: OpenCode asks {self._provider} by an API of its own; name a server of your own, such as "
                "opencode:mine/MODEL with base_url=URL"
            )
        super().check(environ, budget)

    def route(self, key_name: str, key: str) -> Route:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return replace(super().route(key_name, key), token_ids=self.options.token_ids)

    def arguments(self, base_url: str) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        line = ["run", "--format", "json", "--thinking", "--model", self.model or ""]
        line += ["--variant", self.options.effort] if self.options.effort is not None else []
        # Without a title OpenCode asks a model for one, which its events do not count.
        return [*line, *(["--session", self._session] if self._session else ["--title", "evocode"])]

    def variables(self, key_name: str, token: str, base_url: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        address = base_url + self._about.ending
        provider: dict[str, Any] = {
            "options": {"apiKey": f"{{env:{_KEY}}}", "baseURL": address},
            "models": {(self.model or "").partition("/")[2]: {}},
        }
        if self._provider not in _PROVIDERS:
            provider |= {"npm": "@ai-sdk/openai-compatible", "name": self._provider}
        config: dict[str, Any] = {
            "provider": {self._provider: provider},
            "permission": "allow",
            "autoupdate": False,
            "share": "disabled",
        }
        if self.mcp_servers:
            config["mcp"] = {server.key: _settings_of(server) for server in self.mcp_servers}
        return {
            _KEY: token,
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            # What it would fetch at its start, and wait for where there is no network.
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def take(self, event: Event, told: Told) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        told.session = event.get("sessionID") or told.session
        if event.get("type") == "tool_use":
            told.exit_codes[event["part"]["callID"]] = int(event["part"]["state"]["metadata"]["exit"])
        elif event.get("type") == "error":
            error = event["error"]
            told.failure = str((error.get("data") or {}).get("message") or error.get("name"))


#: Its own limit is 5 seconds for a server to start, and then it does without.
_AT_ONCE = {"enabled": True, "timeout": 60_000}


def _settings_of(server: ToolServer) -> dict[str, Any]:
    """Return what OpenCode's configuration says of an MCP server."""
    if server.transport == "stdio":
        command = [server.command, *server.args]
        return {"type": "local", "command": command, "environment": {**server.env}} | _AT_ONCE
    # It tries streamable HTTP, and then SSE.
    return {"type": "remote", "url": server.url, "headers": {**server.headers}} | _AT_ONCE
