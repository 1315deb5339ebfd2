"""The agent protocol: one object per attempt, asked once per round."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pytest_evocode.agents.journal import Journal
from pytest_evocode.environments import Environment, Installation
from pytest_evocode.llm.budget import AttemptSpending, Budget
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trajectories.atif import Trajectory
from pytest_evocode.trajectories.recorder import Recorder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoundContext:
    """What an agent has for its turn.

    ``timeout`` is in seconds, None for no limit; an agent that runs commands in the environment passes what is left of
    it on, since only the environment can end a command.
    """

    task: Task
    round: Round
    instruction: str
    environment: Environment
    solution_env: dict[str, str]
    """The variables of ``[solution]``, resolved; for the oracle only."""
    timeout: float | None
    recorder: Recorder
    """Takes the turn down: what is recorded here is on disk as it happens, and charged to the attempt's budget."""
    journal: Journal = field(default_factory=Journal)
    """What was paid for in this turn, for a later session to go on from."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the session ends; an agent that waits for something outside of the container looks at it."""

    @property
    def spending(self) -> AttemptSpending:
        """What the attempt has used of its budget; to be asked before a model is."""
        return self.recorder.spending


@dataclass(frozen=True, slots=True)
class RoundTranscript:
    """What the agent's turn left besides the workspace."""

    timed_out: bool = False
    trajectory: Trajectory | None = None
    """This round's steps only; None for what ``context.recorder`` has, if anything."""
    output: str = ""
    """What the agent printed."""
    stopped: str = ""
    """Why the turn was ended before the agent ended it, such as by a budget; the workspace is graded as it is."""


class Agent(Protocol):
    """Edits the workspace. The object lives as long as its attempt, so its memory is the session.

    An agent whose program in the container needs an API key or another secret of the host's environment says so with
    an attribute ``secrets``, a tuple of names of variables. ``[environment] env`` of a task then gets their values for
    ``${NAME}``, as it gets no other secret's, and they are taken out of everything that is written, whatever they are
    called. An agent that works from the host and only uses a key itself declares nothing.

    One whose program has to be in the image has an attribute ``installation``, an
    :class:`~pytest_evocode.environments.Installation` or None.
    """

    name: str
    """How reports and node ids call it: letters, digits, dot, underscore and hyphen."""

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Do what the round's instruction asks.

        Raises :class:`~pytest_evocode.errors.AgentFault` when the turn could not be done for reasons that are not the
        agent's work; the attempt ends there with an error.
        """


@runtime_checkable
class ResumableAgent(Agent, Protocol):
    """An agent with a memory, which ``--evocode-resume`` brings back; without both methods it is taken to have none."""

    def save_state(self) -> Any:
        """What it remembers after a round, in values that JSON has a form for."""

    def load_state(self, state: Any) -> None:
        """Remember what :meth:`save_state` gave in an earlier session, before the first ``run_round``."""


@runtime_checkable
class CheckedAgent(Agent, Protocol):
    """An agent that can say before anything starts that it would not work."""

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` for a key, a package or a price that is missing.

        Called once per session, before any container starts; asks nobody over the network.
        """


@runtime_checkable
class PreparedAgent(Agent, Protocol):
    """An agent that takes time before its first turn, which is not to count as time of that turn."""

    def warm_up(self) -> None:
        """Import what is slow to import, and the like; called once per attempt, while no turn's clock runs."""


@runtime_checkable
class ClosableAgent(Agent, Protocol):
    """An agent that holds what has to be given back, such as connections to its model."""

    def close(self) -> None:
        """Give it back.

        Called once, when the agent's last turn is over, whether the attempt was completed or broken off.
        """


@runtime_checkable
class SelectiveAgent(Agent, Protocol):
    """An agent that cannot work on every task."""

    def check_task(self, task: Task, engine: str) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` with the reason when it could not work on the task.

        ``engine`` is the name of the engine that the attempt is about to get its container from.
        """


def close_agent(agent: Agent) -> None:
    """Have an agent give back what it holds; what goes wrong in that is logged, as its work is done."""
    if isinstance(agent, ClosableAgent):
        try:
            agent.close()
        except Exception:
            logger.warning("the agent %s could not be closed", agent.name, exc_info=True)


def installation_of(agent: Agent) -> Installation | None:
    """What an agent needs in the image; most need nothing."""
    installation: Installation | None = getattr(agent, "installation", None)
    return installation


def declared_secrets(agent: Agent) -> tuple[str, ...]:
    """The variables of the host's environment that an agent declares to need in the container; most need none."""
    declared: tuple[str, ...] | str = getattr(agent, "secrets", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)
