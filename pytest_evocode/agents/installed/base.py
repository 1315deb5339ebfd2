"""The base class of the coding CLIs: their npm packages, keys, sessions, harness files, and how a turn is run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pytest_evocode.agents.harness import CUT_OFF, CUT_REPLIES, HarnessOptions, check_files, read_file
from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.agents.installed.model_access import ModelAccess
from pytest_evocode.agents.installed.npm_program import LATEST, NpmProgram
from pytest_evocode.agents.installed.program_run import (
    ProgramRun,
    StagedFiles,
    UserFiles,
    run_program,
    staged,
)
from pytest_evocode.agents.mcp.servers import (
    ALL_TRANSPORTS,
    ToolServer,
    Transport,
    check_names,
    check_transports,
    hosts_of,
    servers_of_file,
)
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.environments import Installation
from pytest_evocode.errors import AgentFault, UsageError
from pytest_evocode.gateway import Family, Route
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.connection import check_key_name
from pytest_evocode.llm.model_options import Address, Models, Variables
from pytest_evocode.llm.prices import ModelFacts, find_model_facts
from pytest_evocode.llm.providers import PROVIDERS
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import AgentInfo

_SHOWN_LINES = 20
_VARIABLE = re.compile(r"\$\{(\w+)\}")

Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]


Event = Mapping[str, Any]


@dataclass(slots=True)
class Told:
    """What a CLI says itself of a turn, in the events that it prints."""

    session: str = ""
    """Its id of the session, once there is something to be resumed."""
    failure: str = ""
    """Why it could not do its work, in its own words."""
    stopped: str = ""
    """Why it ended the turn before the model did."""
    exit_codes: dict[str, int] = field(default_factory=dict)
    """Those of commands that it tells its model nothing of, by call."""


class CliOptions(HarnessOptions):
    """Options of all coding CLIs."""

    version: Version = LATEST
    """Version of the npm package; the default is one that was tried. ``latest`` is looked up once a day."""
    base_url: Address | None = Field(default=None, examples=["http://model-server:8000"])
    """Address of the model's server as this machine reaches it; None for the provider's own."""
    key_env: str | None = Field(default=None, min_length=1, examples=["MY_API_KEY"])
    """Variable of this machine that holds the API key, where it is none of the CLI's own."""
    env: Variables = {}
    """Further variables for the CLI; ``${NAME}`` stands for a variable of this machine, which is how a secret is
    given."""
    models: Models = Field(default=(), examples=[["claude-haiku-4-5*"]])
    """Patterns of models that it may ask, which else are all of the account: others are refused as not found, also
    those that it asks for titles and the like."""
    prices: Path | None = None
    """JSON or TOML file of prices, which come before our own."""

    ca: Path | None = None
    """File of certificates, in PEM form, to trust while the CLI is installed."""

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return ``env`` with all ``${NAME}`` replaced; raises UsageError for a variable that is not set."""

        def value(match: re.Match[str]) -> str:
            if match[1] not in environ:
                raise UsageError(f"env: {match[0]} is not set; set it, or leave it out of the agent's env")
            return environ[match[1]]

        return {name: _VARIABLE.sub(value, text) for name, text in self.env.items()}


class InstalledAgent(ABC):
    """A CLI that runs in the container, and keeps one conversation over all rounds in its own files there.

    Args:
        model: The model's name for the CLI; None for its default.
        options: The CLI's options.
    """

    name: str
    pays = True
    options_type: ClassVar[type[CliOptions]]
    npm: ClassVar[NpmProgram]
    user_files: ClassVar[UserFiles]
    """Where the CLI looks for its user's rules and skills."""
    takes_skills = True
    mcp_transports: ClassVar[frozenset[Transport]] = ALL_TRANSPORTS
    """See :class:`~pytest_evocode.agents.protocol.Agent`."""
    tells_failures = False
    """See :class:`~pytest_evocode.agents.installed.exchange_reader.ExchangeReader`."""

    def __init__(self, model: str | None, options: CliOptions) -> None:
        self.model = model
        self.options = options
        self._session = self._new_session = ""
        self._placed = False
        self.mcp_servers: tuple[ToolServer, ...] = ()
        """The servers of the turn: the task's, and the harness'."""

    @property
    def installation(self) -> Installation:
        """The npm package in the image; see :class:`~pytest_evocode.agents.protocol.Agent`."""
        return replace(self.npm.installation(self.version), ca=self.options.ca)

    @cached_property
    def version(self) -> str:
        """The version of the CLI; ``latest`` only where it cannot be looked up which that is."""
        return self.npm.resolved(self.options.version)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The MCP servers of the harness; see :class:`~pytest_evocode.agents.protocol.Agent`."""
        return hosts_of(servers_of_file(self.options.mcp, os.environ))

    @property
    def harness(self) -> tuple[str, str]:
        """The CLI and its version; see :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self.name, self.version

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """Variables in which the CLI looks for a key; for one from ``key_env`` it is the first one."""

    bearer_keys: tuple[str, ...] = ()
    """Those of which the value goes into the header ``Authorization``, where the family has a header of its own."""

    @property
    @abstractmethod
    def family(self) -> Family:
        """The family of the APIs that the CLI asks."""

    @property
    def upstream(self) -> str | None:
        """The address of the server that the gateway asks, as :attr:`~pytest_evocode.gateway.Route.base_url`."""
        return self.options.base_url

    @property
    def answered_by(self) -> dict[str, Any]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return PROVIDERS[self.family].named_server(self.upstream)

    @property
    def has_known_prices(self) -> bool:
        """Whether the prices of all models that the CLI may ask by itself are known."""
        return False

    # Checks before anything starts.

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        self.find_key(environ)
        self.options.variables(environ)
        check_files(self.options.rules, self.options.prompt, skills=self.options.skills)
        servers = ((server.name, server.transport) for server in servers_of_file(self.options.mcp, environ))
        check_transports(servers, self.mcp_transports, where=self.options.mcp, agent=self.name)
        if budget.limits_cost and not self.has_known_prices and self._facts(self.model or "") is None:
            raise UsageError(
                f"the budget limits the cost, and what {self.model or 'the default model'} of {self.name} costs is not "
                "known; name the model, or give its prices with --evocode-agent-option prices=FILE"
            )

    def check_task(self, task: Task, engine: str) -> None:
        """See :class:`~pytest_evocode.agents.protocol.SelectiveAgent`."""
        check_names(task, servers_of_file(self.options.mcp, os.environ), self.options.mcp)
        if len(users := {round_.agent_user for round_ in task.rounds}) > 1:
            named = ", ".join(sorted(str(user or "the image's") for user in users))
            raise UsageError(
                f"{task.directory / 'task.toml'}: its rounds have several agent users ({named}), and {self.name} keeps "
                "its conversation in the home directory of one; run the task with an agent that works on the host, "
                "such as anthropic/MODEL"
            )

    def find_key(self, environ: Mapping[str, str]) -> tuple[str, str]:
        """Return the variable that the CLI gets its key in, and the key; raises UsageError where there is none."""
        named = (self.options.key_env,) if self.options.key_env is not None else self.keys
        for name in named:
            check_key_name(name)
        for name in named:
            if key := environ.get(name, "").strip():
                return (name if name in self.keys else self.keys[0]), key
        raise UsageError(
            f"{self.name} needs an API key and {' or '.join(named)} is not set; set it, or name the variable that has "
            "it with --evocode-agent-option key_env=NAME"
        )

    def _facts(self, model: str) -> ModelFacts | None:
        return find_model_facts(model, self.options.prices)

    def route(self, key_name: str, key: str) -> Route:
        """Return where the gateway sends what the CLI asks, and with which key."""
        is_bearer = key_name in self.bearer_keys
        return Route(
            family=self.family,
            base_url=self.upstream,
            key=key,
            bearer=is_bearer,
            models=self.options.models,
            prices=self._facts,
        )

    # State between sessions.

    def save_state(self) -> Any:
        """Return the session's id; the conversation itself is in the container."""
        return {"session": self._session, "placed": self._placed}

    def load_state(self, state: Any) -> None:
        """See :meth:`save_state`."""
        self._session, self._placed = state["session"], state["placed"]

    # A turn.

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        recorder = context.recorder
        recorder.agent = AgentInfo(name=self.name, version=self.version, model_name=self.model)
        key_name, key = self.find_key(os.environ)
        self.mcp_servers = (*context.mcp_servers, *servers_of_file(self.options.mcp, os.environ))
        reader = ExchangeReader(recorder, tells_failures=self.tells_failures)
        access, deadline = ModelAccess(context, reader), Deadline(context.timeout, context.spending.waiting)
        with staged(context, self.text_for(context)) as stage:
            if not self._placed:
                stage.place(self.user_files, context.task, rules=self.options.rules, skills=self.options.skills)
                self.make_ready(stage)
                self._placed = True
            if self.mcp_servers:
                self.stage_servers(stage)
            self.introduce(context)
            recorder.say("user", stage.instruction)
            with access.opened(self.route(key_name, key)):
                run, told = self._run(context, stage, key_name, access, deadline)
                for _ in range(CUT_REPLIES):
                    if not self._is_cut_off(run, told, reader, access):
                        break
                    recorder.say("system", CUT_OFF, {"nudge": "cut off"})
                    stage.tell(CUT_OFF)
                    exit_codes = told.exit_codes
                    run, told = self._run(context, stage, key_name, access, deadline)
                    told.exit_codes |= exit_codes
            errors = stage.errors()
        self._keep_session(told, reader)
        recorder.exited(told.exit_codes)
        access.raise_for_turn()
        return self._ended(run, reader, told, errors, access)

    def _run(
        self, context: RoundContext, stage: StagedFiles, key_name: str, access: ModelAccess, deadline: Deadline
    ) -> tuple[ProgramRun, Told]:
        """Run the program with the instruction that it has, and return how it ended and what it says of that."""
        base_url = access.base_url(self.family)
        env = {**self.variables(key_name, access.token, base_url), **self.options.variables(os.environ)}
        command = f"exec {shlex.join([self.npm.path, *self.arguments(base_url)])} {stage.redirections}"
        run = run_program(context, command, env=env, access=access, deadline=deadline)
        return run, self._read(run.result.output)

    def _is_cut_off(self, run: ProgramRun, told: Told, reader: ExchangeReader, access: ModelAccess) -> bool:
        """Return whether the program has ended the turn for a reply that was cut off, and can go on with its session.

        Some go on themselves, and the reply that was cut off is not the last one then.
        """
        if run.stopped or run.result.timed_out or access.has_ended_program or told.failure:
            return False
        access.session.settle()
        self._keep_session(told, reader)
        return reader.cut_off and bool(self._session)

    def _keep_session(self, told: Told, reader: ExchangeReader) -> None:
        self._session = told.session or self._session or (self._new_session if reader.replies else "")

    def text_for(self, context: RoundContext) -> str:
        """Return what the CLI is told: the instruction, and before the first one the harness's prompt."""
        if self._session or self.options.prompt is None:
            return context.instruction
        return f"{read_file(self.options.prompt).strip()}\n\n{context.instruction}"

    def introduce(self, context: RoundContext) -> None:  # noqa: B027 - most tell it nothing
        """Record what the CLI is told beside the instruction."""

    def make_ready(self, stage: StagedFiles) -> None:  # noqa: B027 - most need nothing
        """Prepare what the CLI needs in the container, before its first turn there."""

    def stage_servers(self, stage: StagedFiles) -> None:  # noqa: B027 - most are told by arguments and variables
        """Put a file with the MCP servers into the container for this turn."""

    @abstractmethod
    def arguments(self, base_url: str) -> list[str]:
        """Return the arguments of the program for the next turn, in which it finds its model at ``base_url``."""

    @abstractmethod
    def variables(self, key_name: str, token: str, base_url: str) -> dict[str, str]:
        """Return the variables that the CLI gets, and no other process; ``token`` is its key there."""

    @abstractmethod
    def take(self, event: Event, told: Told) -> None:
        """Take from an event that the CLI has printed what it says of its session and of how it ended."""

    def _read(self, output: str) -> Told:
        """Return what the events say that the CLI has printed; those of unknown form say nothing."""
        told = Told()
        for line in output.splitlines():
            with contextlib.suppress(LookupError, TypeError, AttributeError, ValueError, RecursionError):
                self.take(json.loads(line), told)
        return told

    def _ended(
        self, run: ProgramRun, reader: ExchangeReader, told: Told, errors: str, access: ModelAccess
    ) -> RoundTranscript:
        result = run.result
        if run.stopped:
            return RoundTranscript(stopped=run.stopped, output=reader.final)
        if access.overflow:
            overflow = f"context: the conversation is longer than the model takes ({access.overflow})"
            return RoundTranscript(stopped=overflow, output=reader.final)
        if reader.refused:
            refusal = f"refused: the model, or a filter of its provider's, refused to answer ({reader.refused})"
            return RoundTranscript(stopped=refusal, output=reader.final, refused=True)
        if told.failure:
            raise AgentFault(f"{self.name}: {told.failure}")
        if result.timed_out:
            return RoundTranscript(timed_out=True, output=reader.final)
        ending = f"{self.name} ended with exit code {result.exit_code}"
        if not reader.replies and not told.stopped:
            words = errors.strip() or _no_events(result.output) or "(nothing)"
            tail = "\n".join(words.splitlines()[-_SHOWN_LINES:])
            raise AgentFault(f"{ending} before its model gave a readable reply. Its last lines:\n{tail}")
        if not result.ok and not told.stopped:
            return RoundTranscript(stopped=ending, output=errors or reader.final)
        return RoundTranscript(stopped=told.stopped, output=reader.final)


def _no_events(output: str) -> str:
    """Return what a program printed besides events; its events where it printed nothing else."""
    others = [line for line in output.splitlines() if line.strip() and not line.startswith("{")]
    return "\n".join(others) or output.strip()
