"""MCP servers as a task's ``[[environment.mcp_servers]]`` or a harness' file declares them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.model_options import without_secrets
from pytest_evocode.tasks import Task, resolve_env

Transport = Literal["stdio", "http", "sse"]
ALL_TRANSPORTS: frozenset[Transport] = frozenset(("stdio", "http", "sse"))
#: Other names of streamable HTTP, in task.toml and in files of CLIs.
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class ToolServer:
    """An MCP server, with the variables in its values filled in."""

    name: str
    transport: Transport
    command: str = ""
    """The program that is started in the container, for ``stdio``."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    """Where it listens, as the container reaches it, for ``http`` and ``sse``."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name as every CLI takes it."""
        return re.sub(r"[^A-Za-z0-9_-]", "_", self.name)

    @property
    def shown(self) -> str:
        """Its program, or its address without what may be secret in it: a password and the query."""
        parts = urlsplit(self.url)
        return self.command or parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    @property
    def host(self) -> str:
        """The host of its address; empty for ``stdio``."""
        return urlsplit(self.url).hostname or ""


class _FileEntry(BaseModel):
    """A server in a harness' file, in the form of Claude Code's ``.mcp.json``."""

    model_config = ConfigDict(extra="forbid")

    type: str | None = None
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_complete(self) -> _FileEntry:
        if self.type not in (None, "stdio", "sse", *_HTTP):
            raise ValueError(f"type is {self.type!r}; it has to be stdio, http or sse")
        if bool(self.command) == bool(self.url):
            raise ValueError("it has to have either a command or a url")
        if (self.type == "stdio") != bool(self.command) and self.type is not None:
            raise ValueError(f"a server of type {self.type} has a {'url' if self.command else 'command'}")
        without_secrets(self.env)
        without_secrets(self.headers)
        return self

    @property
    def transport(self) -> Transport:
        return "stdio" if self.command else "sse" if self.type == "sse" else "http"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    servers: dict[str, _FileEntry] = Field(alias="mcpServers", min_length=1)


def transport_of(transport: str) -> Transport:
    """Return how a server of task.toml is spoken to.

    >>> transport_of("streamable-http")
    'http'
    """
    return "http" if transport in _HTTP else "sse" if transport == "sse" else "stdio"


def servers_of_task(
    task: Task, environ: Mapping[str, str], withheld: Callable[[str], bool] = lambda name: False
) -> tuple[ToolServer, ...]:
    """Return the servers of a task; raises TaskError for a variable of a header that is not set, or withheld."""
    return tuple(
        ToolServer(
            name=server.name,
            transport=transport_of(server.transport),
            command=server.command or "",
            args=server.args,
            url=server.url or "",
            headers=resolve_env(server.headers, environ, path=task.file, withheld=withheld),
        )
        for server in task.config.environment.mcp_servers
    )


def servers_of_file(path: Path | None, environ: Mapping[str, str]) -> tuple[ToolServer, ...]:
    """Return the servers of a harness' file; none without one.

    Raises:
        UsageError: The file is none of servers, or asks for a variable that is not set.
    """
    if path is None:
        return ()
    try:
        declared = _File.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {_why(error)}; it has to be JSON such as {_EXAMPLE}") from None

    def filled(values: Any) -> Any:
        if isinstance(values, str):
            return _VARIABLE.sub(lambda match: _value(match, environ, path), values)
        if isinstance(values, dict):
            return {name: filled(value) for name, value in values.items()}
        return tuple(filled(value) for value in values)

    return tuple(
        ToolServer(name=name, transport=entry.transport, **filled(entry.model_dump(exclude={"type"})))
        for name, entry in declared.servers.items()
    )


_EXAMPLE = '{"mcpServers": {"NAME": {"command": "PROGRAM", "args": []}}} or {"type": "http", "url": "URL"}'


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}" if place else first["msg"]
    return str(error)


def _value(match: re.Match[str], environ: Mapping[str, str], path: Path) -> str:
    value = environ.get(match[1]) or match[2]
    if value is None:
        raise UsageError(f"{path}: ${{{match[1]}}} is not set; set it, or give a default: ${{{match[1]}:-value}}")
    return value


def hosts_of(servers: Iterable[ToolServer]) -> tuple[str, ...]:
    """Return the hosts of servers that are reached by an address, each once."""
    return tuple(dict.fromkeys(server.host for server in servers if server.host))


def check_transports(
    servers: Iterable[tuple[str, Transport]], taken: Collection[Transport], *, where: object, agent: str
) -> None:
    """Raise UsageError where an agent cannot use one of the servers, which are pairs of name and transport."""
    for name, transport in servers:
        if not taken:
            raise UsageError(
                f"{where}: the MCP server {name!r} is for the agent, and {agent} takes none; run the task with one "
                "that does, such as anthropic/MODEL or claude-code:MODEL"
            )
        if transport not in taken:
            raise UsageError(
                f"{where}: the MCP server {name!r} is reached by {transport}, which {agent} does not speak; it takes "
                f"{', '.join(sorted(taken))}"
            )


def check_names(task: Task, servers: Iterable[ToolServer], file: Path | None) -> None:
    """Raise UsageError where a harness' file and the task have a server of one name."""
    of_task = {server.name for server in task.config.environment.mcp_servers}
    for server in servers:
        if server.name in of_task:
            raise UsageError(f"{file}: {task.file} has an MCP server {server.name!r}, too; give this one another name")


def as_json(servers: Iterable[ToolServer]) -> dict[str, Any]:
    """Return servers in the form of a harness' file, which several CLIs read.

    >>> as_json([ToolServer("docs", "http", url="http://docs/mcp")])
    {'mcpServers': {'docs': {'type': 'http', 'url': 'http://docs/mcp', 'headers': {}}}}
    """
    found: dict[str, Any] = {}
    for server in servers:
        if server.transport == "stdio":
            found[server.key] = {"command": server.command, "args": [*server.args], "env": {**server.env}}
        else:
            found[server.key] = {"type": server.transport, "url": server.url, "headers": {**server.headers}}
    return {"mcpServers": found}
