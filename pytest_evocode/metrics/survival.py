"""How far agents get: the share that passes each round, and where attempts first fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_evocode.metrics.grid import Rounds, as_grid


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, both counted in (agent, task) or in (agent, task, round)."""

    passed: float
    """It is a fraction where it is a mean over attempts."""
    of: int

    @property
    def percent(self) -> float | None:
        """The share, 0 to 100; None where the whole is empty."""
        return 100 * self.passed / self.of if self.of else None


def survival(rounds: Rounds) -> dict[int, Share]:
    """Return, by round index i, the share of the (agent, task) with N_t >= i that passed round i.

    It is the mean over attempts. The records may be of several agents.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> def record(task, index, of):
    ...     return RoundRecord(task=task, agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=of,
    ...         outcome="passed")
    >>> survival([record("t", 1, of=2), record("u", 1, of=1)])
    {1: Share(passed=2.0, of=2), 2: Share(passed=0.0, of=1)}
    """
    shares: dict[int, list[float]] = defaultdict(list)
    for task in as_grid(rounds).tasks:
        for index in task.indices:
            shares[index].append(task.passes(index) / len(task.attempts))
    return {index: Share(sum(found), len(found)) for index, found in sorted(shares.items())}


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first round of an attempt that is not passed."""

    agent: str
    task: str
    attempt: int
    index: int
    declared: int

    @property
    def position(self) -> float:
        """``i / N_t``, above 0 and at most 1."""
        return self.index / self.declared


def first_failures(rounds: Rounds) -> list[FirstFailure]:
    """Return where each attempt failed first that did not pass all its rounds, by agent, task and attempt.

    The records may be of several agents.
    """
    return [
        FirstFailure(task.agent, task.task, number, failed, task.chain[-1])
        for task in as_grid(rounds).tasks
        for number, attempt in task.attempts.items()
        if (failed := _first(index for index in task.chain if index not in attempt or not attempt[index].passed))
    ]


def _first(indices: Iterable[int]) -> int | None:
    return next(iter(indices), None)
