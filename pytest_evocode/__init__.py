"""Run multi-round coding benchmarks with pytest.

The names in ``__all__`` are public. They are imported on first use, because pytest imports this package
in every session, even in one that runs no task.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_evocode.agents import Agent, RoundContext, RoundTranscript, make_agent
    from pytest_evocode.environments import (
        Engine,
        Environment,
        ExecResult,
        Snapshot,
        choose_engine,
    )
    from pytest_evocode.errors import EvocodeError, TaskWarning
    from pytest_evocode.metrics.scores import Scores, scores
    from pytest_evocode.results.loading import Results, load_results
    from pytest_evocode.results.records import AttemptRecord, Case, RoundRecord, RunRecord, Verdict
    from pytest_evocode.tasks import Round, Task, load_task
    from pytest_evocode.tasks.task import RoundSelection
    from pytest_evocode.trial import Trial, TrialOptions

__all__ = [
    "Agent",
    "AttemptRecord",
    "Case",
    "Engine",
    "Environment",
    "EvocodeError",
    "ExecResult",
    "Results",
    "Round",
    "RoundContext",
    "RoundRecord",
    "RoundSelection",
    "RoundTranscript",
    "RunRecord",
    "Scores",
    "Snapshot",
    "Task",
    "TaskWarning",
    "Trial",
    "TrialOptions",
    "Verdict",
    "choose_engine",
    "load_results",
    "load_task",
    "make_agent",
    "scores",
]

_MODULES = {
    "pytest_evocode.agents": ("Agent", "RoundContext", "RoundTranscript", "make_agent"),
    "pytest_evocode.environments": ("Engine", "Environment", "ExecResult", "Snapshot", "choose_engine"),
    "pytest_evocode.errors": ("EvocodeError", "TaskWarning"),
    "pytest_evocode.metrics.scores": ("Scores", "scores"),
    "pytest_evocode.results.loading": ("Results", "load_results"),
    "pytest_evocode.results.records": ("AttemptRecord", "Case", "RoundRecord", "RunRecord", "Verdict"),
    "pytest_evocode.tasks": ("Round", "Task", "load_task"),
    "pytest_evocode.tasks.task": ("RoundSelection",),
    "pytest_evocode.trial": ("Trial", "TrialOptions"),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
