"""Harbor's own numbers: the reward of a trial, and its mean over trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from pytest_evocode.metrics.grid import Rounds, TaskRounds, as_grid
from pytest_evocode.results.records import RoundRecord

Strategy = Literal["mean", "final"]


def trial_rewards(records: Sequence[RoundRecord], declared_rounds: int, strategy: Strategy) -> dict[str, float]:
    """A trial's rewards by key, as Harbor's ``multi_step_reward_strategy`` makes them of the rounds' rewards.

    A round without a verdict counts 0, run or not: ``mean`` divides by the declared rounds, and ``final`` is that of
    the last declared one, with 0 under every key of the others where it has no verdict.
    """
    if strategy == "final":
        last = [record.verdict for record in records if record.index == declared_rounds and record.verdict]
        if last:
            return dict(last[0].rewards)
        return {key: 0.0 for record in records if record.verdict for key in record.verdict.rewards}
    totals: dict[str, float] = defaultdict(float)
    for record in records:
        for key, value in record.verdict.rewards.items() if record.verdict else ():
            totals[key] += value
    return {key: total / declared_rounds for key, total in totals.items()}


def mean_rewards(rounds: Rounds, strategies: Mapping[str, Strategy] | None = None) -> dict[str, float]:
    """The mean over tasks of their trials' rewards by key, 0 to 100 where rewards are 0 to 1.

    ``strategies`` has the ``multi_step_reward_strategy`` of tasks that have another than ``mean``. A key that a trial
    lacks counts 0 there, as in Harbor's ``mean`` over trials. Empty where no round has a verdict.

    >>> from pytest_evocode.results.records import Verdict
    >>> verdict = Verdict(reward=1, rewards={"tests": 1.0, "style": 0.5})
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=2, outcome="passed",
    ...     verdict=verdict)
    >>> mean_rewards([record]), mean_rewards([record], {"t": "final"})
    ({'style': 25.0, 'tests': 50.0}, {'style': 0.0, 'tests': 0.0})
    """
    tasks = []
    for task in as_grid(rounds).tasks:
        strategy = (strategies or {}).get(task.task, "mean")
        declared = task.chain[-1] if strategy == "final" else len(task.chain)
        trials = [trial_rewards(_in_chain(task, number), declared, strategy) for number in task.attempts]
        tasks.append(_mean_by_key(trials))
    return {key: 100 * value for key, value in sorted(_mean_by_key(tasks).items())}


def mean_reward(rounds: Rounds, strategies: Mapping[str, Strategy] | None = None) -> float:
    """As :func:`mean_rewards`, of the reward that decides each round, whatever its key."""
    return 100 * fmean(reward_share(task, strategies) for task in as_grid(rounds).tasks)


def reward_share(task: TaskRounds, strategies: Mapping[str, Strategy] | None = None) -> float:
    """The mean over attempts of one task's deciding reward, 0 to 1."""
    final = (strategies or {}).get(task.task) == "final"
    indices = task.chain[-1:] if final else task.chain
    rewards = [_reward(attempt.get(index)) for attempt in task.attempts.values() for index in indices]
    return sum(rewards) / len(rewards)


def _reward(record: RoundRecord | None) -> float:
    return record.verdict.reward if record is not None and record.verdict is not None else 0.0


def _in_chain(task: TaskRounds, number: int) -> list[RoundRecord]:
    return [record for index, record in task.attempts[number].items() if index in task.chain]


def _mean_by_key(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = {key: None for table in tables for key in table}
    return {key: fmean(table.get(key, 0.0) for table in tables) for key in keys}
