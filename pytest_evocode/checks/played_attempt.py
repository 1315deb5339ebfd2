"""An attempt played for the checks: the workspace before and after each round is kept for suites to run on."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_evocode.agents import Agent
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.checks.empty_stdin import where_stdin_is_read
from pytest_evocode.checks.text_runs import Files
from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import AgentFault, EnvironmentFault, EvocodeError, TaskError
from pytest_evocode.tasks import Round
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.references import ReferenceChanges
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun

logger = logging.getLogger(__name__)

PATIENCE = 3.0
"""How many times the agent's limit a reference solution may take, for its author to see how long it does."""


class SharedRun:
    """A run of a suite that several checks look at: the first who asks for it runs it, and all others wait for that."""

    def __init__(self, run: Callable[[], SuiteRun]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._outcome: Future[SuiteRun] = Future()

    def result(self) -> SuiteRun:
        """Return what came of the run, or raise what kept it from coming to anything, to each who asks."""
        with self._lock:
            if not self._outcome.done():
                try:
                    self._outcome.set_result(self._run())
                except BaseException as error:
                    self._outcome.set_exception(error)
        return self._outcome.result()


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """A round that was played, the workspace before and after it, and its suite."""

    round: Round
    before: Snapshot
    """The snapshot that was taken when the agent's turn began."""
    after: Snapshot
    files_before: Files
    """The contents of the workspace then, by relative paths; empty unless they were asked for."""
    files_after: Files
    suite: SharedRun
    """The run of the suite on the workspace after the round, which begins when somebody asks for it."""

    @property
    def pinned(self) -> dict[str, str]:
        """The cases that passed after the round, with their requirements."""
        verdict = self.suite.result().verdict
        return {case.id: case.requirement for case in verdict.cases if case.status == "passed"} if verdict else {}


class PlayedAttempt:
    """An environment in which an agent takes its turns; it exists while :meth:`started` lasts."""

    def __init__(
        self, context: TrialContext, agent: Agent, *, with_files: bool = False, until_failure: bool = False
    ) -> None:
        """Prepare an attempt; nothing is started yet.

        Args:
            context: What the attempts of the task's checks have in common.
            agent: The agent that plays the rounds.
            with_files: Whether played rounds hold the contents of the workspace.
            until_failure: Whether the suites of rounds end with the first case that fails.
        """
        self.context = context
        self._with_files = with_files
        self._until_failure = until_failure
        self._agent = agent
        self._turns = AgentTurns(context, agent)
        self._is_oracle = type(agent) is OracleAgent
        self._suites = SuiteRunner(context, ReferenceChanges(context), is_oracle=self._is_oracle)
        self._environment: Environment | None = None
        self._branches: set[Environment] = set()
        self._snapshots: list[Snapshot] = []
        self._contents: dict[bytes, bytes] = {}
        """Keeps each content once, however many snapshots have it."""

    @property
    def environment(self) -> Environment:
        """The environment that the agent works in."""
        assert self._environment is not None
        return self._environment

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Start the environment, and remove it and its snapshots in the end."""
        task, task_environment = self.context.task, self.context.task_environment
        self._suites.prepare()
        task_environment.refuse_when_cancelled()
        self._environment = environment = task_environment.create()
        try:
            environment.start()
            if self._with_files and environment.workdir == "/":
                message = "agents work in /, and all of the system is their workspace; give them a directory by WORKDIR"
                raise TaskError(message, task.dockerfile or task.file)
            task_environment.make_ready(environment)
            yield
        finally:
            for snapshot in self._snapshots:
                with contextlib.suppress(EnvironmentFault):  # The engine removes it when it closes.
                    snapshot.discard()
            self._suites.close()
            environment.stop()

    def stop(self) -> None:
        """Kill what runs; to be called from another thread."""
        self._suites.stop()
        for environment in (*self._branches, *([self._environment] if self._environment is not None else [])):
            with contextlib.suppress(EnvironmentFault):
                environment.stop()

    def play(self, round_: Round) -> PlayedRound:
        """Prepare a round, let the agent work, and take snapshots before and after.

        A suite that runs where the agent works is run at once, and any other when somebody asks for it.

        Raises:
            TaskError: The round cannot be prepared, or its solution takes too long.
            AgentFault: The solution failed.
            EnvironmentFault: The environment failed.
        """
        logger.debug("%s: playing %s for its checks", self.context.task.name, round_.name)
        environment = self.environment
        self.context.task_environment.prepare_round(environment, round_)
        before, files_before = self._snapshot(), self._files()
        try:
            timed_out = self._turns.work(environment, round_).timed_out
        except AgentFault as fault:
            if told := self._where_stdin_is_read(before, round_, str(fault)):
                raise AgentFault(f"{told}\n{fault}") from None
            raise
        if isinstance(self._agent, OracleAgent):
            self._refuse_slow(round_, self._agent.seconds, timed_out)
        after, files_after = self._snapshot(), self._files()

        def run() -> SuiteRun:
            suite = self.run_suite(after, round_, until_failure=self._until_failure)
            return self._suites.compared(environment, after, round_, suite, is_live=True) if self._is_oracle else suite

        suite = SharedRun(run)
        if self._suites.in_place:
            suite.result()
        return PlayedRound(round_, before, after, files_before, files_after, suite)

    def _refuse_slow(self, round_: Round, seconds: float, timed_out: bool) -> None:
        """Raise TaskError where a solution took longer than an agent may."""
        limit = self.context.agent_limit(round_)
        if limit is None or (seconds <= limit and not timed_out):
            return
        waited = f"did not end within {seconds:.1f} s (a check waits {PATIENCE:g} times as long as an agent may take)"
        took = waited if timed_out else f"took {seconds:.1f} s"
        raise TaskError(
            f"the reference solution of {round_.name} {took}, and the agent's limit is "
            f"{self._explained(round_, limit)}; make it quicker, or raise timeout_sec of [agent]",
            (round_.solution or round_.directory) / "solve.sh",
        )

    def _explained(self, round_: Round, limit: float) -> str:
        """Return the agent's limit, and what it is made of where a session multiplies it."""
        factor = self.context.options.timeout_multiplier
        return f"{limit:g} s" if factor == 1 else f"{limit:g} s ({round_.agent_timeout:g} s, multiplied by {factor:g})"

    def _where_stdin_is_read(self, before: Snapshot, round_: Round, fault: str) -> str:
        """Return where a solution that failed reads its stdin, for which it is run once more; nothing if nowhere."""
        if not self._is_oracle or round_.solution is None:
            return ""
        turns = AgentTurns(self.context, OracleAgent(readable_stdin=False, in_check=True))
        try:
            with self.branch(before, round_, lambda place: turns.work(place, round_)):
                return ""
        except EvocodeError as error:
            directories = {"/solution": [round_.solution]}
            return where_stdin_is_read(fault, str(error), "/solution/solve.sh", directories)

    def run_again(self, played: PlayedRound, snapshot: Snapshot, *, offline: bool = False, **how: Any) -> SuiteRun:
        """Run the suite of a played round once more, on a snapshot.

        A native suite knows the cases that pass after the round, so that what breaks counts; a script may print others.

        Args:
            played: The round.
            snapshot: What the suite runs on.
            offline: Whether the suite has no network.
            how: What else is different, as for :meth:`~pytest_evocode.trial.suites.runner.SuiteRunner.run`.
        """
        round_ = replace(played.round, verifier_network="no-network") if offline else played.round
        return self.run_suite(snapshot, round_, pinned=None if round_.has_script else played.pinned, **how)

    def run_suite(
        self, snapshot: Snapshot, round_: Round, *, taken_of: Environment | None = None, **how: Any
    ) -> SuiteRun:
        """Run the suite of a round on a snapshot, that was taken of this environment or of the one that is named.

        A suite that runs in place is run there, in the environment itself.
        """
        self.context.task_environment.refuse_when_cancelled()
        if self._suites.in_place:
            return self._suites.run_in_place(taken_of or self.environment, round_, collect=False)
        if taken_of is not None:  # By somebody who does not play the solutions.
            how.setdefault("carry", "reference")
        return self._suites.run(taken_of or self.environment, snapshot, round_, seek_stale=False, **how)

    @contextlib.contextmanager
    def branch(
        self, snapshot: Snapshot, round_: Round, change: Callable[[Environment], object]
    ) -> Iterator[tuple[Environment, Snapshot]]:
        """Continue a snapshot in an environment of its own that ``change`` works in, in place of a round's agent.

        Both are yielded as they are then.
        """
        self.context.task_environment.refuse_when_cancelled()
        environment = self.context.task_environment.create(snapshot=snapshot)
        self._branches.add(environment)
        try:
            environment.start()
            change(environment)
            self.context.task_environment.collect(environment, round_)
            changed = environment.snapshot()
            try:
                yield environment, changed
            finally:
                with contextlib.suppress(EnvironmentFault):
                    changed.discard()
        finally:
            self._branches.discard(environment)
            with contextlib.suppress(EnvironmentFault):
                environment.stop()

    def _snapshot(self) -> Snapshot:
        snapshot = self.environment.snapshot()
        self._snapshots.append(snapshot)
        return snapshot

    def _files(self) -> Files:
        if not self._with_files:
            return {}
        files = read_workspace(self.environment)
        return {path: self._contents.setdefault(contents, contents) for path, contents in files.items()}


def read_workspace(environment: Environment) -> dict[str, bytes]:
    """Return the contents of an environment's workspace, by relative path."""
    with scratch_directory() as directory:
        copy = Path(directory, "workspace")
        environment.download(environment.workdir, copy)
        return read_tree(copy)


def lay(files: Mapping[str, bytes], environment: Environment) -> None:
    """Write files into an environment's workspace, by relative path, which anybody may change and execute."""
    with scratch_directory() as directory:
        for path, contents in files.items():
            place = Path(directory, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(contents)
            place.chmod(0o777)
        environment.upload([Path(directory)], environment.workdir, writable=True)


def read_tree(directory: Path | None) -> dict[str, bytes]:
    """Return the contents of the regular files below a directory, by relative path; nothing for None."""
    if directory is None:
        return {}
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }
