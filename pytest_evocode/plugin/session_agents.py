"""The agents that the command line names, and how each attempt gets an agent of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_evocode.agents.declarations import read_declarations
from pytest_evocode.agents.protocol import close_agent, installation_of, is_deterministic, is_interactive
from pytest_evocode.agents.specs import (
    Option,
    answered_by,
    checked_options,
    find_kind,
    harness_of,
    make_agent,
    options_of,
)
from pytest_evocode.errors import UsageError
from pytest_evocode.names import agent_id
from pytest_evocode.plugin.settings import Settings, has_workers, setting_name
from pytest_evocode.results.identity import distinct_names, identity_of

if TYPE_CHECKING:
    from pytest_evocode.agents import Agent
    from pytest_evocode.environments import Installation
    from pytest_evocode.llm.budget import Budget

_Answer = TypeVar("_Answer")
#: Options that say how a model is reached; what is reached by them the agent says itself.
_CONNECTION_OPTIONS = frozenset({"base_url", "ca", "key_env", "retries", "retry_seconds", "max_connections"})


@dataclass(frozen=True, slots=True)
class SessionAgent:
    """An agent by its name on the command line, its name in node ids, and what it is made of."""

    name: str
    id: str
    spec: str
    options: Mapping[str, Option] = field(default_factory=dict)
    command: Mapping[str, Any] = field(default_factory=dict)
    """How the project declares the command that it is, if it is one."""
    harness: Mapping[str, str] = field(default_factory=dict)
    """Name and version of what drives it, where that is known."""
    answered_by: Mapping[str, Any] = field(default_factory=dict)
    """What decides who answers besides that; see :class:`~pytest_evocode.agents.protocol.Agent`."""
    own_name: str = ""
    """Its name by itself, where ``id`` is one that tells it apart from another agent of the session."""

    @property
    def description(self) -> dict[str, Any]:
        """What the agent is made of, for records: its spec and options, with hashes of files that these name.

        A command's declaration belongs to it, and the server that is asked, unless it is the provider's own; by what
        means it is reached (:data:`_CONNECTION_OPTIONS`) does not.
        """
        values = {name: _described(self.options[name]) for name in self.options if name not in _CONNECTION_OPTIONS}
        command = {name: value for name, value in self.command.items() if name != "base_url"}
        asked = {name: value for name, value in self.answered_by.items() if name != "headers"}
        parts = {
            "spec": self.spec,
            "options": dict(sorted((values if command else values | asked).items())),
            "command": command and command | asked,
            "headers": dict(self.answered_by.get("headers", {})),
            "harness": dict(self.harness),
            "name": self.own_name,
        }
        return {name: part for name, part in parts.items() if part}


class Roster:
    """The agents of a session, which the project may have declared.

    Making one raises pytest.UsageError for an agent or option that is unknown.
    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        try:
            self.declarations = read_declarations(_files(config))
            self._options = _session_options(config, settings)
            self.agents = [self._resolve(name) for name in settings.agents]
            self._refuse_unused()
            self.agents = _told_apart([self._as_made(agent) for agent in self.agents])
        except UsageError as error:
            raise pytest.UsageError(f"--evocode-agent: {error}") from None

    def make(self, agent: SessionAgent) -> Agent:
        """Return a new agent, for one attempt."""
        made = self.make_by_hook(agent)
        return make_agent(agent.spec, agent.options, self.declarations) if made is None else made

    def make_by_hook(self, agent: SessionAgent) -> Agent | None:
        """Return a new agent where a hook of the project or of another plugin makes it, else None."""
        options = {name: option.value for name, option in agent.options.items()}
        made: Agent | None = self._config.hook.pytest_evocode_make_agent(
            config=self._config, name=agent.spec, options=options
        )
        return made

    def _as_made(self, agent: SessionAgent) -> SessionAgent:
        """Return an agent with what only the agent that is made of it can say."""
        made = self.make(agent)
        return replace(agent, harness=harness_of(made, agent.spec), answered_by=answered_by(made, agent.options))

    @cached_property
    def deterministic(self) -> frozenset[str]:
        """The ids of the agents that do the same in every attempt."""
        return frozenset(id for id, is_so in self._ask_each(is_deterministic).items() if is_so)

    @property
    def are_interactive(self) -> bool:
        """Whether an agent needs the terminal to itself."""
        return any(self._ask_each(is_interactive).values())

    @cached_property
    def installations(self) -> dict[str, Installation]:
        """What the agents that need something in the image need there, by their ids."""
        found = self._ask_each(installation_of)
        return {id: installation for id, installation in found.items() if installation is not None}

    def _ask_each(self, question: Callable[[Agent], _Answer]) -> dict[str, _Answer]:
        """Return what is found of each agent, by its id; agents are made for that and closed again."""
        answers = {}
        for agent in self.agents:
            made = self.make(agent)
            try:
                answers[agent.id] = question(made)
            finally:
                close_agent(made)
        return answers

    def check(self, settings: Settings) -> None:
        """Raise UsageError if an agent would not work because a key, a package, a price or a terminal is missing."""
        for agent in self.agents:
            made = self.make(agent)
            if is_interactive(made) and (
                has_workers(self._config) or settings.cluster is not None or settings.jobs > 1
            ):
                raise UsageError(
                    f"{agent.name} needs one process with a terminal, and one attempt at a time; leave out -n and "
                    "--evocode-jobs"
                )
            check = getattr(made, "check", None)
            if check is not None:
                check(os.environ, settings.budget)

    def check_prices(self, budget: Budget) -> None:
        """Raise UsageError if a budget limits the cost and an agent says that it does not know its model's price."""
        self._ask_each(lambda made: getattr(made, "check_price", lambda budget: None)(budget))

    def _resolve(self, name: str) -> SessionAgent:
        declared = self.declarations.agents.get(name)
        spec = name if declared is None else declared.values["spec"]
        options = {} if declared is None else options_of(declared)
        command = self.declarations.commands.get(spec.removeprefix("cmd:")) if spec.startswith("cmd:") else None
        values = {} if command is None else command.values
        return SessionAgent(name, agent_id(name), spec, options | self._taken(spec), values)

    def _taken(self, spec: str) -> dict[str, Option]:
        """Return the session's options that an agent takes; not every agent has to know all of them."""
        if not self._options:
            return {}
        try:
            kind = find_kind(spec, self.declarations)
        except UsageError:  # A hook may know the agent.
            return dict(self._options)
        return {name: option for name, option in self._options.items() if kind.takes(name)}

    def _refuse_unused(self) -> None:
        for name, option in self._options.items():
            if not any(name in agent.options for agent in self.agents):
                spec = self.agents[0].spec
                checked_options(spec, find_kind(spec, self.declarations), {name: option})


