"""Forks in which a round's suite failed, held for a person to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_evocode.environments import Command, InteractiveEnvironment
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier import SuiteSettings, debug_cases


@dataclass(frozen=True, slots=True)
class HeldFork:
    """A fork as the suite left it, with the tests in ``/tests`` and what it wrote in ``/logs/verifier``."""

    environment: InteractiveEnvironment
    task: Task
    round: Round
    settings: SuiteSettings
    """How the suite was run."""
    drop: Callable[[], None]

    @property
    def shell(self) -> Command:
        """A shell for a terminal, as the suite's user and with its variables; none of the agent's files is read."""
        return Command(("bash", "--norc"), user=self.round.verifier_user, env=self.settings.env)

    def debugging(self, cases: Sequence[str]) -> Command | None:
        """Return a command for a terminal that runs cases again under ``--pdb``; None where the suite is a script.

        Raises :class:`~pytest_evocode.errors.EnvironmentFault`.
        """
        if self.round.has_script:
            return None
        return debug_cases(self.environment, self.task, self.round, self.settings, cases)
