"""The agent ``cmd:NAME``: a command that the project declares and that runs in the container."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from pydantic import Field, ValidationError

from pytest_evocode.agents.harness import check_files
from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.agents.installed.model_access import ModelAccess
from pytest_evocode.agents.installed.program_run import (
    INSTRUCTION,
    SERVERS,
    DeclaredProgram,
    ProgramHarness,
    run_program,
)
from pytest_evocode.agents.mcp.servers import (
    ALL_TRANSPORTS,
    Transport,
    as_json,
    check_names,
    servers_of_file,
)
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.environments import Installation, read_environment_file
from pytest_evocode.errors import AgentFault, UnreadableFile, UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import Trajectory

_TRAJECTORY_LIMIT = 64 * 2**20  # bytes
#: Linux's limit for one variable, less some bytes for its name.
_VARIABLE_LIMIT = 2**17 - 64  # bytes


class CommandDeclaration(DeclaredProgram):
    """``[tool.pytest-evocode.commands.NAME]``."""

    start: str
    """Script that ``bash -c`` runs from the working directory as the round's agent user, in the first round.

    It finds the instruction in ``$EVOCODE_INSTRUCTION`` and in the file ``$EVOCODE_INSTRUCTION_FILE``, the model in
    ``$EVOCODE_MODEL`` and the round's name in ``$EVOCODE_ROUND``.
    """
    continue_: str | None = Field(default=None, alias="continue")
    """Script for the later rounds, which goes on where the last one ended; None for ``start`` in all of them."""
    trajectory: str | None = None
    """ATIF file that the command writes in each round with the round's steps; relative to the working directory."""
    mcp: bool = False
    """Whether the command uses the MCP servers in the file ``$EVOCODE_MCP_SERVERS``.

    It has the form of Claude Code's .mcp.json; the variable is empty where there are none.
    """


class CommandOptions(ProgramHarness):
    """Options of an agent that is a command."""

    model: str | None = None
    """Value of ``$EVOCODE_MODEL``."""


