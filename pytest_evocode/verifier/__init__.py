"""The verifier: a round's suite, run where no process of the agent is, and what it said."""

from __future__ import annotations

from pytest_evocode.verifier.native import debug_cases
from pytest_evocode.verifier.round_outcome import judge
from pytest_evocode.verifier.suite import FRESH, run_suite, suite_not_run
from pytest_evocode.verifier.suite_run import SuiteRun, SuiteSettings
from pytest_evocode.verifier.toolbox import Toolbox, find_toolbox

__all__ = [
    "FRESH",
    "SuiteRun",
    "SuiteSettings",
    "Toolbox",
    "debug_cases",
    "find_toolbox",
    "judge",
    "run_suite",
    "suite_not_run",
]
