"""How one suite is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_evocode.results.phases import Phases, Stopwatch
from pytest_evocode.results.records import ChangedPaths, ChangesFile, DeniedConnection, Verdict
from pytest_evocode.tasks import Round, VerifyIn
from pytest_evocode.verifier.changes import listed
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
    is_control: bool = False
    """Whether it only tells whose fault it is that another run gave no verdict, so that nothing is kept of it."""
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
    """Artifacts that were not collected, with reasons."""
    rests_on: VerifyIn | None = None
    """Where it ran."""
    changes: ChangesFile | None = None
    """What the agent had changed outside of its workspace; None where nobody looked."""
    changed: ChangedPaths | None = None
    """The same as verdicts say it."""
    changed_tools: tuple[str, ...] = ()
    """Of that what can steer a suite, as verdicts list it."""
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

    def resting_on(
        self, rests_on: VerifyIn, changes: ChangesFile, changed: ChangedPaths, tools: Sequence[str]
    ) -> SuiteRun:
        """Return the same run with where it was, and what had been changed there, in its verdict too."""
        known: dict[str, Any] = {"rests_on": rests_on, "changed": changed, "changed_tools": listed(tools)}
        verdict = self.verdict.model_copy(update=known) if self.verdict is not None else None
        return replace(self, verdict=verdict, changes=changes, **known)

    def stand_in(self) -> Verdict:
        """Return a verdict of nothing for a suite that gave none."""
        return Verdict(
            reward=0.0,
            rewards={"reward": 0.0},
            rests_on=self.rests_on,
            changed=self.changed,
            changed_tools=self.changed_tools,
        )
