"""The verifier: a round's suite, run where no process of the agent is, and what it said."""

from __future__ import annotations

from pytest_evocode.verifier.judging import judge
from pytest_evocode.verifier.suite import FRESH, SuiteRun, run_suite, suite_not_run

__all__ = ["FRESH", "SuiteRun", "judge", "run_suite", "suite_not_run"]
