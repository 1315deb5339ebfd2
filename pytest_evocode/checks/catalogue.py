"""The checks that a task has, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_evocode.checks.attacks import ATTACKS
from pytest_evocode.tasks import Task

CHEATS = "cheat"
"""The directory of a task that has the author's own cheats, and one for each round that has some of its own."""
CONTROLS = "controls"
"""The directory of a task that has a file for each of the author's controls."""

_SHOWN = 5


class Check(NamedTuple):
    """One check; ``subject`` is the round or the requirement that it is about, or empty for the whole task."""

    kind: str
    subject: str = ""

    def __str__(self) -> str:
        """Return the check's name in node ids."""
        return f"{self.kind}[{self.subject}]" if self.subject else self.kind


class CheckWarning(str):
    """A line about what a check could not look at; it is shown as a warning, and the check does not fail for it."""


def first_of(lines: Sequence[str]) -> list[str]:
    """Return the first few of some lines, with how many more there are."""
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [*lines[:_SHOWN], *more]


class Answer(NamedTuple):
    """What came of a check."""

    found: list[str]
    """Lines about what is wrong; of those that are warnings the check does not fail."""
    cached: bool = False
    """Whether an earlier session found it, and nothing that it depends on has changed."""


@dataclass(frozen=True, slots=True)
class Cheat:
    """What somebody might leave in the workspace who wants the points and not the work."""

    name: str
    round: str = ""
    """The round that it is played in, after the reference solutions of those before; empty for one that is played where
    nothing was done in any round."""
    script: Path | None = None
    """The author's script; None for one of the :data:`ATTACKS` that every task is tried with."""

    @property
    def check(self) -> Check:
        """The check that it scores nothing."""
        return Check("cheat", f"{self.round}/{self.name}" if self.round else self.name)


#: The only check that a task has that cannot be loaded.
LINT = Check("lint")


def checks_of(task: Task) -> list[Check]:
    """Return the checks of a task, in the order in which they are reported.

    A suite that runs in place, where the agent works, cannot be run again on a snapshot, so such tasks have fewer
    checks.
    """
    rounds = [round_.name for round_ in task.rounds]
    checks = [LINT, Check("oracle"), Check("nop")]
    if not task.in_place:
        checks += [Check("needs-work", name) for name in rounds]
        checks += [Check("deterministic", name) for name in rounds]
        # A round that asks for a network is given one, so there is nothing to check.
        checks += [Check("hermetic", round_.name) for round_ in task.rounds if not round_.suite_has_network]
        if any(round_.verify_in == "clean" and round_.suite_environment is None for round_ in task.rounds):
            checks.append(Check("clean"))
        checks += [Check("active", requirement.id) for requirement in task.requirements]
        if any(round_.has_script for round_ in task.rounds):
            checks.append(Check("active"))  # The requirements of a script are known only from its cases.
        checks += [cheat.check for cheat in cheats_of(task)]
        checks += controls_of(task)
        checks.append(Check("under-load"))
    return [*checks, Check("starter-clean"), Check("time")]


def cheats_of(task: Task) -> list[Cheat]:
    """Return the cheats of a task: the generic ones, those in its ``cheat/``, and those in ``cheat/<round>/``."""
    directory = task.directory / CHEATS
    own = [
        Cheat(script.name if script.stem in ATTACKS else script.stem, script=script) for script in _scripts(directory)
    ]
    by_round = [
        Cheat(script.stem, round_.name, script)
        for round_ in task.rounds
        for script in _scripts(directory / round_.name)
    ]
    return [*(Cheat(each.name) for each in ATTACKS.values() if each.in_checks), *own, *by_round]


def controls_of(task: Task) -> list[Check]:
    """Return the checks that suites notice what is wrong with the controls in a task's ``controls/``."""
    return [Check("control", path.stem) for path in sorted((task.directory / CONTROLS).glob("*.toml"))]


def _scripts(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*.sh") if path.is_file())
