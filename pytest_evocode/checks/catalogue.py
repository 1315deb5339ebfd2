"""Which checks a task has, and what they are called."""

from __future__ import annotations

from typing import NamedTuple

from pytest_evocode.tasks import Task


class Check(NamedTuple):
    """One check; ``subject`` is the round or the requirement it is about, empty where it is about the whole task."""

    kind: str
    subject: str = ""

    def __str__(self) -> str:
        """As node ids have it."""
        return f"{self.kind}[{self.subject}]" if self.subject else self.kind


class CheckWarning(str):
    """A line about what a check could not look at; it warns of that and does not fail."""


#: The only check of a task that cannot be loaded.
LINT = Check("lint")


def checks_of(task: Task) -> list[Check]:
    """The checks of a task, in the order in which they are reported.

    Suites that run where the agent works cannot be run again on a state, so those tasks have fewer.
    """
    rounds = [round_.name for round_ in task.rounds]
    checks = [LINT, Check("oracle"), Check("nop")]
    if task.config.metadata.evocode.verify_in == "fork":
        checks += [Check("needs-work", name) for name in rounds]
        checks += [Check("deterministic", name) for name in rounds]
        # A task that asks for a network gets one.
        checks += [Check("hermetic", round_.name) for round_ in task.rounds if round_.verifier_network != "public"]
        checks += [Check("active", requirement.id) for requirement in task.requirements]
        if any(round_.has_script for round_ in task.rounds):
            checks.append(Check("active"))  # What a script requires only its cases tell.
    return [*checks, Check("starter-clean"), Check("time")]
