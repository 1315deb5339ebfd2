"""What is not for an agent's account: rounds that infrastructure errors kept from a verdict.

The scores count a round without a verdict as not passed, so that no agent gains by what breaks down. Where the
infrastructure is to blame, that understates the agent; what is left without these rounds says nothing of them, and as
an attempt that broke off lacks its last rounds, which are the hardest, it may overstate it. The two are for reading
side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_evocode.metrics.grid import Grid, TaskRounds
from pytest_evocode.metrics.scores import case_score, dataset_score, pinned_case_score, sr, sr_macro
from pytest_evocode.results.records import RoundRecord


@dataclass(frozen=True, slots=True)
class Faults:
    """What infrastructure errors kept from a verdict, and the scores over what is left; None where nothing is."""

    errors: int
    """How many rounds ended in an infrastructure error."""
    not_reached: int
    """How many rounds were not reached because of one."""
    attempts: int
    """How many attempts have no other round; in single-round mode these are all attempts of one number."""
    tasks: int
    """How many tasks have no other round in any attempt."""
    dataset_score: float | None = None
    case_score: float | None = None
    pinned_case_score: float | None = None
    sr: float | None = None
    sr_macro: float | None = None

    @property
    def rounds(self) -> int:
        """How many rounds are left out."""
        return self.errors + self.not_reached


def faults(chain: Grid, single_round: Grid) -> Faults | None:
    """Return what infrastructure errors did to an agent's scores; None where there is no such error.

    Args:
        chain: The rounds of chain or fail-stop mode.
        single_round: The rounds of single-round mode.

    >>> rows = [(1, "passed", None), (2, "error", "infrastructure"), (3, "not reached", None)]
    >>> found = faults(Grid.of(RoundRecord(task="t", agent="a", attempt=1, round=f"r{i}", index=i, declared_rounds=3,
    ...     outcome=outcome, fault=fault) for i, outcome, fault in rows), Grid(()))
    >>> found.dataset_score, found.errors, found.not_reached
    (100.0, 1, 1)
    """
    grids = (chain, single_round)
    errors = sum(map(_count_errors, grids))
    if not errors:
        return None
    left = (without_faults(chain), without_faults(single_round, chains=False))
    pairs = list(zip(grids, left, strict=True))
    rounds = sum(_cells(grid) - _cells(rest) for grid, rest in pairs)
    attempts = sum(_attempts(grid) - _attempts(rest) for grid, rest in pairs)
    tasks = sum(len(grid.tasks) - len(rest.tasks) for grid, rest in pairs)
    chain, single_round = left
    return Faults(
        errors,
        rounds - errors,
        attempts,
        tasks,
        dataset_score=dataset_score(chain),
        case_score=case_score(chain),
        pinned_case_score=pinned_case_score(chain),
        sr=sr(single_round),
        sr_macro=sr_macro(single_round),
    )


def is_fault(record: RoundRecord) -> bool:
    """Return whether a round has no verdict for a reason that the agent is not to blame for."""
    return record.outcome == "error" and record.fault != "agent"


def without_faults(grid: Grid, *, chains: bool = True) -> Grid:
    """Return the grid without the rounds that infrastructure errors kept from a verdict.

    These are the rounds that ended in one, and, with ``chains``, those that an attempt did not reach because the last
    round that it did reach ended in one. Attempts and tasks of which nothing is left are left out. An attempt that
    ended for another reason keeps the rounds that it did not reach: where its agent broke down, where it was stopped,
    and where nothing was recorded.
    """
    tasks = (_without_faults(task, chains) for task in grid.tasks)
    return Grid(tuple(task for task in tasks if task.attempts))


def _without_faults(task: TaskRounds, chains: bool) -> TaskRounds:
    left = {number: _left(task, number, chains) for number in task.attempts}
    return task if all(part == task.own(number) for number, part in left.items()) else task.keeping(left)


def _left(task: TaskRounds, number: int, chains: bool) -> tuple[int, ...]:
    """Return the rounds of an attempt that no infrastructure error kept from a verdict."""
    attempt, left, after_fault = task.attempts[number], [], False
    for index in task.own(number):
        record = attempt.get(index)
        if record is not None and record.outcome != "not reached":
            after_fault = is_fault(record)
        elif not chains:
            after_fault = False
        if not after_fault:
            left.append(index)
    return tuple(left)


def _count_errors(grid: Grid) -> int:
    return sum(
        is_fault(attempt[index])
        for task in grid.tasks
        for number, attempt in task.attempts.items()
        for index in set(task.own(number)) & set(task.indices) & set(attempt)
    )


def _cells(grid: Grid) -> int:
    return sum(task.cells for task in grid.tasks)


def _attempts(grid: Grid) -> int:
    return sum(len(task.attempts) for task in grid.tasks)
