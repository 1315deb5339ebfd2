"""The agent ``opencode``: ``opencode run --format json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent, Version
from pytest_evocode.agents.installed.event_reader import Event, EventReader, text_of
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import UserFiles
from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.protocol import Ending
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall

_KEY = "EVOCODE_OPENCODE_KEY"
#: Variables of providers' keys where they are not PROVIDER_API_KEY.
_KEYS = {
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "github-models": ("GITHUB_TOKEN",),
}
#: Providers that OpenCode knows; with base_url any other is taken for a server compatible with OpenAI's.
_HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai": "api.openai.com",
    "google": "generativelanguage.googleapis.com",
    "openrouter": "openrouter.ai",
    "mistral": "api.mistral.ai",
    "groq": "api.groq.com",
    "xai": "api.x.ai",
    "deepseek": "api.deepseek.com",
}
#: Why a reply ended, in one word for all providers, by OpenCode's.
_ENDINGS: dict[str, Ending] = {"stop": "done", "tool-calls": "calls", "length": "length", "content-filter": "filtered"}


class OpenCodeOptions(CliOptions):
    """Options of OpenCode."""

    version: Version = "1.18.33"
    effort: str | None = None
    """Variant of the model, as OpenCode calls it."""


class OpenCodeReader(EventReader):
    """Reads the output of ``--format json``: the parts of a reply, its calls as they are done, and last its tokens."""

    _answered = False
    """Whether the reply that is being printed is recorded, at least in part."""

    def take(self, event: Event) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self.session = event.get("sessionID") or self.session
        kind, part = event.get("type"), event.get("part") or {}
        if kind == "step_start":
            self._answered = False
        elif kind == "text":
            self._texts.append(part["text"])
        elif kind == "reasoning":
            self._thoughts.append(part["text"])
        elif kind == "tool_use":
            self._take_call(part)
        elif kind == "step_finish":
            self._flush_reply()
            reason = str(part.get("reason") or "")
            self.refused = reason if reason == "content-filter" else ""
            facts = {"stop_reason": reason, "ending": _ENDINGS.get(reason, "unknown")} if reason else {}
            self.recorder.amend(usage=self._usage(part), notes=facts)
        elif kind == "error":
            error = event.get("error") or {}
            self.failure = text_of((error.get("data") or {}).get("message")) or text_of(error.get("name"))

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self.flush()

    def _flush_reply(self, *calls: ToolCall) -> None:
        """Record the reply so far; one without words and calls is one as well."""
        if self._answered or calls or self._texts or self._thoughts:
            self.flush(calls, continues=self._answered)
        else:
            self.reply("")
        self._answered = True

    def _take_call(self, part: Event) -> None:
        state = part["state"]
        call_id, time = part["callID"], state.get("time") or {}
        call = ToolCall(tool_call_id=call_id, function_name=part["tool"], arguments=state.get("input") or {})
        self._flush_reply(call)
        code = (state.get("metadata") or {}).get("exit")
        self.result(
            call_id,
            text_of(state.get("output")) or text_of(state.get("error")),
            exit_code=code if isinstance(code, int) else None,
            seconds=(time["end"] - time["start"]) / 1000 if {"start", "end"} <= time.keys() else None,
        )

    def _usage(self, part: Event) -> Usage:
        tokens = part["tokens"]
        cache = tokens.get("cache") or {}
        usage = self.usage(
            prompt=tokens["input"] + cache.get("read", 0) + cache.get("write", 0),
            completion=tokens["output"] + tokens.get("reasoning", 0),
            cached=cache.get("read", 0),
            written=cache.get("write", 0),
            reasoning=tokens.get("reasoning", 0),
        )
        # OpenCode reports a cost of 0 for models whose price it does not know.
        return usage.model_copy(update={"cost_usd": part["cost"]}) if part.get("cost") else usage


class OpenCodeAgent(InstalledAgent):
    """OpenCode; its models are named ``provider/model``."""

    name = "opencode"
    options_type = OpenCodeOptions
    npm = NpmProgram("opencode-ai", "opencode", native=("*/opencode-linux-*/bin/opencode",), above=1)
    user_files = UserFiles(rules=".config/opencode/AGENTS.md", skills=".config/opencode/skills")
    reader_type = OpenCodeReader
    options: OpenCodeOptions

    @property
    def _provider(self) -> str:
        return (self.model or "").partition("/")[0]

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        return (_HOSTS[self._provider],) if self._provider in _HOSTS else ()

    @property
    def keys(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        usual = f"{self._provider.upper().replace('-', '_')}_API_KEY"
        return _KEYS.get(self._provider, (usual,))

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        if "/" not in (self.model or ""):
            raise UsageError("opencode needs a model with its provider, such as opencode:anthropic/claude-sonnet-4-5")
        super().check(environ, budget)

    def arguments(self) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        line = ["run", "--format", "json", "--thinking", "--model", self.model or ""]
        line += ["--variant", self.options.effort] if self.options.effort is not None else []
        # Without a title OpenCode asks a model for one, which its events do not count.
        return [*line, *(["--session", self._session] if self._session else ["--title", "evocode"])]

    def variables(self, key_name: str, key: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        provider: dict[str, Any] = {"options": {"apiKey": f"{{env:{_KEY}}}"}}
        if self.options.base_url is not None:
            provider["options"]["baseURL"] = self.options.base_url
            provider["models"] = {(self.model or "").partition("/")[2]: {}}
            if self._provider not in _HOSTS:
                provider |= {"npm": "@ai-sdk/openai-compatible", "name": self._provider}
        config: dict[str, Any] = {
            "provider": {self._provider: provider},
            "permission": "allow",
            "autoupdate": False,
            "share": "disabled",
        }
        if self.mcp_servers:
            config["mcp"] = {server.key: _settings_of(server) for server in self.mcp_servers}
        return {_KEY: key, "OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1"}


#: Its own limit is 5 seconds for a server to start, and then it does without.
_AT_ONCE = {"enabled": True, "timeout": 60_000}


def _settings_of(server: ToolServer) -> dict[str, Any]:
    """Return what OpenCode's configuration says of an MCP server."""
    if server.transport == "stdio":
        command = [server.command, *server.args]
        return {"type": "local", "command": command, "environment": {**server.env}} | _AT_ONCE
    # It tries streamable HTTP, and then SSE.
    return {"type": "remote", "url": server.url, "headers": {**server.headers}} | _AT_ONCE
