"""Runs the verifier's part of a round: its suite, in a fork of the round's snapshot or where the agent works."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_evocode.environments import (
    Command,
    DistrustingEnvironment,
    Environment,
    InteractiveEnvironment,
    ProgramEnvironment,
    Snapshot,
)
from pytest_evocode.environments.task_environment import (
    HIDDEN_FROM_AGENT,
    SOLUTION,
    VERIFIER_DIRECTORIES,
    carried_over,
)
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.phases import Stopwatch
from pytest_evocode.tasks import Round, VerifyIn, resolve_env
from pytest_evocode.tasks.lockfile import NOT_PINNED, Pins, read_pins
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.held_forks import HeldFork, SetAside
from pytest_evocode.trial.image_preparation import facts_beside
from pytest_evocode.trial.running_suites import RunningSuites
from pytest_evocode.trial.system_changes import SystemChanges
from pytest_evocode.trial.verifier_environments import VerifierEnvironments
from pytest_evocode.trial.warm_caches import WarmCaches
from pytest_evocode.verifier import (
    Changes,
    NativeSession,
    SuiteRun,
    SuiteSettings,
    Toolbox,
    find_suite_home,
    find_toolbox,
    native_session,
    round_variables,
    run_suite,
)

logger = logging.getLogger(__name__)


class SuiteRunner:
    """Runs the suites of one attempt, several at once where they run in forks.

    Artifacts are collected where the context has a directory. With the option ``hold_forks`` forks stay as the suites
    have left them, until they are dropped.
    """

    def __init__(self, context: TrialContext, *, trusted: bool = False) -> None:
        """Run no suite yet; ``trusted`` says that the suites run on what reference solutions leave."""
        self._context = context
        self._warm = WarmCaches(context, trusted=trusted)
        self._task = context.task
        self._options = context.options
        self._config = context.task.config.metadata.evocode
        self._running = RunningSuites(context.cancelled)
        self._held: dict[int, HeldFork] = {}
        self._system = SystemChanges(context)
        self._toolbox: Toolbox | None = None
        self._verifiers: VerifierEnvironments | None = None
        self._pins: Pins = NOT_PINNED

    @property
    def in_place(self) -> bool:
        """Whether suites run where the agent works."""
        return self._task.in_place

    def prepare(self) -> None:
        """Make sure that suites can be run in this task's image, before an agent has been there.

        Raises TaskError and EnvironmentFault.
        """
        self._pins = read_pins(self._task.directory)
        self._context.task_environment.build()
        native = [round_ for round_ in self._task.rounds if not round_.has_script]
        if any(round_.verify_in == "separate" for round_ in native):
            with facts_beside(self._context.engine, self._task):
                home = find_suite_home(self._context.engine, self._task)
            self._toolbox = home.toolbox
            self._verifiers = VerifierEnvironments(self._context, home)
            self._verifiers.begin()
        elif native:
            with facts_beside(self._context.engine, self._task):
                self._toolbox = find_toolbox(self._context.engine, self._task)

    def run(
        self,
        environment: Environment,
        snapshot: Snapshot,
        round_: Round,
        *,
        change: Callable[[Environment], None] = lambda fork: None,
        **changed_settings: Any,
    ) -> SuiteRun:
        """Run a round's suite in a fork of its snapshot.

        ``change`` may change the fork before the suite runs; ``changed_settings`` are fields of
        :class:`~pytest_evocode.verifier.SuiteSettings` that are not as usual.
        """
        stopwatch = Stopwatch()
        stopwatch.begin("fork")
        changes = self._system.find(snapshot, environment.workdir)
        rests_on = round_.verify_in
        fork = self._fork(environment, snapshot, round_)
        try:
            stopped = self._running.stopped(round_.index)
            with self._context.take_slots(round_, stopped, stopwatch), contextlib.ExitStack() as life:
                life.enter_context(self._alive(fork, round_))
                if rests_on == "clean":
                    fork.remove([SOLUTION])  # An image may bring one, as TaskEnvironment.make_ready knows.
                    # The agent may have removed it, or put a link in its place, which is not carried over.
                    fork.exec(["mkdir", "-p", "--", fork.workdir], user="0", cwd="/", timeout=60)
                change(fork)
                settings = replace(self._suite_settings(round_), stopwatch=stopwatch, **changed_settings)
                begun = self._warm.give(fork, round_, settings)
                with self._verifier_of(round_) as verifier:
                    suite = self._run(fork, round_, changes, settings, rests_on, verifier=verifier)
                self._warm.keep(round_, begun, suite)
                if self._options.hold_forks and isinstance(fork, InteractiveEnvironment):
                    self._held[round_.index] = self._hold(fork, round_, settings, life.pop_all().close)
                return suite
        except EnvironmentFault as error:
            if self._running.stopped(round_.index).is_set() or not self._options.strict:
                raise
            suite = self._system.attach(SuiteRun("", None, str(error)), changes, rests_on, environment.workdir)
            if not suite.stand_in().rests_on_changed_tools:
                raise
            logger.info("%s, %s: the fork failed, with tools changed", self._task.name, round_.name)
            return suite

    def _fork(self, environment: Environment, snapshot: Snapshot, round_: Round) -> Environment:
        """Return a fork for a round's suite, or for the program alone where the suite runs apart; not started."""
        if round_.verify_in == "separate":
            return environment.fork(snapshot, network=round_.verifier_network)
        return environment.fork(
            snapshot,
            network=round_.verifier_network,
            fresh=VERIFIER_DIRECTORIES,
            no_new_privileges=True,
            only=carried_over(self._task, round_, environment.workdir),
        )

    @contextlib.contextmanager
    def _verifier_of(self, round_: Round) -> Iterator[ProgramEnvironment | None]:
        """Yield the environment in which a round's suite runs; None where that is the fork."""
        if round_.verify_in == "separate" and self._verifiers is not None:
            with self._verifiers.take() as verifier, self._running.noted(verifier, round_.index):
                yield verifier
        else:
            yield None

    def _hold(
        self, fork: InteractiveEnvironment, round_: Round, settings: SuiteSettings, drop: Callable[[], None]
    ) -> HeldFork:
        @contextlib.contextmanager
        def session() -> Iterator[NativeSession]:
            with self._verifier_of(round_) as verifier:
                found = native_session(fork, verifier, self._task, round_, settings, {})
                try:
                    yield found
                finally:
                    found.close()

        shell = Command(("bash", "--norc"), user=round_.verifier_user, env=settings.env)
        if round_.verify_in == "separate":
            shell = Command(("bash", "--norc"), user=round_.agent_user)
        return HeldFork(fork, shell, session, self._task, round_, settings, drop)

    def run_in_place(self, environment: Environment, round_: Round, *, collect: bool = True) -> SuiteRun:
        """Run a round's suite where the agent works and leave nothing of it there.

        Artifacts are collected unless ``collect`` is False.
        """
        if isinstance(environment, DistrustingEnvironment):
            environment.distrust()
        # All within the slot: while it waits for one, what the agent left running could still change a tool.
        stopwatch = Stopwatch()
        with self._context.take_slots(round_, self._context.cancelled, stopwatch):
            try:
                self._clear(environment)
                snapshot = environment.snapshot()
                try:
                    changes = self._system.find(snapshot, environment.workdir)
                finally:
                    snapshot.discard()
                environment.make_directories(VERIFIER_DIRECTORIES)
                settings = replace(self._suite_settings(round_), stopwatch=stopwatch)
                return self._run(environment, round_, changes, settings, "place", collect=collect)
            finally:
                self._clear(environment)

    def fork_of(self, index: int) -> HeldFork | None:
        """Return the fork of a round's suite, where it is held."""
        return self._held.get(index)

    def set_aside(self, round_: Round) -> SetAside:
        """Take away what a run of a round's suite left, its fork and artifacts, so that another run leaves its own.

        Raises OSError.
        """
        directory = self._context.directory
        artifacts = directory.artifacts(round_.name) if directory is not None else None
        place = None
        if artifacts is not None and artifacts.exists():
            place = Path(tempfile.mkdtemp(prefix=".", dir=artifacts.parent))
            artifacts.rename(place / artifacts.name)
        return SetAside(self._held.pop(round_.index, None), place)

    def put_back(self, round_: Round, left: SetAside) -> None:
        """Undo :meth:`set_aside`: what a later run left is dropped.

        Raises OSError.
        """
        self.drop_fork(round_.index)
        if left.fork is not None:
            self._held[round_.index] = left.fork
        if self._context.directory is not None:
            artifacts = self._context.directory.artifacts(round_.name)
            if artifacts.exists():
                shutil.rmtree(artifacts)
            if left.artifacts is not None:
                (left.artifacts / artifacts.name).rename(artifacts)
        left.drop_artifacts()

    def drop_fork(self, index: int) -> None:
        """Stop the fork of a round's suite, where it is held."""
        if (held := self._held.pop(index, None)) is not None:
            held.drop()

    def close(self) -> None:
        """Stop the environments of suites that run apart; no suite is run any more."""
        if self._verifiers is not None:
            self._verifiers.close()

    def stop(self) -> None:
        """Kill every suite that runs in a fork, or for one."""
        self.close()
        self._running.kill()

    def drop_after(self, index: int) -> None:
        """Kill every suite of the rounds after one, and start no more of them.

        To be called again until they have ended: what was just about to start is killed by the next call.
        """
        self._running.kill(after=index)

    def _suite_settings(self, round_: Round) -> SuiteSettings:
        # A process that runs as root beside the suite reads the environment of every process.
        watched = self.in_place and self._config.keep_processes
        patterns = self._options.cases.get(round_.name, ())
        return SuiteSettings(
            env={
                **resolve_env(
                    round_.verifier_env,
                    self._options.environ,
                    path=self._task.file,
                    withheld=lambda name: watched and self._context.withheld(name),
                ),
                **round_variables(round_),
            },
            timeout=self._context.suite_limit(round_),
            timeout_multiplier=self._options.timeout_multiplier,
            toolbox=self._toolbox,
            pinned=None if patterns else self._pins.of(round_.name),
            patterns=patterns,
        )

    def _run(
        self,
        place: Environment,
        round_: Round,
        changes: Changes,
        settings: SuiteSettings,
        rests_on: VerifyIn,
        *,
        verifier: ProgramEnvironment | None = None,
        collect: bool = True,
    ) -> SuiteRun:
        directory = self._context.directory
        artifacts = directory.artifacts(round_.name) if directory is not None and collect else None
        logger.debug("%s, %s: the suite begins", self._task.name, round_.name)
        self._system.put_right(place, changes, rests_on)
        suite = run_suite(place, self._task, round_, settings, verifier=verifier, artifacts=artifacts)
        logger.debug("%s, %s: the suite took %.1f s", self._task.name, round_.name, suite.seconds)
        suite = self._system.attach(suite, changes, rests_on, place.workdir)
        return replace(suite, phases=settings.stopwatch.phases)

    @contextlib.contextmanager
    def _alive(self, fork: Environment, round_: Round) -> Iterator[None]:
        """Start a fork, make it known to :meth:`stop` while it runs, and stop it in the end."""
        with self._running.noted(fork, round_.index):
            try:
                fork.start()
                yield
            finally:
                with contextlib.suppress(EnvironmentFault):  # The verdict counts; the engine clears up when it closes.
                    fork.stop()

    def _clear(self, environment: Environment) -> None:
        """End the agent's processes, and remove what it must not see.

        Raises :class:`~pytest_evocode.errors.EnvironmentFault` when that cannot be done.
        """
        if not self._config.keep_processes:
            environment.kill_processes()
        environment.remove(HIDDEN_FROM_AGENT)
