"""How one suite is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_evocode.results.records import Verdict
from pytest_evocode.verifier.toolbox import Toolbox

LOGS = "/logs/verifier"


@dataclass(frozen=True, slots=True)
class SuiteSettings:
    """How one run of a suite differs from another: its limits, variables, and what a check asks for."""

    env: Mapping[str, str]
    """The verifier's variables, resolved."""
    timeout: float
    """Seconds that the suite has as a whole."""
    timeout_multiplier: float = 1.0
    """What the limits of single cases are multiplied by (native suites)."""
    toolbox: Toolbox | None = None
    """The pytest that is brought along (native suites)."""
    pinned: Mapping[str, str] | None = None
    """The cases that the reference solution passes, by id, with their requirements; None where they are not known."""
    only: str = ""
    """Run the tests of this round alone (native suites)."""
    backwards: bool = False
    """Run the cases in reverse order, so that of any two the other one comes first (native suites)."""
    until_failure: bool = False
    """End with the first case that fails (native suites)."""
    days: int = 0
    """Days that the clock is put forward, where that can be done."""
    seek_stale: bool = True
    """Whether stale cases are told apart from other failing ones, which may take another run (native suites)."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A suite that was run: its output, and the verdict or why there is none."""

    output: str
    verdict: Verdict | None
    fault: str = ""
    seconds: float = 0.0
    """How long it took, with what was brought into the fork and read from it."""
    left_out: tuple[str, ...] = ()
    """Artifacts that were not collected, with reasons."""
    changed_tools: tuple[str, ...] = ()
    """Tools of the image that the agent had changed."""
    days: int = 0
    """Days that the clock was put forward."""
