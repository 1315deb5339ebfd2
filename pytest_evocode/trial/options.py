"""What changes from session to session in how attempts are run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments import Installation
from pytest_evocode.llm.budget import Budget, RunSpending
from pytest_evocode.llm.waiting import LONGEST as LONGEST_WAITING
from pytest_evocode.results.records import Mode

if TYPE_CHECKING:
    from pytest_evocode.trial.attempt_storage import AttemptStorage


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """How attempts are run in one session; the defaults suit a trial that is driven from a script."""

    agent: Mapping[str, Any] = field(default_factory=dict)
    """What made the agent, for records; see :attr:`pytest_evocode.results.records.AttemptRecord.made_by`."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The host's variables, which the ``${VAR}`` of task.toml are taken from."""
    timeout_multiplier: float = 1.0
    """What the timeouts of agents and suites are multiplied by."""
    verifiers: int | None = None
    """How many suites may run at once on this machine; None is as many as it has cores."""
    verify_times: int = 1
    """How often a suite is run, of which the worst verdict counts; suites in place are run once."""
    strict: bool = False
    """Whether suites find nothing that the agent changed outside of its workspace and the task's declared ``state``."""
    resume: bool = False
    """Whether to go on with what the trial's directory, or the storage, has of the attempt."""
    storage: AttemptStorage | None = None
    """Where the attempt is saved beside the run, for another machine to go on with; it needs a directory."""
    hold_forks: bool = False
    """Whether the forks of failed rounds stay until :meth:`Trial.drop_fork`."""
    hold_all_forks: bool = False
    """Whether, with ``hold_forks``, those of rounds that have not failed stay as well."""
    budget: Budget = field(default_factory=Budget)
    """What each attempt, and the run as a whole, may use."""
    waiting_limit: float = LONGEST_WAITING
    """Seconds that each turn may wait for its model's provider, which count neither against its timeout nor its budget.
    """
    run_spending: RunSpending | None = None
    """What the run has cost so far, for ``budget.total_cost``."""
    keep_snapshots: bool = False
    """Whether the state that every round was left in is kept, to be verified again."""
    references: bool = False
    """Whether states that the oracle makes are kept, and used where earlier rounds are not asked for."""
    reuse: bool = False
    """Whether the oracle takes no turn in a round whose state is kept: only the suite is run."""
    withheld_from_solutions: Callable[[str], bool] = lambda name: False
    """Says which secrets solutions do not get, because another agent is to begin where they lead."""
    installation: Installation | None = None
    """What is installed in the image for another agent, which is to begin where this attempt ends."""
    hold_last: bool = False
    """Whether the state after the last round stays until the attempt is closed."""
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """With wildcards, what the only cases are called that are run of a native suite, by round: no verdict on these."""
    mode: Mode = "chain"
    """How the attempt goes through its rounds."""
    speculate: bool = False
    """Whether an agent's next turn begins ahead of a verdict that may end the chain; the oracle's always does."""
