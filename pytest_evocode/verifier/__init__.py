"""The verifier: runs a round's suite where no process of the agent is, and makes a verdict of it.

:mod:`~pytest_evocode.verifier.suite` runs native suites and those of a ``test.sh``, whose reports
:mod:`~pytest_evocode.verifier.script` reads. A native suite gets at the workspace through
:mod:`~pytest_evocode.verifier.door` alone. What the runs mean for the round, :mod:`~pytest_evocode.verifier.judging`
says.
"""

from __future__ import annotations

from pytest_evocode.verifier.judging import (
    as_recorded,
    compare_cases,
    ended_by,
    judge,
    may_fall_short,
    needs_verdict,
    of_repeated,
    worst,
)
from pytest_evocode.verifier.native_session import NativeSession
from pytest_evocode.verifier.suite import HANGING_ADVICE, NO_VERDICT_ADVICE, debug_cases, run_suite
from pytest_evocode.verifier.suite_run import SuiteRun, SuiteSettings, round_variables
from pytest_evocode.verifier.toolbox import SuiteHome, Toolbox, find_suite_home, find_toolbox

__all__ = [
    "HANGING_ADVICE",
    "NO_VERDICT_ADVICE",
    "NativeSession",
    "SuiteHome",
    "SuiteRun",
    "SuiteSettings",
    "Toolbox",
    "as_recorded",
    "compare_cases",
    "debug_cases",
    "ended_by",
    "find_suite_home",
    "find_toolbox",
    "judge",
    "may_fall_short",
    "needs_verdict",
    "of_repeated",
    "round_variables",
    "run_suite",
    "worst",
]