class CommandAgent:
    """A declared command; an exit code other than 0 ends the attempt with an error."""

    options_type = CommandOptions
    pays = True

    def __init__(self, name: str, declaration: CommandDeclaration, **options: Any) -> None:
        self.name = name
        self._declaration = declaration
        self._options = CommandOptions(**options)
        self._started = False

    @property
    def installation(self) -> Installation | None:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        script = self._declaration.install
        return Installation(f"cmd:{self.name}", script, self._options.ca) if script else None

    @property
    def takes_skills(self) -> bool:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._declaration.skills_directory is not None

    @property
    def mcp_transports(self) -> frozenset[Transport]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return ALL_TRANSPORTS if self._declaration.mcp else frozenset()

    @property
    def answered_by(self) -> dict[str, Any]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._declaration.answered_by

    @property
    def secrets(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._declaration.secrets

    @property
    def hosts(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._declaration.hosts

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        for name in self._declaration.secrets:
            if not environ.get(name):
                raise UsageError(f"cmd:{self.name} needs {name}, which is not set")
        options, where = self._options, f"[tool.pytest-evocode.commands.{self.name}]"
        check_files(options.rules, options.prompt, skills=options.skills)
        if options.skills is not None and not self.takes_skills:
            raise UsageError(f"{where} declares no skills_directory, so the command takes no skills; declare it")
        if options.mcp is not None and not self._declaration.mcp:
            raise UsageError(f"{where} does not declare mcp = true, so the command takes no MCP servers; declare it")
        servers_of_file(options.mcp, environ)
        self._declaration.route(environ)
        if self._declaration.token_ids is not None and self._declaration.trajectory is not None:
            raise UsageError(f"{where}: token ids go into the steps that the gateway sees; leave trajectory out")
        counted = budget.limits_cost or budget.limits_tokens or budget.limits_turns
        if counted and self._declaration.trajectory is None and self._declaration.api is None:
            raise UsageError(
                f"the budget limits tokens, turns or costs, and cmd:{self.name} does not report what it uses; declare "
                "its api, or have it write a trajectory with the metrics of its steps and declare that file, or limit "
                "minutes only"
            )

    def check_task(self, task: Task, engine: str) -> None:
        """See :class:`~pytest_evocode.agents.protocol.SelectiveAgent`."""
        check_names(task, servers_of_file(self._options.mcp, os.environ), self._options.mcp)

    def save_state(self) -> Any:
        """Return whether the command was started; it keeps its own memory in the container."""
        return {"started": self._started}

    def load_state(self, state: Any) -> None:
        """See :meth:`save_state`."""
        self._started = state["started"]

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        declaration, options = self._declaration, self._options
        command = declaration.start
        if self._started and declaration.continue_ is not None:
            command = declaration.continue_
        written = self._trajectory_file(context)
        if written is not None:
            context.environment.remove([written])
            context.recorder.leave_out(posixpath.relpath(written, context.environment.workdir))
        is_first = not self._started
        with ExitStack() as turn:
            stage = turn.enter_context(declaration.staged(context, options, is_first=is_first, places_skills=is_first))
            servers = (*context.mcp_servers, *servers_of_file(options.mcp, os.environ))
            if servers:
                stage.add_servers(as_json(servers))
            variables = self._variables(context, stage.instruction) | {
                "EVOCODE_MCP_SERVERS": SERVERS if servers else ""
            }
            access = None
            if (route := declaration.route(os.environ)) is not None:
                asked = None if written is not None else ExchangeReader(context.recorder)
                if asked is not None:
                    context.recorder.say("user", stage.instruction)
                access = turn.enter_context(ModelAccess(context, asked).opened(route))
                variables |= access.variables(route.family)
            run = run_program(context, command, env=variables, access=access)
        if access is not None:
            if written is not None:
                context.recorder.amend(usage=access.session.usage)
            access.raise_for_turn()
        if run.stopped:
            return RoundTranscript(stopped=run.stopped)
        self._started = True
        result = run.result
        if not result.ok and not result.timed_out:
            tail = result.tail() or "(nothing)"
            raise AgentFault(f"cmd:{self.name} ended with exit code {result.exit_code}. Its last lines:\n{tail}")
        trajectory = None if written is None else self._read(context, written, cut_off=result.timed_out)
        return RoundTranscript(timed_out=result.timed_out, trajectory=trajectory, output=result.output)

    def _variables(self, context: RoundContext, instruction: str) -> dict[str, str]:
        if len(instruction.encode()) > _VARIABLE_LIMIT:
            raise AgentFault(
                f"{context.round.instruction}: an instruction of more than {_VARIABLE_LIMIT} bytes does not fit into "
                "an environment variable"
            )
        found = {
            "EVOCODE_INSTRUCTION": instruction,
            "EVOCODE_INSTRUCTION_FILE": INSTRUCTION,
            "EVOCODE_MODEL": self._options.model or "",
            "EVOCODE_ROUND": context.round.name,
        }
        return found | {name: os.environ[name] for name in self._declaration.secrets if name in os.environ}

    def _trajectory_file(self, context: RoundContext) -> str | None:
        path = self._declaration.trajectory
        return None if path is None else posixpath.normpath(posixpath.join(context.environment.workdir, path))

    def _read(self, context: RoundContext, path: str, *, cut_off: bool) -> Trajectory | None:
        """Read the trajectory that the command wrote; None where there is none, or it is cut off by the deadline."""
        try:
            text = read_environment_file(context.environment, path, _TRAJECTORY_LIMIT)
            return None if text is None else Trajectory.model_validate_json(text)
        except (UnreadableFile, ValidationError) as error:
            if cut_off:
                return None
            raise AgentFault(f"cmd:{self.name} wrote no ATIF trajectory to {path}: {error}") from None
