"""The task format: reads a task directory, checks it completely and fills in what it leaves out."""

from __future__ import annotations

from pytest_evocode.tasks.allowlist import Allowlist
from pytest_evocode.tasks.layout import SuiteEnvironment
from pytest_evocode.tasks.loading import find_tasks, load_task
from pytest_evocode.tasks.model import (
    Abstention,
    Artifact,
    Category,
    CollectHook,
    DeclaredRequirement,
    Healthcheck,
    ProcessConfig,
    Verify,
    VerifyIn,
    matches_glob,
)
from pytest_evocode.tasks.native import NativeTest, Requirement
from pytest_evocode.tasks.task import Network, RewardStrategy, Round, Task, resolve_env, resolve_solution_env

__all__ = [
    "Abstention",
    "Allowlist",
    "Artifact",
    "Category",
    "CollectHook",
    "DeclaredRequirement",
    "Healthcheck",
    "NativeTest",
    "Network",
    "ProcessConfig",
    "Requirement",
    "RewardStrategy",
    "Round",
    "SuiteEnvironment",
    "Task",
    "Verify",
    "VerifyIn",
    "find_tasks",
    "load_task",
    "matches_glob",
    "resolve_env",
    "resolve_solution_env",
]
