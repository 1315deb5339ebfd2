"""What attempts took, tokens, money, requests, tool calls and seconds, and are expected to take; unknown is never 0."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from pytest_evocode.metrics.grid import was_begun
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import NO_USAGE, RoundRecord, Usage

Level = Literal["agent", "task", "attempt", "round"]
_DEPTHS: dict[Level, int] = {"agent": 1, "task": 2, "attempt": 3, "round": 4}


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum over rounds, with the number of rounds where it is known; where it is known of none there is no amount.

    >>> Amount(30, known=2, of=3).complete, Amount(30, known=2, of=3).mean
    (False, 15.0)
    """

    value: float
    """The sum over the rounds where it is known, and so a lower bound where it is not known of all."""
    known: int
    of: int
    at_least: bool = field(default=False, repr=False)
    """Whether a round took more than is known of it, because an agent's program was killed, or a reply broke off."""

    @property
    def complete(self) -> bool:
        """Whether all of it is known of all rounds."""
        return self.known == self.of and not self.at_least

    @property
    def mean(self) -> float:
        """The mean over the rounds where it is known."""
        return self.value / self.known


@dataclass(frozen=True, slots=True)
class Spending:
    """What some rounds took together; None where it is known of no round."""

    rounds: int
    """How many rounds were begun."""
    prompt_tokens: Amount | None
    cached_tokens: Amount | None
    """The part of the prompt tokens that the provider had cached."""
    completion_tokens: Amount | None
    requests: Amount | None
    cost_usd: Amount | None
    tool_calls: Amount | None
    agent_seconds: Amount | None
    verifier_seconds: Amount | None


_OF_USAGE = ("prompt_tokens", "cached_tokens", "completion_tokens", "requests", "cost_usd")
_OF_ROUNDS = ("tool_calls", "agent_seconds", "verifier_seconds")


def spending(records: Iterable[RoundRecord]) -> Spending:
    """Return the sum over records, which may be of several agents and tasks.

    A round that was not reached took nothing, and a sum is not over it, unless something is known of it all the same:
    its turn may have ended before the session was stopped.

    >>> from pytest_evocode.results.records import Usage
    >>> def record(index, **values):
    ...     return RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=3,
    ...         **values)
    >>> found = spending([record(1, outcome="passed", usage=Usage(prompt_tokens=20)), record(2, outcome="error"),
    ...     record(3, outcome="not reached")])
    >>> found.prompt_tokens, found.cost_usd, found.rounds
    (Amount(value=20, known=1, of=2), None, 2)
    """
    begun = [(record, record.usage) for record in records if was_begun(record)]

    def usage(name: str) -> Amount | None:
        values = [None if used is None else getattr(used, name) for _, used in begun]
        of_others = [value for value, (_, used) in zip(values, begun, strict=True) if used != NO_USAGE]
        if of_others and all(value is None for value in of_others):
            return None  # That some rounds used nothing tells nothing of what the others used.
        found = _amount(values)
        return found and replace(
            found, at_least=any(used is not None and used.at_least is not None for _, used in begun)
        )

    return Spending(
        rounds=len(begun),
        **{name: usage(name) for name in _OF_USAGE},
        **{name: _amount([getattr(record, name) for record, _ in begun]) for name in _OF_ROUNDS},
    )


def _amount(values: Sequence[float | None]) -> Amount | None:
    known = [value for value in values if value is not None]
    return Amount(sum(known), len(known), len(values)) if known else None


def spending_by(records: Iterable[RoundRecord], level: Level) -> dict[tuple[str | int, ...], Spending]:
    """Return the spending of each agent, task, attempt or round, in order.

    A key is as much of ``(agent, task, attempt, index)`` as the level has.
    """
    depth = _DEPTHS[level]
    groups: dict[tuple[str | int, ...], list[RoundRecord]] = defaultdict(list)
    for record in records:
        groups[(record.agent, record.task, record.attempt, record.index)[:depth]].append(record)
    return {key: spending(groups[key]) for key in sorted(groups)}


Tokens = Literal["generated", "total"]
"""Which tokens are compared: those that the model generated, or its prompts' too."""


@dataclass(frozen=True, slots=True)
class TokenRatio:
    """Mean tokens of failing and of passing rounds at one index, where they are known."""

    failing: float | None
    passing: float | None
    failing_rounds: int
    """How many failing rounds have known tokens; ``passing_rounds`` likewise."""
    passing_rounds: int

    @property
    def ratio(self) -> float | None:
        """Failing over passing; None where one of them is unknown, or passing rounds took none."""
        return self.failing / self.passing if self.failing is not None and self.passing else None


def token_ratios(records: Iterable[RoundRecord], tokens: Tokens = "generated") -> dict[int, TokenRatio]:
    """Return, by round index, how many tokens failing and passing rounds took.

    Each round of each attempt counts, and the records may be of several agents. Rounds that broke down or were not
    reached count as neither.

    Args:
        records: The records of one mode.
        tokens: ``generated`` compares completion tokens, as EvoCode-Bench's paper does; ``total`` compares prompt and
            completion tokens together, and so what a round costs, most of which a long history of prompts makes.

    >>> from pytest_evocode.results.records import Usage
    >>> rows = [(1, "passed", 100), (2, "passed", 200), (3, "failed", 450)]
    >>> ratios = token_ratios(RoundRecord(task="t", agent="a", attempt=attempt, round="r1", index=1,
    ...     declared_rounds=1, outcome=outcome, usage=Usage(completion_tokens=tokens))
    ...     for attempt, outcome, tokens in rows)
    >>> ratios[1].failing, ratios[1].passing, ratios[1].ratio
    (450.0, 150.0, 3.0)
    """
    known: dict[int, dict[str, list[int]]] = defaultdict(lambda: {"failed": [], "passed": []})
    for record in records:
        usage = record.usage or Usage()
        spent = usage.completion_tokens if tokens == "generated" else usage.tokens
        if spent is not None and record.outcome in ("failed", "passed"):
            known[record.index][record.outcome].append(spent)
    return {
        index: TokenRatio(_mean(found["failed"]), _mean(found["passed"]), len(found["failed"]), len(found["passed"]))
        for index, found in sorted(known.items())
    }


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def overall_token_ratio(ratios: Mapping[int, TokenRatio]) -> float | None:
    """Return the tokens of failing rounds over those of as many passing rounds at the same indices.

    Late rounds fail more often and take more tokens in any case; so they do not make the ratio larger by themselves.
    None where no index has both.

    >>> overall_token_ratio({1: TokenRatio(20, 10, 1, 5), 2: TokenRatio(330, 300, 2, 1), 3: TokenRatio(9, None, 1, 0)})
    1.1147540983606556
    """
    both = [
        (found.failing * found.failing_rounds, found.passing * found.failing_rounds)
        for found in ratios.values()
        if found.failing is not None and found.passing is not None
    ]
    expected = sum(passing for _, passing in both)
    return sum(failing for failing, _ in both) / expected if expected else None


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
            for index in {*attempt.selected, *measured} if attempt.finished else measured:
                value = measured.get(index)
                reached = any(record.index == index and was_begun(record) for record in attempt.record.rounds)
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
        """Return whether any round of an agent at a task was measured; with an empty name, of any agent."""
        return any(key[1] == task and agent in ("", key[0]) for key in self._of_round)

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
