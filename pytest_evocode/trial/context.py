"""What everything that takes part in one attempt is given: the task, the engine, the options, and room for suites.

How many suites run at once holds for this machine, whichever session, worker or attempt they belong to.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock

from pytest_evocode.environments import Engine, Installation, Snapshot
from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.llm.budget import Budget, RunSpending
from pytest_evocode.llm.waiting import LONGEST as LONGEST_WAITING
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.phases import Stopwatch
from pytest_evocode.results.records import Mode, RoundRecord, Spent
from pytest_evocode.secrets import Scrubber, withheld_from_agent
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.lockfile import content_hash

if TYPE_CHECKING:
    from pytest_evocode.results.forks import ForkedState
    from pytest_evocode.results.storage import ObjectStore

Doing = Literal["starting", "preparing", "working", "verifying", "clearing up"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What an attempt does at one moment: start its environment, prepare a round, let the agent work, verify, clear up.

    Suites that run beside the agent's next round do not show, and neither do forks that are removed meanwhile.
    """

    doing: Doing = "starting"
    index: int = 0
    """The round's index, from 1; 0 before the first."""
    rounds: int = 0
    """The index of the last round that will be run."""
    since: float = field(default_factory=time.time)
    """When ``doing`` began, in seconds since the epoch."""
    limit: float | None = None
    """Seconds that the agent has from then on; None for no limit."""
    turns: int = 0
    """Replies of the model in all rounds so far; 0 where nothing is known, as for tokens and cost."""
    tokens: int = 0
    cost_usd: float = 0.0
    forks: int = 0
    """Forks that wait to be removed, when it clears up."""


@dataclass(frozen=True, slots=True)
class MidTurn:
    """A moment of another attempt's turn that an attempt goes on from: with its files, and none of its processes."""

    index: int
    """The round of the turn, from 1, which is prepared."""
    snapshot: Snapshot
    """The files of that moment; to be there until the attempt is closed."""
    inherited: tuple[RoundRecord, ...]
    """The records of the rounds before."""
    seconds: float = 0.0
    """Those of the turn so far."""
    spent: Spent = field(default_factory=Spent)
    """What the turns before have used of the attempt's budget."""
    is_own: bool = False
    """Whether the snapshot was made for this attempt alone."""


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """How attempts are run in one session; the defaults suit a trial that is driven from a script."""

    agent: Mapping[str, Any] = field(default_factory=dict)
    """What made the agent, for records; see :attr:`pytest_evocode.results.records.AttemptRecord.made_by`."""
    conditions: Mapping[str, str] | None = None
    """What else can change a verdict or a score, for records; see ``conditions`` of an attempt's record there."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The host's variables, which the ``${VAR}`` of task.toml are taken from."""
    timeout_multiplier: float = 1.0
    """What the timeouts of agents and suites are multiplied by."""
    verifiers: int | None = None
    """How many suites may run at once on this machine; None is as many as it has cores."""
    verify_times: int = 1
    """How often a suite is run, of which the worst verdict counts; suites in place are run once."""
    strict: bool = False
    """Whether suites find nothing that the agent changed outside of its workspace and the task's declared ``state``."""
    resume: bool = False
    """Whether to go on with what the trial's directory, or the storage, has of the attempt."""
    storage: ObjectStore | None = None
    """Where the attempt is saved beside the run, for another machine to go on with; it needs a directory."""
    hold_forks: bool = False
    """Whether the forks of failed rounds stay until :meth:`Trial.drop_fork`."""
    hold_all_forks: bool = False
    """Whether, with ``hold_forks``, those of rounds that have not failed stay as well."""
    budget: Budget = field(default_factory=Budget)
    """What each attempt, and the run as a whole, may use."""
    waiting_limit: float = LONGEST_WAITING
    """Seconds that each turn may wait for its model's provider, which count neither against its timeout nor its budget.
    """
    run_spending: RunSpending | None = None
    """What the run has cost so far, for ``budget.total_cost``."""
    keep_snapshots: bool = False
    """Whether the state that every round was left in is kept, to be verified again."""
    references: bool = False
    """Whether states that the oracle makes are kept, and used where earlier rounds are not asked for."""
    reuse: bool = False
    """Whether the oracle takes no turn in a round whose state is kept: only the suite is run."""
    withheld_from_solutions: Callable[[str], bool] = lambda name: False
    """Says which secrets solutions do not get, because another agent is to begin where they lead."""
    installation: Installation | None = None
    """What is installed in the image for another agent, which is to begin where this attempt ends."""
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """With wildcards, what the only cases are called that are run of a native suite, by round: no verdict on these."""
    fork: ForkedState | None = None
    """The state of another attempt that it goes on from; the rounds before the selected ones are that attempt's."""
    mid_turn: MidTurn | None = None
    """Where in another attempt's turn it goes on; the selected rounds begin with the one of that turn."""
    mode: Mode = "chain"
    """How the attempt goes through its rounds."""
    speculate: bool = False
    """Whether an agent's next turn begins ahead of a verdict that may end the chain; the oracle's always does."""


_INTERVAL = 0.02  # seconds
_MORE = 0.001
"""Seconds more between two looks for each slot: to try one costs some 0.2 ms of a core's time."""
_NOTICE = 0.1  # seconds until a thread that does not look notices that it is to stop
_BEAT = 1.0  # seconds after which the first in a line shows that it lives
_PATIENCE = 15.0
"""Seconds without that after which it counts as halted."""
_SLACK = 0.1
"""Of a slot's memory: what is sold as 8 GB has less, and two suites of 4 GB are to run on it together."""
_STOPPED = "stopped while waiting for other suites"
_next_in_line = threading.Lock()
"""Held by the one waiting thread of this process that is in the line of processes."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What suites share."""

    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    memory: int | None = None
    """Bytes; None where that is not known, and then no suite takes more slots because of its memory."""


def suite_resources(task: Task, round_: Round) -> tuple[float | None, int | None]:
    """Return the CPUs and bytes of memory that a round's suite may use, as far as the task declares them.

    A suite that runs apart may use what the larger of its two environments may: one waits while the other works.
    """
    if round_.suite_environment is not None:
        own = round_.suite_environment.config
        return own.cpus, own.memory_mb * 2**20 if own.memory_mb is not None else None
    apart = task.config.verifier.environment if round_.verify_in == "separate" else None
    used = [each for each in (task.config.environment, apart) if each is not None]
    cpus = [each.cpus for each in used if each.cpus is not None]
    memory = [each.memory_mb * 2**20 for each in used if each.memory_mb is not None]
    return max(cpus, default=None), max(memory, default=None)


