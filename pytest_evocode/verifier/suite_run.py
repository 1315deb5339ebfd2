"""How one suite is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_evocode.results.phases import Phases, Stopwatch
from pytest_evocode.results.records import ChangesFile, DeniedConnection, Verdict
from pytest_evocode.tasks import Round
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
    retired: str = ""
    """Run the tests that this round retires in place of the suite, which is no verdict on a round (native suites)."""
    cases: Sequence[str] = ()
    """Run these cases alone, by their ids; none for all (native suites)."""
    backwards: bool = False
    """Run the cases in reverse order, so that of any two the other one comes first (native suites)."""
    until_failure: bool = False
    """End with the first case that fails (native suites)."""
    days: int = 0
    """Days that the clock is put forward, where that can be done."""
    patterns: tuple[str, ...] = ()
    """With wildcards, what the cases that are run are called; empty for all (native suites). What comes of some cases
    is no verdict on a round."""
    seek_stale: bool = True
    """Whether stale cases are told apart from other failing ones, which may take another run (native suites)."""
    readable_stdin: bool = True
    """Whether a ``test.sh`` finds an empty stdin; reading from it is an error otherwise, which tells where it does."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch, compare=False)
    """Measures the phases of this run."""


def round_variables(round_: Round) -> dict[str, str]:
    """Return the variables that tell a suite, native or script, which round it verifies."""
    return {"EVOCODE_ROUND": round_.name, "EVOCODE_ROUND_INDEX": str(round_.index)}


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A suite that was run: its output, and the verdict or why there is none."""

    output: str
    verdict: Verdict | None
    fault: str = ""
    hang: str = ""
    """Where the suite hung, as far as that is known; empty where it did not, or where a case failed by itself."""
    seconds: float = 0.0
    """How long it took, with what was brought into the fork and read from it."""
    phases: Phases | None = None
    """Where the time went, waiting for a slot included."""
    more_logs: bool = False
    """Whether a script left more in ``/logs/verifier`` than a reward, or than what is the same in a record."""
    left_out: tuple[str, ...] = ()
    """What is to be said of artifacts that were not collected."""
    left_behind: int = 0
    """How many of these changes the suite did not find, where it may matter."""
    changes: ChangesFile | None = None
    """What the agent had changed outside of its workspace; None where nobody looked."""
    days: int = 0
    """Days that the clock was put forward."""
    denied: tuple[DeniedConnection, ...] | None = None
    """What it was denied of the network; None where it had no allowlist."""
    of_agent: str = ""
    """Why it is the agent's doing that there is no verdict; empty where there is one, or nothing shows that."""

    def noting(self, flags: Sequence[str]) -> SuiteRun:
        """Return the same run with flags, in its verdict or in why there is none."""
        if not flags:
            return self
        if self.verdict is None:
            return replace(self, fault="\n".join((self.fault, *flags)))
        return replace(self, verdict=self.verdict.model_copy(update={"flags": (*self.verdict.flags, *flags)}))

    def saying(self, **known: Any) -> SuiteRun:
        """Return the same run with fields of its verdict, if it has one, set."""
        return self if self.verdict is None else replace(self, verdict=self.verdict.model_copy(update=known))
