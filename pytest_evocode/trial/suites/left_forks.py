"""A fork as a suite has left it, until its artifacts are collected and it is removed."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pytest_evocode.environments import Command, Environment
from pytest_evocode.environments.entry_points import ENTRY_POINT_LOG
from pytest_evocode.environments.task_environment import SERVICES, record_services
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.directory import SUITE_LOGS
from pytest_evocode.results.scrubbing import scrub_tree
from pytest_evocode.tasks import Round
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.verifier import NativeSession, SuiteSettings, debug_cases
from pytest_evocode.verifier.suite_run import LOGS

T = TypeVar("T")
_FULL = os.strerror(errno.ENOSPC)
logger = logging.getLogger(__name__)


class LeftFork:
    """A fork in which a suite has run, and what is still to be had of it.

    Whoever gets one has to see to it that it is stopped, by :meth:`stop`, which any thread may call, and again.
    """

    def __init__(self, context: TrialContext, fork: Environment, round_: Round, settings: SuiteSettings) -> None:
        self.environment = fork
        """What the agent left, from which artifacts are collected."""
        self.place = fork
        """Where the suite runs: the fork, or an environment that it has for itself."""
        self.round = round_
        self.settings = settings
        """How the suite was run."""
        self.more_logs = False
        """Whether the suite left something in ``/logs/verifier`` that is collected."""
        self._context = context
        self._flags: tuple[str, ...] | None = None
        self._life = contextlib.ExitStack()

    def until_stopped(self, context: AbstractContextManager[T]) -> T:
        """Enter a context that lasts until the fork is stopped, and return what it yields."""
        return self._life.enter_context(context)

    def silence(self) -> None:
        """End what the suite left running: nothing of it is to take the next suite's time or change an artifact."""
        try:
            self.place.kill_processes()
        except EnvironmentFault as error:
            logger.info("%s, %s: a fork is removed at once: %s", self._context.task.name, self.round.name, error)
            self.stop()

    def gather(self) -> None:
        """Copy the artifacts and the suite's logs, without secrets, where the attempt has a directory."""
        if self._context.directory is None:
            return
        # Beside their place: that is for a round that counts, and its record rewrites what is there.
        beside = self._context.directory.gathered_artifacts(self.round.name)
        try:
            _remove_tree(beside)
            left_out = collect_artifacts(self.environment, self.round, beside / "artifacts")
            flags = [f"artifact left out: {reason}" for reason in left_out]
            if self.more_logs:
                left_out += (logs_left_out := self.place.download(LOGS, beside / SUITE_LOGS))
                flags += [f"suite log left out: {reason}" for reason in logs_left_out]
            if (entered := self.place.entered) is not None and (output := entered.output()):
                (beside / SUITE_LOGS).mkdir(parents=True, exist_ok=True)
                (beside / SUITE_LOGS / ENTRY_POINT_LOG).write_text(output)
            record_services(self.environment, beside / SUITE_LOGS / SERVICES, self._context.scrubber)
            if any(reason.endswith(_FULL) for reason in left_out):
                raise OSError(errno.ENOSPC, _FULL)  # What is there already must not take the room of records.
            scrub_tree(beside, self._context.scrubber)
        except (EnvironmentFault, OSError) as error:
            self._not_gathered(error)
        else:
            self._flags = tuple(flags)

    def put_artifacts(self) -> tuple[str, ...]:
        """Put what was gathered in its place, all of it or nothing, and return what is to be said of what was not."""
        directory, name = self._context.directory, self.round.name
        if directory is not None and self._flags is not None:
            logs = directory.verifier_output(name).with_name(SUITE_LOGS)
            beside = directory.gathered_artifacts(name)
            try:
                for gathered, place in ((beside / "artifacts", directory.artifacts(name)), (beside / SUITE_LOGS, logs)):
                    _remove_tree(place)
                    if gathered.exists():
                        place.parent.mkdir(parents=True, exist_ok=True)
                        gathered.rename(place)
                _remove_tree(beside)
            except OSError as error:
                self._not_gathered(error)
        return self._flags or ()

    def drop_artifacts(self) -> None:
        """Remove what was gathered: the round does not count."""
        if self._context.directory is not None:
            with contextlib.suppress(OSError):
                _remove_tree(self._context.directory.gathered_artifacts(self.round.name))

    def _not_gathered(self, error: Exception) -> None:
        self.drop_artifacts()
        self._flags = (f"artifacts not collected: {error}",)

    def stop(self) -> None:
        """Remove the fork; a failure is passed over, because the engine removes what is left when it closes."""
        with self._life.pop_all(), contextlib.suppress(EnvironmentFault):
            self.environment.stop()


def collect_artifacts(fork: Environment, round_: Round, target: Path) -> tuple[str, ...]:
    """Collect what a task declares after a round, and return what was left out, with reasons.

    Raises EnvironmentFault when the engine fails.
    """
    left_out = list(fork.download("/logs/artifacts", target))
    for artifact in round_.artifacts:
        destination = target / (artifact.destination or PurePosixPath(artifact.source).name)
        place = fork.files_of(artifact.service)
        left_out += place.download(artifact.source, destination, exclude=artifact.exclude)
    return tuple(left_out)


def _remove_tree(directory: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(directory)


@dataclass(frozen=True, slots=True)
class HeldFork:
    """A fork in which a round's suite has run, held for a person to look into; it is as the suite left it.

    A suite that ran in it has its tests in ``/tests`` there, and what it wrote in ``/logs/verifier``.
    """

    environment: Environment
    shell: Command
    """A shell for a terminal, as the user that the suite or its programs have; none of the agent's files is read."""
    session: Callable[[], AbstractContextManager[NativeSession]]
    """Makes what runs the suite once more."""
    round: Round
    drop: Callable[[], None]

    @property
    def can_debug(self) -> bool:
        """Whether there are cases that ``--pdb`` can run again: a script has none."""
        return not self.round.has_script

    def debug(self, cases: Sequence[str], terminal: int) -> None:
        """Run cases again with ``--pdb`` on a terminal, an open file descriptor.

        Raises :class:`~pytest_evocode.errors.EnvironmentFault`.
        """
        with self.session() as session:
            environment, command = debug_cases(session, cases)
            environment.interact(command, terminal)
