"""The verifier's part of a round: its suite, run in a fork of the round's snapshot or where the agent works."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_evocode.environments import (
    DistrustingEnvironment,
    Engine,
    Environment,
    InteractiveEnvironment,
    Snapshot,
)
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Round, Task, resolve_env
from pytest_evocode.tasks.lockfile import NOT_PINNED, Pins, read_pins
from pytest_evocode.trial.agent_turns import OUT_OF_REACH
from pytest_evocode.trial.held_forks import HeldFork
from pytest_evocode.trial.verifier_slots import VerifierSlots
from pytest_evocode.verifier import FRESH, SuiteRun, SuiteSettings, Toolbox, find_toolbox, run_suite, suite_not_run


class SuiteRunner:
    """Runs the suites of one attempt, several at once where they run in forks.

    ``environ`` resolves the ``${VAR}`` of task.toml, of which those that are ``withheld`` from the agent reach no suite
    that its processes can watch. ``timeout_multiplier`` multiplies the suites', and ``slots`` bound how many run
    at once. ``artifacts`` gives the directory for a round's artifacts by the round's name, None collects none. Faults
    of a ``cancelled`` attempt come from its being stopped and are never blamed on the agent. With ``hold`` forks stay
    as the suites have left them, until they are dropped.
    """

    def __init__(
        self,
        task: Task,
        *,
        environ: Mapping[str, str],
        withheld: Callable[[str], bool],
        timeout_multiplier: float,
        slots: VerifierSlots,
        strict: bool,
        artifacts: Callable[[str], Path] | None,
        cancelled: threading.Event,
        hold: bool = False,
    ) -> None:
        self._task = task
        self._config = task.config.metadata.evocode
        self._environ = environ
        self._withheld = withheld
        self._timeout_multiplier = timeout_multiplier
        self._slots = slots
        self._strict = strict
        self._artifacts = artifacts
        self._cancelled = cancelled
        self._forks: set[Environment] = set()
        self._hold = hold
        self._held: dict[int, HeldFork] = {}
        self._toolbox: Toolbox | None = None
        self._pins: Pins = NOT_PINNED

    @property
    def in_place(self) -> bool:
        """Whether suites run where the agent works."""
        return self._config.verify_in == "place"

    def prepare(self, engine: Engine) -> None:
        """Make sure that suites can be run in this task's image, before an agent has been there.

        Raises TaskError and EnvironmentFault.
        """
        self._pins = read_pins(self._task.directory)
        if not all(round_.has_script for round_ in self._task.rounds):
            self._toolbox = find_toolbox(engine, self._task)

    def limit(self, round_: Round) -> float:
        """Seconds that the suite of a round has."""
        return round_.verifier_timeout * self._timeout_multiplier

    def run(
        self,
        environment: Environment,
        snapshot: Snapshot,
        round_: Round,
        *,
        vary: Callable[[SuiteSettings], SuiteSettings] = lambda settings: settings,
        change: Callable[[Environment], None] = lambda fork: None,
    ) -> SuiteRun:
        """Run a round's suite in a fork of its snapshot.

        ``vary`` may have it run in another settings, and ``change`` may change the fork before.
        """
        changed = snapshot.changed_paths(environment.workdir)
        fork = environment.fork(snapshot, network=round_.verifier_network, fresh=FRESH)
        try:
            with self._slots.take(self._cancelled), contextlib.ExitStack() as life:
                life.enter_context(self._alive(fork))
                change(fork)
                settings = vary(self._suite_settings(round_))
                suite = self._run(fork, round_, changed, settings)
                if self._hold and isinstance(fork, InteractiveEnvironment):
                    self._held[round_.index] = HeldFork(fork, self._task, round_, settings, life.pop_all().close)
                return suite
        except EnvironmentFault as error:
            suite = suite_not_run(str(error), changed)
            if self._cancelled.is_set() or not (self._strict and suite.changed_tools):
                raise
            return suite

    def run_in_place(self, environment: Environment, round_: Round, *, collect: bool = True) -> SuiteRun:
        """Run a round's suite where the agent works, leave nothing of it there, and ``collect`` its artifacts."""
        if isinstance(environment, DistrustingEnvironment):
            environment.distrust()
        # All within the slot: while it waits for one, what the agent left running could still change a tool.
        with self._slots.take(self._cancelled), self._agent_kept_out(environment):
            snapshot = environment.snapshot()
            try:
                changed = snapshot.changed_paths(environment.workdir)
            finally:
                snapshot.discard()
            environment.make_directories(FRESH)
            return self._run(environment, round_, changed, self._suite_settings(round_), collect=collect)

    def fork_of(self, index: int) -> HeldFork | None:
        """The fork of a round's suite, where it is held."""
        return self._held.get(index)

    def drop_fork(self, index: int) -> None:
        """Let go of the fork of a round's suite, where it is held."""
        if (held := self._held.pop(index, None)) is not None:
            held.drop()

    def stop(self) -> None:
        """Kill every suite that runs in a fork."""
        for fork in list(self._forks):
            with contextlib.suppress(EnvironmentFault):
                fork.stop()

    def _suite_settings(self, round_: Round) -> SuiteSettings:
        # Who is root beside it reads the environment of every process.
        watched = self.in_place and self._config.keep_processes
        return SuiteSettings(
            env=resolve_env(
                round_.verifier_env,
                self._environ,
                path=self._task.file,
                withheld=lambda name: watched and self._withheld(name),
            ),
            timeout=self.limit(round_),
            timeout_multiplier=self._timeout_multiplier,
            toolbox=self._toolbox,
            pinned=self._pins.of(round_.name),
        )

    def _run(
        self, place: Environment, round_: Round, changed: list[str], settings: SuiteSettings, *, collect: bool = True
    ) -> SuiteRun:
        artifacts = self._artifacts(round_.name) if self._artifacts and collect else None
        return run_suite(place, self._task, round_, settings, changed=changed, artifacts=artifacts)

    @contextlib.contextmanager
    def _alive(self, fork: Environment) -> Iterator[None]:
        """Start a fork, make it known to :meth:`stop` while it runs, and stop it in the end."""
        self._forks.add(fork)
        try:
            fork.start()
            yield
        finally:
            self._forks.discard(fork)
            with contextlib.suppress(EnvironmentFault):  # The verdict counts; the engine clears up when it closes.
                fork.stop()

    @contextlib.contextmanager
    def _agent_kept_out(self, environment: Environment) -> Iterator[None]:
        """The environment without the agent's processes, and without a trace of what happens there meanwhile.

        Raises :class:`~pytest_evocode.errors.EnvironmentFault` when that cannot be had.
        """
        try:
            self._clear(environment)
            yield
        finally:
            self._clear(environment)

    def _clear(self, environment: Environment) -> None:
        if not self._config.keep_processes:
            environment.kill_processes()
        environment.remove(OUT_OF_REACH)
