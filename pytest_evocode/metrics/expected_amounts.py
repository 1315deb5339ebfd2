"""What attempts are expected to take, from what earlier ones took: seconds or money, round by round."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import RoundRecord

_DIGITS = 16
"""Hexadecimal digits of a digest that is shown: enough to tell the results of two machines apart."""


def seconds_of(record: RoundRecord) -> float | None:
    """Return the seconds that a round took, its agent's turn and its suite; None where neither is known."""
    known = [each for each in (record.agent_seconds, record.verifier_seconds) if each is not None]
    return math.fsum(known) if known else None


def cost_of(record: RoundRecord) -> float | None:
    """Return what a round cost in US dollars; None where that is unknown."""
    return None if record.usage is None else record.usage.cost_usd


class ExpectedAmounts:
    """The mean amount of each round by agent and task; the same from the same results, wherever they lie."""

    def __init__(self, attempts: Iterable[StoredAttempt], amount: Callable[[RoundRecord], float | None]) -> None:
        """Take the means over some attempts.

        A round that a finished attempt did not reach took nothing. What nobody measured does not count.

        Args:
            attempts: The earlier attempts.
            amount: Returns what a round took, in any unit, or None where that is unknown.
        """
        values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        for attempt in attempts:
            measured = {record.index: amount(record) for record in attempt.record.rounds}
            if all(value is None for value in measured.values()):
                continue
            for index in attempt.selected if attempt.finished else measured:
                value = measured.get(index)
                reached = any(record.index == index and _reached(record) for record in attempt.record.rounds)
                if value is not None or (attempt.finished and not reached):
                    values[attempt.record.agent, attempt.record.task, index].append(value or 0.0)
        self._of_round = {key: fmean(sorted(each)) for key, each in sorted(values.items())}

    def __bool__(self) -> bool:
        return bool(self._of_round)

    @property
    def digest(self) -> str:
        """A short hash of all means: two machines with the same one expect the same."""
        text = json.dumps([[*key, value] for key, value in self._of_round.items()])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]

    def of_attempt(self, agent: str, task: str, rounds: Sequence[int]) -> float:
        """Return what the rounds of an attempt are expected to take together.

        A round that the agent never had at the task takes the mean of its other rounds; without any it is that of all
        rounds at the task, and where the task is unknown too, of all there are.

        Args:
            agent: The agent's id.
            task: The task's name.
            rounds: The indices of the rounds, from 1.

        Returns:
            The sum, 0 where nothing is known at all.
        """
        return math.fsum(self._of_one(agent, task, index) for index in rounds)

    def knows(self, agent: str, task: str) -> bool:
        """Return whether any round of an agent at a task was measured."""
        return any(key[:2] == (agent, task) for key in self._of_round)

    def _of_one(self, agent: str, task: str, index: int) -> float:
        if (value := self._of_round.get((agent, task, index))) is not None:
            return value
        for fits in (
            lambda key: key[0] == agent,
            lambda key: key[1] == task,
            lambda key: True,
        ):
            if alike := [value for key, value in self._of_round.items() if fits(key)]:
                return fmean(alike)
        return 0.0


def _reached(record: RoundRecord) -> bool:
    return record.outcome != "not reached" or record.agent_seconds is not None
