"""An attempt's rewards by key, as Harbor's ``multi_step_reward_strategy`` makes them of its rounds'."""

from __future__ import annotations

import pytest

from pytest_evocode.results.records import Outcome, RoundRecord, Verdict
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.tasks import RewardStrategy


def record(index: int, outcome: Outcome, **rewards: float) -> RoundRecord:
    verdict = Verdict(reward=rewards.get("reward", 0.0), rewards=rewards) if rewards else None
    return RoundRecord(
        task="t",
        agent="a",
        attempt=1,
        round=f"round-{index}",
        index=index,
        declared_rounds=4,
        outcome=outcome,
        verdict=verdict,
    )


def test_the_mean_of_a_reward_is_over_the_declared_rounds() -> None:
    records = [
        record(1, "passed", reward=1.0, style=0.5),
        record(2, "failed", reward=0.5, style=0.5),
        record(3, "error"),
    ]
    assert trial_rewards(records, range(1, 5), "mean") == {"reward": 0.375, "style": 0.25}


def test_a_key_that_a_round_lacks_counts_zero_there() -> None:
    records = [record(1, "passed", reward=1.0), record(2, "passed", tests=1.0)]
    assert trial_rewards(records, range(1, 3), "mean") == {"reward": 0.5, "tests": 0.5}


def test_the_final_reward_is_that_of_the_last_declared_round() -> None:
    records = [record(2, "failed", reward=0.25, style=1.0), record(1, "passed", reward=1.0, speed=1.0)]
    assert trial_rewards(records, range(1, 3), "final") == {"reward": 0.25, "style": 1.0}


@pytest.mark.parametrize("outcome", ["error", "not reached", None])
def test_a_final_round_without_a_verdict_counts_zero_under_every_key(outcome: Outcome | None) -> None:
    records = [record(1, "passed", reward=1.0, style=0.5)]
    records += [record(2, outcome)] if outcome else []
    assert trial_rewards(records, range(1, 3), "final") == {"reward": 0.0, "style": 0.0}


@pytest.mark.parametrize("strategy", ["mean", "final"])
def test_a_trial_without_any_verdict_has_no_rewards(strategy: RewardStrategy) -> None:
    assert trial_rewards([record(1, "error")], range(1, 3), strategy) == {}


def test_a_chain_that_began_later_counts_the_rounds_from_there() -> None:
    records = [record(1, "passed", reward=1.0), record(3, "passed", reward=1.0), record(4, "failed", reward=0.5)]
    assert trial_rewards(records, range(3, 5), "mean") == {"reward": 0.75}
    assert trial_rewards(records, range(3, 5), "final") == {"reward": 0.5}
