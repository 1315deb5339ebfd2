"""The reward of a whole attempt, which Harbor calls a trial, from the rewards of its rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import RewardStrategy


def trial_rewards(
    records: Iterable[RoundRecord], counting: Sequence[int], strategy: RewardStrategy
) -> dict[str, float]:
    """Return an attempt's rewards by key, as Harbor's ``multi_step_reward_strategy`` makes them of its rounds'.

    A round without a verdict counts 0, run or not, where Harbor leaves it out (``mean``) or gives the trial no reward
    at all (``final``, which its mean over trials then takes for 0). Without any verdict there is no key to count 0 for.

    Args:
        records: The rounds that were recorded, in any order; those that do not count are left out.
        counting: The indices, from 1 and in order, of the declared rounds that count: all of them, but for a chain that
            began with a later round.
        strategy: ``mean`` divides the sums by the number of rounds that count; ``final`` takes the last of them, with 0
            under every key of the others where it has no verdict.
    """
    verdicts = {record.index: record.verdict for record in records if record.verdict and record.index in counting}
    if strategy == "final":
        if (last := verdicts.get(counting[-1])) is not None:
            return dict(last.rewards)
        return {key: 0.0 for verdict in verdicts.values() for key in verdict.rewards}
    totals: dict[str, float] = defaultdict(float)
    for verdict in verdicts.values():
        for key, value in verdict.rewards.items():
            totals[key] += value
    return {key: total / len(counting) for key, total in totals.items()}
