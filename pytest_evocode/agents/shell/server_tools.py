"""The tools of MCP servers that the shell agent's model may call beside ``bash``."""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.shell.bash_tool import Deadline
from pytest_evocode.agents.shell.conversation import head_and_tail
from pytest_evocode.agents.shell.image_tool import taken_image
from pytest_evocode.errors import AgentFault, Cancelled, UsageError
from pytest_evocode.llm.protocol import RequestedCall, ShownImage, Tool
from pytest_evocode.trajectories.recorder import Action

if TYPE_CHECKING:
    from pytest_evocode.agents.mcp.sessions import TurnSessions

logger = logging.getLogger(__name__)

_POLL = 0.1  # seconds between checks whether the session was stopped
_LONGEST_NAME = 64  # characters that providers take
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class ServerResult:
    """The result of a call."""

    shown: str
    """What the model sees."""
    action: Action
    extra: Mapping[str, Any]
    """For the record of the action."""
    images: tuple[ShownImage, ...] = ()


@dataclass(frozen=True, slots=True)
class _ServerTool:
    server: str
    name: str
    offered: Tool


@dataclass(slots=True)
class ServerTools:
    """The tools of all servers, by the names that the model knows; servers run during turns only."""

    _tools: dict[str, _ServerTool] = field(default_factory=dict)
    _sessions: TurnSessions | None = None
    _failures: dict[str, str] = field(default_factory=dict)
    """Why servers are not there in this turn."""

    @property
    def offered(self) -> list[Tool]:
        """The tools in the order of the servers."""
        return [tool.offered for tool in self._tools.values()]

    def has(self, name: str) -> bool:
        """Whether a tool of that name is a server's."""
        return name in self._tools

    def open(self, context: RoundContext, servers: Sequence[ToolServer]) -> None:
        """Start the servers for a turn.

        One that was there in an earlier turn and cannot be started now is recorded: the agent may have broken it.

        Raises:
            AgentFault: A server cannot be started that was never there.
        """
        if not servers:
            return
        from pytest_evocode.agents.mcp.sessions import TurnSessions

        self._failures = {}
        self._sessions = TurnSessions(context.environment, context.round.agent_user)
        for server in servers:
            try:
                tools = self._sessions.start(server)
            except ConnectionError as error:
                known = any(tool.server == server.name for tool in self._tools.values())
                why = str(error).replace(server.url or server.shown, server.shown)
                if not known:
                    self.close()
                    how = server.shown
                    raise AgentFault(f"the MCP server {server.name!r} ({how}) could not be started: {why}") from None
                self._failures[server.name] = why
                context.recorder.say("system", f"The MCP server {server.name!r} could not be started: {why}")
                continue
            self._learn(server, [Tool(each.name, each.description or "", each.input_schema) for each in tools])
            logger.info("%s: the MCP server %r has %d tools", context.round.name, server.name, len(tools))

    def _learn(self, server: ToolServer, tools: Sequence[Tool]) -> None:
        self._tools = {name: tool for name, tool in self._tools.items() if tool.server != server.name}
        for tool in tools:
            name = _NOT_IN_NAMES.sub("_", f"mcp__{server.key}__{tool.name}")[:_LONGEST_NAME]
            number = 2
            while name in self._tools:
                name = f"{name[: _LONGEST_NAME - 3]}_{number}"
                number += 1
            self._tools[name] = _ServerTool(server.name, tool.name, Tool(name, tool.description, tool.parameters))

    def close(self) -> None:
        """End the servers at the end of a turn."""
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            sessions.close()

    def run(
        self, call: RequestedCall, context: RoundContext, deadline: Deadline, *, seconds: float, limit: int, sees: bool
    ) -> ServerResult:
        """Run a call.

        Args:
            call: Names a tool of a server.
            context: The agent's turn.
            deadline: The turn's.
            seconds: Time for the call.
            limit: Characters of the result that the model sees.
            sees: Whether it is shown images.

        Raises:
            Cancelled: The session was stopped.
        """
        tool = self._tools[call.name]
        about: dict[str, Any] = {"server": tool.server, "tool": tool.name}
        began = time.monotonic()
        late, failed = False, True
        images: tuple[ShownImage, ...] = ()
        if call.arguments is None:
            shown = f"The arguments are no JSON object: {call.written[:200]}"
        elif self._sessions is None or tool.server in self._failures:
            shown = f"[the MCP server {tool.server} is not there: {self._failures.get(tool.server, 'it has ended')}]"
        else:
            left = math.inf if deadline.left is None else deadline.left
            answer = self._sessions.call(tool.server, tool.name, call.arguments)
            until = began + min(seconds, left)
            while (
                not wait([answer], timeout=_POLL).done and time.monotonic() < until and not context.cancelled.is_set()
            ):
                pass
            if context.cancelled.is_set():
                raise Cancelled("the session was stopped")
            if late := not answer.done():
                answer.cancel()
                shown = f"[no answer within {min(seconds, left):g} seconds]"
            else:
                shown, failed, images = _outcome(tool.server, answer, sees=sees)
        action = Action(seconds=time.monotonic() - began, timed_out=late)
        return ServerResult(head_and_tail(shown, limit), action, {"mcp": about | {"failed": failed}}, images)


def check_sdk() -> None:
    """Raise UsageError where the SDK is not installed."""
    if find_spec("mcp") is None:
        raise UsageError("MCP servers need the package mcp; install it: pip install 'pytest-evocode[mcp]'")


def _outcome(server: str, answer: Any, *, sees: bool) -> tuple[str, bool, tuple[ShownImage, ...]]:
    """Return what the model is told of an answer, whether it is a failure, and the images in it."""
    try:
        result = answer.result()
    except ConnectionError as error:
        return f"[MCP server {server}: {error}]", True, ()
    parts, images = [], []
    for block in result.content:
        image = taken_image(block.data) if sees and block.type == "image" else None
        if image is not None:
            images.append(image)
        parts.append(f"[image: {image.media_type}]" if image is not None else _text(block))
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    shown = "\n".join(parts) or "[no output]"
    return (f"[error]\n{shown}" if result.is_error else shown), bool(result.is_error), (*images,)


def _text(block: Any) -> str:
    """Return a part of a result as text; of what is none it is said what it is."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource" and getattr(block.resource, "text", None) is not None:
        return str(block.resource.text)
    if block.type == "resource_link":
        return f"[resource {block.uri}]"
    return f"[{block.type}: {getattr(block, 'mime_type', None) or 'of unknown kind'}]"