def _told_apart(agents: Sequence[SessionAgent]) -> list[SessionAgent]:
    """Return the agents of a session, with names of their own where they would have the same."""
    if len({agent.id for agent in agents}) == len(agents):
        return list(agents)
    who = [identity_of(agent.description, agent.id) for agent in agents]
    names = distinct_names([(agent.name, identity) for agent, identity in zip(agents, who, strict=True)])
    # What differs only in where a recording lies has to have the name to be told apart by.
    return [
        replace(agent, id=name, own_name=agent.id if name != agent.id and who.count(identity) == 1 else "")
        for agent, name, identity in zip(agents, names, who, strict=True)
    ]


def _files(config: pytest.Config) -> list[Path]:
    """Return the files where a project may declare agents: pytest's own, and the pyproject.toml beside it."""
    own = [config.inipath] if config.inipath is not None else []
    return [*own, config.rootpath / "pyproject.toml"]


def _session_options(config: pytest.Config, settings: Settings) -> dict[str, Option]:
    directory = config.inipath.parent if config.inipath is not None else config.rootpath
    name = "evocode_agent_options"
    of_setting = _parsed(config.getini(name), setting_name(config, name), directory)
    return of_setting | _parsed(settings.agent_options, "--evocode-agent-option", config.invocation_params.dir)


def _parsed(texts: list[str] | tuple[str, ...], where: str, base: Path) -> dict[str, Option]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{where}: {text!r}: write it as option=value, such as effort=high")
        found[name.strip().replace("-", "_")] = Option(value.strip(), where, base)
    return found


def _described(option: Option) -> Any:
    """Return an option's value, with a hash of the contents where it names a file or directory."""
    value = option.value
    path = option.base / os.path.expanduser(value) if isinstance(value, str) and value else None
    if path is None or not os.path.exists(path):  # Of a text that no file could be named, pathlib raises.
        return value
    digest = hashlib.sha256()
    for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if each.is_file():
            digest.update(f"{each.relative_to(path)}\0".encode() + each.read_bytes())
    return {"path": value, "sha256": digest.hexdigest()}
