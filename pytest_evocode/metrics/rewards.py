"""Harbor's own scores: the mean over trials of their rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pytest_evocode.metrics.grid import Rounds, TaskRounds, as_grid
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.trial_rewards import trial_rewards
from pytest_evocode.tasks import RewardStrategy


def mean_rewards(rounds: Rounds, strategies: Mapping[str, RewardStrategy] | None = None) -> dict[str, float]:
    """Return the mean over tasks of their trials' rewards, by key; 0 to 100 where rewards are 0 to 1.

    A key that a trial lacks counts 0 there, as in Harbor's ``mean`` over trials. Empty where no round has a verdict.

    Args:
        rounds: The rounds of one agent.
        strategies: The ``multi_step_reward_strategy`` of tasks, by name; ``mean`` where a task is not in it.

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
        trials = [trial_rewards(attempt.values(), task.chain, strategy) for attempt in task.attempts.values()]
        tasks.append(_mean_by_key(trials))
    return {key: 100 * value for key, value in sorted(_mean_by_key(tasks).items())}


def mean_reward(rounds: Rounds, strategies: Mapping[str, RewardStrategy] | None = None) -> float:
    """Return the mean over tasks of the reward that decides each round, whatever its key; 0 to 100."""
    return 100 * fmean(reward_share(task, strategies) for task in as_grid(rounds).tasks)


def reward_share(task: TaskRounds, strategies: Mapping[str, RewardStrategy] | None = None) -> float:
    """Return the mean over attempts of the deciding reward at one task, 0 to 1."""
    final = (strategies or {}).get(task.task) == "final"
    indices = task.chain[-1:] if final else task.chain
    rewards = [_reward(attempt.get(index)) for attempt in task.attempts.values() for index in indices]
    return sum(rewards) / len(rewards)


def _reward(record: RoundRecord | None) -> float:
    return record.verdict.reward if record is not None and record.verdict is not None else 0.0


def _mean_by_key(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = {key: None for table in tables for key in table}
    return {key: fmean(table.get(key, 0.0) for table in tables) for key in keys}
