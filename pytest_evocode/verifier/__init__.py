"""The verifier: runs a round's suite where no process of the agent is, and makes a verdict of it."""

from __future__ import annotations

from pytest_evocode.verifier.native_session import NativeSession
from pytest_evocode.verifier.suite import debug_cases, native_session, run_suite
from pytest_evocode.verifier.suite_run import (
    SuiteRun,
    SuiteSettings,
    as_recorded,
    compare_cases,
    ended_by,
    judge,
    may_fall_short,
    needs_verdict,
    of_repeated,
    round_variables,
    worst,
)
from pytest_evocode.verifier.toolbox import SuiteHome, Toolbox, find_suite_home, find_toolbox

__all__ = [
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
    "native_session",
    "needs_verdict",
    "of_repeated",
    "round_variables",
    "run_suite",
    "worst",
]
