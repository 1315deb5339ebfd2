"""An attempt played for the checks: the workspace before and after each round, kept for suites to run on."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_evocode.agents import Agent
from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.errors import EnvironmentFault, TaskError
from pytest_evocode.tasks import Round
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suite_runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun

Files = Mapping[str, bytes]
"""Contents by path."""


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """One round that was played, and its suite."""

    round: Round
    before: Snapshot
    """When the agent's turn began."""
    after: Snapshot
    files_before: Files
    """The workspace then, by relative paths; empty unless asked for."""
    files_after: Files
    suite: Future[SuiteRun]
    """On the state after the round."""

    @property
    def pinned(self) -> dict[str, str]:
        """The cases that passed after the round, with their requirements."""
        verdict = self.suite.result().verdict
        return {case.id: case.requirement for case in verdict.cases if case.status == "passed"} if verdict else {}


class PlayedAttempt:
    """An environment in which an agent takes its turns; to be used while :meth:`started`."""

    def __init__(
        self, context: TrialContext, agent: Agent, *, with_files: bool = False, until_failure: bool = False
    ) -> None:
        """``with_files`` says whether played rounds hold the files of the workspace.

        ``until_failure`` has the suites of rounds end with the first case that fails.
        """
        self.task = context.task
        self.engine = context.engine
        self._context = context
        self._with_files = with_files
        self._until_failure = until_failure
        self._turns = AgentTurns(context, agent)
        self._suites = SuiteRunner(context)
        self._environment: Environment | None = None
        self._snapshots: list[Snapshot] = []
        self._contents: dict[bytes, bytes] = {}
        """Each content once, however many states have it."""

    @property
    def environment(self) -> Environment:
        """Where the agent works."""
        assert self._environment is not None
        return self._environment

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """The environment as an agent finds it at first; nothing is left of it or its states in the end."""
        task, task_environment = self.task, self._context.environment
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
                with contextlib.suppress(EnvironmentFault):  # The engine clears up when it closes.
                    snapshot.discard()
            environment.stop()

    def stop(self) -> None:
        """Kill what runs, from another thread."""
        self._suites.stop()
        if self._environment is not None:
            with contextlib.suppress(EnvironmentFault):
                self._environment.stop()

    def play(self, round_: Round, suites: Executor) -> PlayedRound:
        """Prepare a round, let the agent work, keep both states and have the suite run.

        Raises what keeps the round from being played.
        """
        environment = self.environment
        self._turns.prepare(environment, round_)
        before, files_before = self._snapshot(), self._files()
        transcript = self._turns.work(environment, round_).transcript
        if transcript.timed_out:
            limit = self._context.agent_limit(round_)
            raise TaskError(
                f"the reference solution did not end within the agent's limit of {limit:g} s; "
                "make it quicker, or raise timeout_sec of [agent]",
                round_.directory / "solution/solve.sh",
            )
        after, files_after = self._snapshot(), self._files()
        if self._suites.in_place:
            suite: Future[SuiteRun] = Future()
            suite.set_result(self._suites.run_in_place(environment, round_))
        else:
            suite = suites.submit(self._run, after, round_, until_failure=self._until_failure)
        return PlayedRound(round_, before, after, files_before, files_after, suite)

    def limit(self, round_: Round) -> float:
        """Seconds that the suite of a round has."""
        return self._context.suite_limit(round_)

    def run_again(
        self,
        played: PlayedRound,
        snapshot: Snapshot,
        *,
        change: Callable[[Environment], None] = lambda fork: None,
        offline: bool = False,
        **settings: Any,
    ) -> SuiteRun:
        """Run a played's suite once more on some state, knowing which cases pass after its round.

        ``change`` may change the state before; ``settings`` has fields of
        :class:`~pytest_evocode.verifier.SuiteSettings`.
        """
        round_ = replace(played.round, verifier_network="no-network") if offline else played.round
        return self._run(snapshot, round_, change=change, pinned=played.pinned, **settings)

    def _run(
        self,
        snapshot: Snapshot,
        round_: Round,
        *,
        change: Callable[[Environment], None] = lambda fork: None,
        **settings: Any,
    ) -> SuiteRun:
        self._context.environment.refuse_when_cancelled()
        return self._suites.run(
            self.environment,
            snapshot,
            round_,
            vary=lambda usual: replace(usual, seek_stale=False, **settings),
            change=change,
        )

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
    """The files that an agent works on, by relative path."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, "workspace")
        environment.download(environment.workdir, copy)
        return read_tree(copy)


def read_tree(directory: Path | None) -> dict[str, bytes]:
    """The regular files below a directory, by relative path; none where there is no such directory."""
    if directory is None:
        return {}
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }
