"""The agent ``claude-code``: ``claude -p`` of Anthropic."""

from __future__ import annotations

import uuid
from typing import Literal

from pydantic import Field

from pytest_evocode.agents.harness import read_file
from pytest_evocode.agents.installed.base import CliOptions, Event, InstalledAgent, Told, Version
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.agents.installed.program_run import SERVERS, StagedFiles, UserFiles
from pytest_evocode.agents.mcp.servers import as_json
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.gateway import Family


class ClaudeCodeOptions(CliOptions):
    """Options of Claude Code."""

    version: Version = "2.1.332"
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How hard the model is to think."""
    thinking: int | None = Field(default=None, ge=0)
    """Tokens that the model may think before a reply."""
    max_turns: int | None = Field(default=None, gt=0)
    """Limit of the model's turns in one round."""


class ClaudeCodeAgent(InstalledAgent):
    """Claude Code, Anthropic's CLI; the harness's prompt is added to its system prompt."""

    name = "claude-code"
    options_type = ClaudeCodeOptions
    npm = NpmProgram("@anthropic-ai/claude-code", "claude", native=("*/claude-code-linux-*/claude",))
    user_files = UserFiles(rules=".claude/CLAUDE.md", skills=".claude/skills")
    tells_failures = True
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    bearer_keys = keys[1:]
    options: ClaudeCodeOptions
    family: Family = "anthropic"

    @property
    def has_known_prices(self) -> bool:
        """Whether it asks Anthropic, the prices of whose models are known."""
        return self.options.base_url is None

    def arguments(self, base_url: str) -> list[str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        options = self.options
        line = ["-p", "--output-format", "json", "--dangerously-skip-permissions"]
        line += ["--model", self.model] if self.model is not None else []
        line += ["--effort", options.effort] if options.effort is not None else []
        line += ["--max-turns", str(options.max_turns)] if options.max_turns is not None else []
        line += ["--append-system-prompt", read_file(options.prompt)] if options.prompt is not None else []
        line += ["--mcp-config", SERVERS] if self.mcp_servers else []
        self._new_session = str(uuid.uuid4())  # An id that a turn in vain has had is taken.
        return [*line, *(["--resume", self._session] if self._session else ["--session-id", self._new_session])]

    def take(self, event: Event, told: Told) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        if event.get("type") != "result":
            return
        if event.get("subtype") == "error_max_turns":
            told.stopped = "claude-code: max_turns reached"
        elif event.get("is_error"):
            words = str(event.get("result") or "") or "; ".join(map(str, event.get("errors") or ()))
            told.failure = words or f"it ended with {event.get('subtype')}"

    def stage_servers(self, stage: StagedFiles) -> None:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        stage.add_servers(as_json(self.mcp_servers))

    def variables(self, key_name: str, token: str, base_url: str) -> dict[str, str]:
        """See :class:`~pytest_evocode.agents.installed.base.InstalledAgent`."""
        found = {
            key_name: token,
            "ANTHROPIC_BASE_URL": base_url,
            "IS_SANDBOX": "1",  # Without it, root may not skip the requests for permission.
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
        }
        if self.options.thinking is not None:
            found["MAX_THINKING_TOKENS"] = str(self.options.thinking)
        return found

    def text_for(self, context: RoundContext) -> str:
        """Return the instruction alone: the prompt is an argument."""
        return context.instruction

    def introduce(self, context: RoundContext) -> None:
        """Record the prompt in the first turn."""
        if self.options.prompt is not None and not self._session:
            context.recorder.say("system", read_file(self.options.prompt))
