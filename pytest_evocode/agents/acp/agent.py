"""The agent ``acp:COMMAND``: its options, its session over the rounds, and its turns."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pytest_evocode.agents.acp.updates import AcpReader, usage_told
from pytest_evocode.agents.harness import check_files
from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.agents.installed.model_access import ModelAccess
from pytest_evocode.agents.installed.npm_program import LATEST, NpmProgram
from pytest_evocode.agents.installed.program_run import DeclaredProgram, ProgramHarness
from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS, ToolServer, check_names, hosts_of, servers_of_file
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.turn_time import Deadline, wait_for
from pytest_evocode.environments import Installation
from pytest_evocode.environments.host_variables import host_variables
from pytest_evocode.errors import AgentFault, Cancelled, UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.model_options import Variables
from pytest_evocode.names import agent_id
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder

if TYPE_CHECKING:
    from pytest_evocode.agents.acp.connection import AcpProgram


NpmPackage = Annotated[str, Field(pattern=r"^(@[a-z0-9~][\w.~-]*/)?[a-z0-9~][\w.~-]*(@[A-Za-z0-9][\w.+-]*)?$")]
#: A name that can be the file of a program.
_PROGRAM = re.compile(r"[A-Za-z0-9][\w.-]*")


class AcpOptions(ProgramHarness, DeclaredProgram):
    """Options of an agent that speaks ACP."""

    model: str | None = None
    """The model that the session is set to, by the agent's own id; None for its default."""
    mode: str | None = None
    """The mode that the session is set to, by the agent's own id, such as one that asks for no permissions."""
    auth_method: str | None = None
    """The way to authenticate, by the agent's own id, for one that asks for it."""
    env: Variables = {}
    """Further variables for the agent; ``${NAME}`` stands for a variable of this machine, which is how a secret is
    given, or for one of those that ``api`` gives."""
    npm: NpmPackage | None = Field(default=None, examples=["@qwen-code/qwen-code"])
    """npm package that has the command's first word as its program, such as @qwen-code/qwen-code@0.24.4; it is
    installed with a Node of its own. Without a version it is the latest, which is looked up once a day."""

    def program(self, command: str) -> tuple[NpmProgram, str] | None:
        """Return the program that ``npm`` names and its version; None where it names none.

        Raises:
            UsageError: The command does not begin with a program's name.
        """
        if self.npm is None:
            return None
        package, _, version = self.npm.rpartition("@")
        if not package:  # The @ of a scope, or none.
            package, version = self.npm, LATEST
        name = command.split()[0]
        if not _PROGRAM.fullmatch(name):
            raise UsageError(
                f"npm = {self.npm!r}: the command has to begin with the package's program, and {name!r} is no name of "
                "one; give variables with env"
            )
        return NpmProgram(package, name), version


logger = logging.getLogger(__name__)

_VERSION = 1  # of the protocol
_AUTHENTICATION = -32000  # the protocol's code for it
_POLL = 0.05  # seconds
_CANCELLING = 3.0  # seconds for an agent to stop when its time is over
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_REFUSAL = "refusal"
_STOPS = {
    "max_tokens": "the model was cut off at its limit of completion tokens (max_tokens)",
    "max_turn_requests": "the agent's own limit of requests in a turn",
    _REFUSAL: "the agent refused to go on",
}


class AcpAgent:
    """A program in the container that speaks the Agent Client Protocol.

    Where it can load sessions, it is started for each turn and loads its own; else it goes on running between turns.

    Args:
        command: Script that ``bash -c`` runs from the working directory.
        options: Its options.
    """

    mcp_transports = ALL_TRANSPORTS

    def __init__(self, command: str, options: AcpOptions) -> None:
        self.name = agent_id(f"acp:{command}")
        self._command = command
        self._options = options
        self._program: AcpProgram | None = None
        self._session = ""
        self._placed = False
        self._about: dict[str, Any] = {}
        """What the program said of itself."""
        self._cost = 0.0
        """US dollars that the session has cost, by its own last word."""
        self._token: str | None = None
        """What the program has in place of a key, for as long as it runs."""

    @property
    def installation(self) -> Installation | None:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        script, ca = self._options.install, self._options.ca
        if (package := self._package) is None:
            return Installation(f"acp:{self._command}", script, ca) if script else None
        program, number = package
        installed = replace(program.installation(number), ca=ca)
        if not script:
            return installed
        return replace(installed, script=f"bash -c {shlex.quote(script)} || exit\n{installed.script}")

    @cached_property
    def _package(self) -> tuple[NpmProgram, str] | None:
        """The command's program where npm installs it, and the version, which is looked up once."""
        found = self._options.program(self._command)
        return None if found is None else (found[0], found[0].resolved(found[1]))

    @property
    def harness(self) -> tuple[str, str] | None:
        """The npm package and its version; see :class:`~pytest_evocode.agents.protocol.Agent`."""
        return None if self._package is None else (self._package[0].package, self._package[1])

    @property
    def _script(self) -> str:
        """The command, with the path of a program that npm has installed."""
        if self._package is None:
            return self._command
        program = self._package[0]
        return program.path + self._command.removeprefix(program.program)

    @property
    def answered_by(self) -> dict[str, Any]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._options.answered_by

    @property
    def secrets(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._options.secrets

    @property
    def hosts(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return (*self._options.hosts, *hosts_of(servers_of_file(self._options.mcp, os.environ)))

    @property
    def takes_skills(self) -> bool:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._options.skills_directory is not None

    # Checks before anything starts.

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        options = self._options
        if find_spec("acp") is None:
            raise UsageError(f"{self.name} needs the package agent-client-protocol; install pytest-evocode[acp]")
        route = options.route(environ)
        named = [name for text in options.env.values() for name in _VARIABLE.findall(text)]
        for name in (*options.secrets, *named):
            if name not in options.variables and not environ.get(name):
                raise UsageError(f"{self.name} needs {name}, which is not set")
        options.program(self._command)
        check_files(options.rules, options.prompt, skills=options.skills)
        if options.skills is not None and not self.takes_skills:
            raise UsageError(f"{self.name}: say with skills_directory where the agent looks for skills")
        servers_of_file(options.mcp, environ)
        if route is None and (budget.limits_cost or budget.limits_tokens or budget.limits_turns):
            raise UsageError(
                f"the budget limits tokens, turns or costs, and {self.name} need not tell what it uses before its turn "
                "has ended; say with the option api what it asks, or limit minutes only"
            )

    def check_task(self, task: Task, engine: str) -> None:
        """See :class:`~pytest_evocode.agents.protocol.SelectiveAgent`."""
        check_names(task, servers_of_file(self._options.mcp, os.environ), self._options.mcp)
        if len({round_.agent_user for round_ in task.rounds}) > 1:
            raise UsageError(f"{task.file}: its rounds have several agent users, and {self.name} has one session")

    # State between sessions.

    def save_state(self) -> Any:
        """Return the session's id; the conversation itself is in the container."""
        return {"session": self._session, "placed": self._placed, "cost": self._cost}

    def load_state(self, state: Any) -> None:
        """See :meth:`save_state`."""
        self.close()  # The program may still have the session of the turn before.
        self._session, self._placed, self._cost = state["session"], state["placed"], state["cost"]

    def close(self) -> None:
        """End the program; see :class:`~pytest_evocode.agents.protocol.ClosableAgent`."""
        program, self._program = self._program, None
        if program is not None:
            program.close()

    # A turn.

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        if spent := context.spending.exhausted:
            if not context.goes_on:
                context.recorder.ask_nothing()
            return RoundTranscript(stopped=spent)
        options, turn = self._options, _Turn(context)
        is_first = not self._session
        with options.staged(context, options, is_first=is_first, places_skills=not self._placed) as stage:
            self._placed = True
            if (route := options.route(os.environ)) is None:
                return self._take_turn(turn, stage.instruction)
            turn.asked = ExchangeReader(context.recorder)
            access = turn.access = ModelAccess(context, turn.asked)
            try:
                with access.opened(route, token=self._token), access.running():
                    self._token = access.token
                    transcript = self._take_turn(turn, stage.instruction)
            except AgentFault:
                if not access.has_ended_program:
                    raise
                transcript = RoundTranscript()
            if turn.reader is not None:
                context.recorder.exited(turn.reader.exit_codes)
        access.raise_for_turn()
        exhausted = access.session.exhausted
        return replace(transcript, timed_out=False, stopped=exhausted) if exhausted else transcript

    def _take_turn(self, turn: _Turn, instruction: str) -> RoundTranscript:
        """Do as :meth:`run_round` once all is prepared."""
        try:
            return self._prompt(turn, instruction)
        except TimeoutError:
            self.close()
            return RoundTranscript(timed_out=True, output=turn.final)
        except BaseException:
            self.close()
            raise

    def _prompt(self, turn: _Turn, instruction: str) -> RoundTranscript:
        program = self._connected(turn)
        recorder = turn.context.recorder
        recorder.agent = AgentInfo(
            name=self.name, version=str(self._about.get("version") or "unknown"), model_name=self._options.model
        )
        # What it asks by the gateway says more than its updates, all but how commands ended.
        unused = Recorder(recorder.agent, recorder.session_id)
        reader = turn.reader = AcpReader(recorder if turn.asked is None else unused, program.terminals)
        recorder.say("user", instruction)
        content = [{"type": "text", "text": instruction}]
        asked = program.request("session/prompt", {"sessionId": self._session, "prompt": content})
        try:
            answer = dict(turn.wait(asked, program) or {})
        except TimeoutError:
            program.notify("session/cancel", {"sessionId": self._session})
            wait([asked], timeout=_CANCELLING)
            raise
        except Cancelled:
            raise
        except Exception as error:
            raise AgentFault(f"{self.name} could not do its turn: {_words(error)}{_after(program)}") from None
        finally:
            turn.take_updates(program)
            reader.close()
        if turn.access is None:
            self._count(reader, answer.get("usage"))
        if self._loads:
            self.close()
        reason = str(answer.get("stopReason"))
        stopped = f"{self.name}: {_STOPS[reason]}" if reason in _STOPS else ""
        return RoundTranscript(stopped=stopped, output=turn.final, refused=reason == _REFUSAL)

    def _count(self, reader: AcpReader, usage: Any) -> None:
        """Charge what the agent tells of its turn."""
        cost = None
        if reader.cost is not None:
            # A sum that falls has begun anew, with the program that loaded the session.
            before = self._cost if self._cost <= reader.cost else 0.0
            cost, self._cost = reader.cost - before, reader.cost
        counted = usage_told(usage, cost=cost, requests=max(1, reader.replies))
        if counted is not None:
            reader.recorder.amend(usage=counted)

    # The session.

    @property
    def _loads(self) -> bool:
        return bool((self._about.get("capabilities") or {}).get("loadSession"))

    def _connected(self, turn: _Turn) -> AcpProgram:
        """Return the program with the session of the attempt, which is begun in the first turn."""
        context, program = turn.context, self._program
        if program is not None and not program.ended and program.environment is context.environment:
            return program
        self.close()
        from pytest_evocode.agents.acp.connection import AcpProgram

        api = self._options.api
        of_model = {} if turn.access is None or api is None else turn.access.variables(api)
        known = host_variables() | of_model
        env = {name: os.environ[name] for name in self._options.secrets} | of_model
        env |= {name: _VARIABLE.sub(lambda match: known[match[1]], text) for name, text in self._options.env.items()}
        program = self._program = AcpProgram(context.environment, context.round.agent_user, self._script, env)
        about = self._ask(turn, program, "initialize", _HELLO | {"clientInfo": _client()})
        if about.get("protocolVersion") != _VERSION:
            said = about.get("protocolVersion")
            raise AgentFault(f"{self.name} speaks version {said} of the protocol; version {_VERSION} is needed")
        info = about.get("agentInfo") or {}
        self._about = {"version": info.get("version"), "capabilities": about.get("agentCapabilities") or {}}
        servers = (*context.mcp_servers, *servers_of_file(self._options.mcp, os.environ))
        given = {"cwd": context.environment.workdir, "mcpServers": self._described(servers)}
        if self._options.auth_method is not None:
            self._ask(turn, program, "authenticate", {"methodId": self._options.auth_method})
        if self._session and self._loads:
            self._ask(turn, program, "session/load", given | {"sessionId": self._session})
            turn.drop_updates(program)  # The agent tells the whole conversation again.
            return program
        if self._session:
            lost = f"{self.name} cannot load sessions, and its program has ended: a new session begins, without memory"
            logger.warning("%s %s: %s", context.task.name, context.round.name, lost)
            context.recorder.say("system", lost)
        begun = self._ask(turn, program, "session/new", given)
        self._session, self._cost = str(begun["sessionId"]), 0.0
        self._choose(turn, program, begun)
        return program

    def _choose(self, turn: _Turn, program: AcpProgram, begun: Mapping[str, Any]) -> None:
        """Set the session to the mode and the model that the options name."""
        session = {"sessionId": self._session}
        if self._options.mode is not None:
            self._ask(turn, program, "session/set_mode", session | {"modeId": self._options.mode})
        if (model := self._options.model) is None:
            return
        settings = begun.get("configOptions") or ()
        setting = next((each for each in settings if each.get("category") == "model"), None)
        if setting is None:
            self._ask(turn, program, "session/set_model", session | {"modelId": model})
        else:
            chosen = {"configId": setting["id"], "value": model}
            self._ask(turn, program, "session/set_config_option", session | chosen)

    def _ask(self, turn: _Turn, program: AcpProgram, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(turn.wait(program.request(method, params), program) or {})
        except (TimeoutError, Cancelled):
            raise
        except Exception as error:
            hint = ""
            if getattr(error, "code", None) == _AUTHENTICATION:
                hint = "; name a way to authenticate with the option auth_method, and its keys with secrets"
            raise AgentFault(f"{self.name}: {method}: {_words(error)}{hint}{_after(program)}") from None

    def _described(self, servers: tuple[ToolServer, ...]) -> list[dict[str, Any]]:
        can = (self._about["capabilities"].get("mcpCapabilities") or {}) | {"stdio": True}
        found: list[dict[str, Any]] = []
        for server in servers:
            if not can.get(server.transport):
                raise AgentFault(f"{self.name} does not take the MCP server {server.name!r} by {server.transport}")
            if server.transport == "stdio":
                env = _pairs(server.env)
                found.append({"name": server.key, "command": server.command, "args": [*server.args], "env": env})
            else:
                address = {"type": server.transport, "url": server.url, "headers": _pairs(server.headers)}
                found.append({"name": server.key} | address)
        return found


class _Turn:
    """The waiting of one turn."""

    def __init__(self, context: RoundContext) -> None:
        self.context = context
        self.reader: AcpReader | None = None
        self.asked: ExchangeReader | None = None
        self.access: ModelAccess | None = None
        self._deadline = Deadline(context.timeout, context.spending.waiting)

    @property
    def final(self) -> str:
        """The model's last words."""
        reader = self.asked or self.reader
        return reader.final if reader is not None else ""

    def wait(self, asked: Future[Any], program: AcpProgram) -> Any:
        """Return the answer to a request, and record what comes meanwhile.

        Raises:
            Cancelled: The session was stopped.
            TimeoutError: The turn's time is over.
        """
        deadline, cancelled = self._deadline, self.context.cancelled
        done = wait_for(
            asked, cancelled, lambda: deadline.over, look=_POLL, meanwhile=lambda: self.take_updates(program)
        )
        if not done:
            raise TimeoutError
        return asked.result()

    def take_updates(self, program: AcpProgram) -> None:
        """Record what has come."""
        while self.reader is not None and not program.updates.empty():
            self.reader.read(program.updates.get().get("update") or {})

    def drop_updates(self, program: AcpProgram) -> None:
        """Leave out what has come."""
        while not program.updates.empty():
            program.updates.get()


_HELLO = {
    "protocolVersion": _VERSION,
    "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
}


def _client() -> dict[str, str]:
    return {"name": "pytest-evocode", "version": version("pytest-evocode")}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _words(error: Exception) -> str:
    data = getattr(error, "data", None)
    return f"{error}" + (f" ({json.dumps(data, ensure_ascii=False)[:2000]})" if data else "")


def _after(program: AcpProgram) -> str:
    ending = program.ending
    return f"; {ending}" if ending else ""
