"""What everything that takes part in one attempt is given: the task, the engine, the options and where results go."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from pytest_evocode.environments import Engine
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.phases import Stopwatch
from pytest_evocode.secrets import Scrubber, withheld_from_agent
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.verifier_slots import Machine, VerifierSlots, suite_resources


class StopEvent(threading.Event):
    """An event that may have parts: to set it sets all of them, and to set one of them sets no other.

    >>> whole = StopEvent()
    >>> first, second = whole.part(), whole.part()
    >>> first.set()
    >>> first.is_set(), second.is_set(), whole.is_set()
    (True, False, False)
    >>> whole.set()
    >>> second.is_set(), whole.part().is_set()
    (True, True)
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._parts: list[StopEvent] = []

    def part(self) -> StopEvent:
        """Return a new event that is set with this one at the latest."""
        part = StopEvent()
        with self._lock:
            self._parts.append(part)
            is_set = self.is_set()
        if is_set:
            part.set()
        return part

    def set(self) -> None:
        """Set this event and all of its parts."""
        with self._lock:
            super().set()
            parts = list(self._parts)
        for part in parts:
            part.set()


@contextlib.contextmanager
def writing_results() -> Iterator[None]:
    """Raise EnvironmentFault where results cannot be written: there is no place, or JSON has no form for them."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise EnvironmentFault(f"the results could not be written: {error}") from error


@dataclass(frozen=True, slots=True)
class TrialContext:
    """One task in one engine, and how its rounds are run."""

    task: Task
    engine: Engine
    options: TrialOptions
    withheld: Callable[[str], bool]
    """Says which of the host's variables go nowhere that the agent can read."""
    scrubber: Scrubber
    """Takes the host's secrets out of what is recorded."""
    directory: AttemptDirectory | None = None
    """Where results are written; None writes none."""
    task_hash: str = ""
    """SHA-256 over the task's files; empty without a directory."""
    cancelled: StopEvent = field(default_factory=StopEvent)
    """Set when the attempt is to end; whatever waits then raises Cancelled."""

    @classmethod
    def of(
        cls,
        task: Task,
        engine: Engine,
        options: TrialOptions,
        *,
        directory: AttemptDirectory | None = None,
        declared_secrets: Iterable[str] = (),
    ) -> TrialContext:
        """Return the context of an attempt by an agent that may have the ``declared_secrets``."""
        declared = tuple(declared_secrets)
        scrubber = directory.scrubber if directory is not None else Scrubber(options.environ)
        scrubber.learn(options.environ, declared)
        task_hash = content_hash(task.directory) if directory is not None else ""
        withheld = withheld_from_agent(options.environ, declared)
        return cls(task, engine, options, withheld, scrubber, directory, task_hash)

    @property
    def task_environment(self) -> TaskEnvironment:
        """How the attempt's environment is made."""
        return TaskEnvironment(self.task, self.engine, self.options.environ, self.withheld, self.cancelled)

    @property
    def slots(self) -> VerifierSlots:
        """What bounds how many suites run at once."""
        return VerifierSlots(self.options.verifiers, Machine(memory=self.engine.memory))

    @property
    def suites_at_once(self) -> int:
        """How many suites of this task can run at the same time."""
        needed = (self.slots.needed(*suite_resources(self.task, round_)) for round_ in self.task.rounds)
        return max(1, self.slots.count // min(needed, default=1))

    def take_slots(self, round_: Round, stopped: threading.Event, stopwatch: Stopwatch) -> AbstractContextManager[None]:
        """Wait for as many slots as the suite of a round takes, and hold them; see :meth:`VerifierSlots.take`."""
        needed = self.slots.needed(*suite_resources(self.task, round_))
        return self.slots.take(stopped, stopwatch, slots=needed)

    def agent_limit(self, round_: Round) -> float | None:
        """Return the seconds that the agent has for a round; None for no limit."""
        return None if round_.agent_timeout is None else round_.agent_timeout * self.options.timeout_multiplier

    def suite_limit(self, round_: Round) -> float:
        """Return the seconds that the suite of a round has."""
        return round_.verifier_timeout * self.options.timeout_multiplier
