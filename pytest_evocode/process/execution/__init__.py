"""Rebuild the states that an agent's workspace went through, and run builds, tests and coverage in forks of them."""

from __future__ import annotations

from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.process.execution.execution import BUDGET, Execution

__all__ = ["BUDGET", "Engine", "Execution", "choose_engine"]
