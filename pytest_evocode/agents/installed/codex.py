"""The agent ``codex``: ``codex exec --json`` of OpenAI."""

from __future__ import annotations

import json
from typing import Any, Literal

from pytest_evocode.agents.installed.base import CliOptions, Event, InstalledAgent, Told, Version
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.gateway import Family

#: How its words for a reply end that has come to its limit: no error of the provider's or its own.
_CUT_OFF = "reason: max_output_tokens"
_KEY = "CODEX_API_KEY"
_PROVIDER = "evocode"


class CodexOptions(CliOptions):
    """Options of Codex."""

    version: Version = "0.171.0"
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How hard the model is to think."""


class CodexAgent(InstalledAgent):
    """Codex, OpenAI's CLI."""

    name = "codex"
    options_type = CodexOptions
    npm = NpmProgram("@openai/codex", "codex", native=("*/vendor/*/bin/codex", "*/vendor/*/codex/codex"), above=1)
    user_files = UserFiles(rules=".codex/AGENTS.md", skills=".codex/skills")
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

    def take(self, event: Event, told: Told) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        kind = event.get("type")
        if kind == "thread.started":
            told.session = str(event["thread_id"])
        elif kind == "turn.failed":
            words = str(event["error"]["message"])
            if words.endswith(_CUT_OFF):
                told.stopped = "cut off: the model's last reply reached the limit of its tokens, at which codex ends"
            else:
                told.failure = words


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
