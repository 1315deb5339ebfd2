"""The shell agent's tools: ``bash``, ``view_image`` for models that see, and those of MCP servers."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import math
import posixpath
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.shell.conversation import head_and_tail
from pytest_evocode.agents.turn_time import Deadline, wait_for
from pytest_evocode.agents.words import TOOLS
from pytest_evocode.environments import read_environment_file
from pytest_evocode.environments.command_environment import fits_argument
from pytest_evocode.errors import AgentFault, UnreadableFile, UsageError
from pytest_evocode.llm.base_client import name_taken
from pytest_evocode.llm.protocol import RequestedCall, ShownImage, Tool
from pytest_evocode.trajectories.recorder import Action

if TYPE_CHECKING:
    from pytest_evocode.agents.mcp.sessions import TurnSessions


logger = logging.getLogger(__name__)

BASH = TOOLS["bash"]
# At the deadline only the script's own process group dies; background processes of earlier scripts live on. The last
# line has no `exec`, because bash may be a function: see environments/own_shell.py.
_WITH_DEADLINE = """
if command -v timeout >/dev/null && timeout -k 1 5 true 2>/dev/null; then
    exec timeout -k 2 "$1" bash -c "$2"
fi
bash -c "$2"
"""
_TIMED_OUT = (124, 137)
#: Models may ask for more seconds than clocks can count.
_LONGEST = 7 * 86_400.0  # seconds


def coerced(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments with those of a type that can only mean one thing in the type that they have.

    Models write a number as text, the words of a command as a list, or null for an argument that they leave out.

    >>> coerced({"command": ["ls", "a b"], "timeout": "60"}), coerced({"command": "ls", "timeout": None})
    ({'command': "ls 'a b'", 'timeout': 60.0}, {'command': 'ls'})
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    command, timeout = given.get("command"), given.get("timeout")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        given["command"] = command[0] if len(command) == 1 else shlex.join(command)
    if isinstance(timeout, str):
        with contextlib.suppress(ValueError):
            given["timeout"] = float(timeout)
    return given


def complaint_about(call: RequestedCall, others: Sequence[Tool] = ()) -> str:
    """Return what is wrong with a call, for the model; empty where nothing is. ``others`` are its other tools."""
    if call.name != BASH.name:
        known = ", ".join(repr(tool.name) for tool in (BASH, *others))
        return f"There is no tool {call.name!r}; {'there are' if others else 'the only one is'} {known}."
    if call.arguments is None:
        cut = (
            " [...] If they were cut off at the limit of a reply, write less in one call." if call.written[200:] else ""
        )
        return f"The arguments are no JSON object: {call.written[:200]}{cut}"
    arguments = coerced(call.arguments)
    command, timeout = arguments.get("command"), arguments.get("timeout", 1)
    if not isinstance(command, str) or not command.strip():
        return "The argument 'command' has to be a text, and not an empty one."
    if "\0" in command:
        return "The argument 'command' holds a null character, which no script can have."
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        return "The argument 'timeout' has to be a number of seconds above 0."
    return ""


def run_script(
    script: str, context: RoundContext, deadline: Deadline, *, seconds: float, limit: int, cwd: str | None = None
) -> tuple[str, Action]:
    """Run a script; return what the model sees of it, and how it ended.

    At the turn's own deadline all processes of the container are killed.

    Args:
        script: Bash script.
        context: The agent's turn.
        deadline: The turn's.
        seconds: Time for the script; more than a week counts as a week.
        limit: Characters of the output that the model sees.
        cwd: Directory that it runs in; None for the working directory.
    """
    seconds, left = min(seconds, _LONGEST), deadline.left
    limited = ["bash", "-c", _WITH_DEADLINE, "bash", f"{seconds:g}", script]
    result = context.environment.exec(
        # What is too long for an argument ends with everything else that runs.
        limited if fits_argument(script) else script,
        user=context.round.agent_user,
        cwd=cwd,
        # Beyond the margin the environment kills everything, in images without a `timeout` program.
        timeout=seconds + 10 if left is None else min(seconds + 10, left),
    )
    late = result.timed_out or (result.exit_code in _TIMED_OUT and result.seconds >= seconds)
    if late:
        logger.info("%s %s: a command was killed after %.1f s", context.task.name, context.round.name, result.seconds)
    else:
        logger.debug("a command ended with exit code %s after %.1f s", result.exit_code, result.seconds)
    shown = head_and_tail(result.output, limit).rstrip("\n")
    ending = f"[killed after {min(result.seconds, seconds):g} seconds]" if late else f"[exit code {result.exit_code}]"
    action = Action(exit_code=None if late else result.exit_code, seconds=result.seconds, timed_out=late)
    return (f"{shown}\n{ending}" if shown else ending), action


#: Bytes of an image: providers take 5 MB of base64 text.
LARGEST_IMAGE = 3_750_000
VIEW_IMAGE = TOOLS["view_image"]


def view_image(call: RequestedCall, context: RoundContext) -> tuple[str, tuple[ShownImage, ...]]:
    """Return what the model is told of an image file, and the image, where there is one that it can see."""
    path = (call.arguments or {}).get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        return "The argument 'path' has to be the path of a file.", ()
    whole = posixpath.join(context.environment.workdir, path)
    try:
        data = read_environment_file(context.environment, whole, LARGEST_IMAGE)
    except UnreadableFile as error:
        return f"[{path} cannot be shown: {error}; an image may have {LARGEST_IMAGE} bytes]", ()
    if data is None:
        return f"[{path}: there is no such file]", ()
    media_type = media_type_of(data)
    if media_type is None:
        return f"[{path} is no PNG, JPEG, GIF or WebP image]", ()
    return f"[{path}: {media_type}, {len(data)} bytes]", (ShownImage(media_type, base64.b64encode(data).decode()),)


def media_type_of(data: bytes) -> str | None:
    r"""Return the media type of an image by its first bytes; None for another file.

    >>> media_type_of(b"\x89PNG\r\n\x1a\n..."), media_type_of(b"RIFF....WAVE")
    ('image/png', None)
    """
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    signs = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
    return next((f"image/{kind}" for sign, kind in signs.items() if data.startswith(sign)), None)


def taken_image(data: str) -> ShownImage | None:
    """Return an image that a server's tool gave as base64; None for one that no model would take."""
    try:
        found = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    kind = media_type_of(found)
    return ShownImage(kind, data) if kind is not None and len(found) <= LARGEST_IMAGE else None


def recorded(shown: str, images: tuple[ShownImage, ...], context: RoundContext) -> Any:
    """Return a result as the trajectory has it: text, or where there are images a list of parts with their files."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": shown}]
    for image in images:
        path = context.recorder.keep_image(image.media_type, base64.b64decode(image.data))
        if path is not None:
            parts.append({"type": "image", "source": {"media_type": image.media_type, "path": path}})
    return parts if len(parts) > 1 else shown


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
            name = name_taken(f"mcp__{server.key}__{tool.name}")
            number = 2
            while name in self._tools:
                name = f"{name[:61]}_{number}"  # Providers take 64 characters.
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
            if late := not wait_for(answer, context.cancelled, lambda: time.monotonic() >= until):
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
