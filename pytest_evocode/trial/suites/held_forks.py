"""Forks in which suites have run, held for a person to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pytest_evocode.environments import Command, InteractiveEnvironment
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier import NativeSession, SuiteSettings, debug_cases


@dataclass(frozen=True, slots=True)
class HeldFork:
    """A fork in which a round's suite has run, held for a person to look into; it is as the suite left it.

    A suite that ran in it has its tests in ``/tests`` there, and what it wrote in ``/logs/verifier``.
    """

    environment: InteractiveEnvironment
    shell: Command
    """A shell for a terminal, as the user that the suite or its programs have; none of the agent's files is read."""
    session: Callable[[], AbstractContextManager[NativeSession]]
    """Makes what runs the suite once more."""
    task: Task
    round: Round
    settings: SuiteSettings
    """How the suite was run."""
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
            environment, command = debug_cases(session, self.task, self.round, self.settings, cases)
            if isinstance(environment, InteractiveEnvironment):
                environment.interact(command, terminal)
