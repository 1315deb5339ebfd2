"""The agent protocol: one object per attempt, which is asked once per round."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pytest_evocode.agents.journal import Journal
from pytest_evocode.agents.mcp.servers import ToolServer, Transport, check_transports, transport_of
from pytest_evocode.environments import Environment, Installation
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import AttemptSpending, Budget
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trajectories.atif import Trajectory, read_task_trajectory
from pytest_evocode.trajectories.recorder import Recorder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoundContext:
    """What an agent is given for its turn."""

    task: Task
    round: Round
    instruction: str
    environment: Environment
    solution_env: dict[str, str]
    """The variables of ``[solution]``, resolved; for the oracle only."""
    timeout: float | None
    """Seconds for the turn; None for no limit. An agent that runs commands in the environment passes on what is left of
    them, since only the environment can end a command."""
    recorder: Recorder
    """Records the turn: its steps are on disk as they happen, and their usage is charged to the attempt's budget."""
    journal: Journal = field(default_factory=Journal)
    """The replies that were paid for in this turn, from which a later session can go on."""
    mcp_servers: tuple[ToolServer, ...] = ()
    """The task's MCP servers; those of the agent's own harness are not among them."""
    goes_on: bool = False
    """Whether the turn goes on after a question of the agent's: ``instruction`` is the user's answer then."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the session ends, or the turn is dropped because a verdict ended the attempt; an agent that waits for
    something outside the container has to watch it."""

    def seconds_left(self) -> float | None:
        """Return what is left of ``timeout`` when a part of the turn has ended."""
        return None if self.timeout is None else max(0.0, self.timeout - self.spending.turn_seconds)

    @property
    def spending(self) -> AttemptSpending:
        """The attempt's account; an agent asks it before each request to a model whether the budget is used up.

        What that raises at the limit of the whole run is not the agent's to catch: the attempt waits then.
        """
        return self.recorder.spending


@dataclass(frozen=True, slots=True)
class RoundTranscript:
    """The outcome of a turn, besides the workspace."""

    timed_out: bool = False
    trajectory: Trajectory | None = None
    """This round's steps, where the agent did not record them in ``context.recorder``."""
    output: str = ""
    """The agent's output."""
    stopped: str = ""
    """Why the turn ended before the agent was done, such as at a budget; the workspace is verified as it is."""
    refused: bool = False
    """Whether it ended because the model, or a filter of its provider's, refused to go on."""


class Agent(Protocol):
    """Edits the workspace.

    The object lives as long as its attempt, so that it remembers earlier rounds.

    An agent whose program in the container needs secrets of the host's environment, such as an API key, names their
    variables in an attribute ``secrets``, a tuple. A task's ``[environment] env`` may then use ``${NAME}`` for them, as
    for no other secret, and their values are removed from everything that is written, whatever their names. An agent
    that works on the host and uses a key only there names nothing.

    An agent whose program has to be in the image has an attribute ``installation``, an
    :class:`~pytest_evocode.environments.Installation` or None.

    What drives the model or tool, with a version of its own, is told by an attribute ``harness``, a pair of name and
    version. Records have it, and attempts with different ones are not scored together.

    What decides who answers besides its spec and options, such as an address that the environment gives, is told by an
    attribute ``answered_by``, a dict by names of options in which ``base_url`` is the server, if that is not the
    provider's own. It holds no secrets. Of an agent that does not say, an option ``base_url`` is taken for it.

    An agent whose program in the container calls hosts of its own, such as its model's, names them in an attribute
    ``hosts``, a tuple. Its turns may reach them beside what a task's ``allowed_hosts`` lists.

    An agent that begins a round from the conversation in a task's ``trajectory.json``, or has no conversation, says so
    by an attribute ``takes_conversations``, which is True; others refuse such tasks.

    An agent that pays for a model says so by an attribute ``pays``, which is True. No container is started for it once
    the run has used what it may.

    An agent that can use a task's MCP servers names the ways in which it reaches them in an attribute
    ``mcp_transports``, a set of ``"stdio"``, ``"http"`` and ``"sse"``; one that finds the skills in a task's
    ``skills_dir`` has an attribute ``takes_skills``, which is True. One that needs neither says so in the same way,
    and others refuse such tasks.

    An agent that needs the terminal to itself, such as a person, says so by an attribute ``interactive``, which is
    True. Sessions with workers refuse it.

    An agent that does the same in every attempt says so by an attribute ``deterministic``, which is True. Rounds in
    which its attempts come to different verdicts are named as flaky, because the task is to blame. Its next attempt may
    begin, with an agent of its own, while the last suite of the attempt before runs.
    """

    name: str
    """Name in reports and node ids, of letters, digits, dots, underscores and hyphens."""

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Do what the round's instruction asks.

        Raises:
            AgentFault: The agent's own means failed, such as its model's API; the attempt ends there with an error.
        """


@runtime_checkable
class ResumableAgent(Agent, Protocol):
    """An agent whose memory ``--evocode-resume`` restores, and a round clears that begins a new conversation.

    Without both methods it is taken to have none.
    """

    def save_state(self) -> Any:
        """Return what it remembers after a round, as JSON values."""

    def load_state(self, state: Any) -> None:
        """Restore what :meth:`save_state` returned in an earlier session; called before the first ``run_round``.

        Before the turn of a round that begins a new conversation it gets what :meth:`save_state` returned at the start.
        """


@runtime_checkable
class CheckedAgent(Agent, Protocol):
    """An agent that can tell before anything starts that it would not work."""

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """Raise UsageError where a key, a package or a price is missing.

        Called once per session, before any container starts; may not use the network.
        """


@runtime_checkable
class PreparedAgent(Agent, Protocol):
    """An agent whose preparation takes time that does not count as its first turn's."""

    def warm_up(self) -> None:
        """Prepare for the first turn, such as by slow imports; called once per attempt, while no turn's clock runs."""


@runtime_checkable
class ClosableAgent(Agent, Protocol):
    """An agent that holds resources, such as connections to its model."""

    def close(self) -> None:
        """Release them; called once after the agent's last turn, whether the attempt was completed or broken off."""


@runtime_checkable
class SelectiveAgent(Agent, Protocol):
    """An agent that cannot work on every task."""

    def check_task(self, task: Task, engine: str) -> None:
        """Raise UsageError with the reason where the agent cannot work on the task.

        ``engine`` is the name of the engine that runs the attempt's container.
        """


def check_task(agent: Agent, task: Task, engine: str) -> None:
    """Check that an agent can work on a task, in the environments of the engine of that name.

    Raises:
        UsageError: It cannot.
        TaskError: The conversation that it is to begin with cannot be read.
    """
    if isinstance(agent, SelectiveAgent):
        agent.check_task(task, engine)
    environment = task.config.environment
    servers = ((server.name, transport_of(server.transport)) for server in environment.mcp_servers)
    check_transports(servers, mcp_transports(agent), where=task.file, agent=agent.name)
    if environment.skills_dir is not None and getattr(agent, "takes_skills", False) is not True:
        raise UsageError(
            f"{task.file}: the task has skills for the agent (skills_dir), and {agent.name} takes none; run the task "
            "with one that does, such as anthropic/MODEL or claude-code:MODEL"
        )
    if task.config.metadata.evocode.users:
        from pytest_evocode.llm.client_factory import check_users

        check_users(task)
    for round_ in task.rounds:
        if read_task_trajectory(round_) is not None and getattr(agent, "takes_conversations", False) is not True:
            raise UsageError(
                f"{round_.trajectory}: the round begins from this conversation, and {agent.name} can begin from none; "
                "run the task with an agent that works on the host, such as anthropic/MODEL"
            )


def close_agent(agent: Agent) -> None:
    """Close an agent that can be closed; an error is only logged, because the agent's work is done."""
    if isinstance(agent, ClosableAgent):
        try:
            agent.close()
        except Exception:
            logger.warning("the agent %s could not be closed", agent.name, exc_info=True)


def installation_of(agent: Agent) -> Installation | None:
    """Return what an agent needs in the image; None for most."""
    installation: Installation | None = getattr(agent, "installation", None)
    return installation


def is_deterministic(agent: Agent) -> bool:
    """Return whether an agent says that it does the same in every attempt; most do not."""
    return getattr(agent, "deterministic", False) is True


def is_interactive(agent: Agent) -> bool:
    """Return whether an agent needs the terminal to itself; most do not."""
    return getattr(agent, "interactive", False) is True


def mcp_transports(agent: Agent) -> frozenset[Transport]:
    """Return the ways in which an agent reaches MCP servers; empty for one that uses none."""
    return frozenset(getattr(agent, "mcp_transports", ()))


def declared_hosts(agent: Agent) -> tuple[str, ...]:
    """Return the hosts that an agent calls from inside of the container; empty for most."""
    declared: tuple[str, ...] | str = getattr(agent, "hosts", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)


def declared_secrets(agent: Agent) -> tuple[str, ...]:
    """Return the variables of secrets that an agent needs in the container; empty for most."""
    declared: tuple[str, ...] | str = getattr(agent, "secrets", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)