class VerifierSlots:
    """So many slots, each a locked file of the cache; a process that dies frees its own.

    Suites are timed: more of them than cores would make one another late. None takes as many slots as there are cores.
    Each slot is an equal share of the machine, at least one core.
    """

    def __init__(self, count: int | None = None, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()
        self.count = count or self._machine.cores

    def needed(self, cpus: float | None = None, memory: int | None = None) -> int:
        """Return how many slots a suite takes that declares so many CPUs and bytes of memory; None is not declared.

        One that declares more than the machine has takes all slots, and so runs alone.

        >>> slots = VerifierSlots(machine=Machine(cores=64, memory=256 * 2**30))
        >>> slots.needed(), slots.needed(cpus=8), slots.needed(cpus=0.5), slots.needed(cpus=2, memory=32 * 2**30)
        (1, 8, 1, 8)
        >>> slots.needed(cpus=96)
        64
        """
        # Whoever asks for more slots than cores wants suites to share cores.
        shares = min(self.count, self._machine.cores)
        wanted = [1]
        if cpus is not None:
            wanted.append(math.ceil(cpus * shares / self._machine.cores))
        if memory is not None and self._machine.memory:
            wanted.append(math.ceil(memory * shares / self._machine.memory - _SLACK))
        return max(wanted) if max(wanted) <= shares else self.count

    @contextlib.contextmanager
    def take(self, cancelled: threading.Event, stopwatch: Stopwatch | None = None, *, slots: int = 1) -> Iterator[None]:
        """Wait for slots and hold them; raises :class:`~pytest_evocode.errors.Cancelled` when told to stop waiting.

        The stopwatch, if any, measures the waiting, then what a fork takes, and how long the slots were held.
        """
        stopwatch = stopwatch or Stopwatch()
        stopwatch.begin("waiting")
        with contextlib.ExitStack() as held:
            for lock in _Wait(cache_directory() / "verifiers", self.count, cancelled).take(slots):
                held.callback(lock.release)
            stopwatch.begin("fork")
            with stopwatch.holding(slots):
                yield


class _Wait:
    """One thread's wait for slots.

    Processes with the same number of slots stand in one line, by a lock, and only the first of them looks for slots. So
    one that needs several is not passed by those behind it, and a look is paid once on the machine. It takes all that
    it needs in one look or nothing: two of sessions with other numbers of slots might wait for each other. The first
    in a line shows that it lives. One that was halted, such as by Ctrl-Z, is passed by the others.
    """

    def __init__(self, directory: Path, count: int, cancelled: threading.Event) -> None:
        directory.mkdir(exist_ok=True)
        self._cancelled = cancelled
        self._line = directory / f"line-{count}.lock"
        self._pulse = directory / f"line-{count}.pulse"
        self._slots = [directory / f"slot-{number}.lock" for number in range(count)]
        self._last_beat = 0.0

    def take(self, slots: int) -> list[FileLock]:
        with contextlib.ExitStack() as standing:
            while not _next_in_line.acquire(timeout=_NOTICE):
                self._go_on()
            standing.callback(_next_in_line.release)
            is_first = self._stand_in_line(standing)
            while not (found := self._look(slots)):
                if is_first and time.monotonic() - self._last_beat > _BEAT:
                    self._last_beat = time.monotonic()
                    self._pulse.touch()
                self._go_on(_INTERVAL + _MORE * len(self._slots))
            return found

    def _stand_in_line(self, standing: contextlib.ExitStack) -> bool:
        """Wait to be the first; False where the one that is was halted."""
        beat, since = _changed(self._pulse), time.monotonic()
        while (lock := try_lock(self._line)) is None:
            if (now := _changed(self._pulse)) != beat:
                beat, since = now, time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                return False
            self._go_on(_INTERVAL)
        standing.callback(lock.release)
        return True

    def _look(self, wanted: int) -> list[FileLock]:
        """Take so many slots, if they are free; else none."""
        found: list[FileLock] = []
        for path in self._slots:
            if (lock := try_lock(path)) is not None:
                found.append(lock)
                if len(found) == wanted:
                    return found
        for lock in found:
            lock.release()
        return []

    def _go_on(self, after: float = 0.0) -> None:
        if self._cancelled.wait(after):
            raise Cancelled(_STOPPED)


def _changed(path: Path) -> int:
    """Return when a file was last changed, in nanoseconds; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


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
        is_authors: bool = False,
    ) -> TrialContext:
        """Return the context of an attempt by an agent that may have the ``declared_secrets``.

        Where all that runs there ``is_authors`` own, as with the oracle and nop, it may have what solutions may.
        """
        declared = tuple(declared_secrets)
        scrubber = directory.scrubber if directory is not None else Scrubber(options.environ)
        scrubber.learn(options.environ, declared)
        task_hash = content_hash(task.directory) if directory is not None else ""
        withheld = options.withheld_from_solutions if is_authors else withheld_from_agent(options.environ, declared)
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
