"""Rewards: parsing of the files that suites write, and the reward of a whole attempt from those of its rounds."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pytest_evocode.errors import VerifierFault
from pytest_evocode.results.records import DecidingRule, RoundRecord, Verdict
from pytest_evocode.tasks import RewardStrategy
from pytest_evocode.tasks.atomic_write import write_atomically

MOST_REWARDS = 100
"""Rewards that one suite may write."""
_LONGEST_KEY = 200  # characters
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
"""Matches what C's ``strtod`` reads in decimal; Python's ``float`` takes ``0_1`` as well, and digits of all scripts."""
_HINT = "test.sh has to write a number from 0 to 1 to /logs/verifier/reward.txt, or a flat table of them to reward.json"


def parse_reward_text(text: str) -> dict[str, float]:
    """Return the reward that ``reward.txt`` holds, under the key ``reward``; raises VerifierFault."""
    number = text.strip(" \t\r\n")
    if not number:
        raise VerifierFault(f"reward.txt is empty; {_HINT}")
    if not _NUMBER.fullmatch(number):
        raise VerifierFault(f"reward.txt holds {_shortened(text)}, which is not a number; {_HINT}")
    return {"reward": _finite("reward.txt", "reward", float(number))}


def parse_reward_json(text: str) -> dict[str, float]:
    """Return all rewards that ``reward.json`` holds, by key; raises VerifierFault."""
    try:
        table = json.loads(text)
        # Raises for half a surrogate pair, which could not be written to a record.
        json.dumps(table, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise VerifierFault(f"reward.json is not JSON ({error}); {_HINT}") from None
    if not isinstance(table, dict) or not table:
        raise VerifierFault(f"reward.json holds {_shortened(text)}, not a table with at least one reward; {_HINT}")
    if len(table) > MOST_REWARDS or any(len(key) > _LONGEST_KEY for key in table):
        raise VerifierFault(
            f"reward.json has more than {MOST_REWARDS} rewards, or one whose name has more than {_LONGEST_KEY} "
            f"characters; {_HINT}"
        )
    for key, value in table.items():
        if not isinstance(value, int | float):  # True and False are 1 and 0, as Harbor counts them.
            raise VerifierFault(f"reward.json has {_shortened(json.dumps(value))} for {key!r}, not a number; {_HINT}")
    return {key: _finite("reward.json", key, value) for key, value in table.items()}


def decide(rewards: dict[str, float], reward_key: str | None, minimum: Collection[str] = ()) -> Verdict:
    """Return the verdict that the rewards of a suite come to, of which one decides.

    It is ``reward``, else the only one, else the one that is named, else the smallest of those that ``min_reward``
    names, because these are what the task's author asks for, else the smallest of all.

    Args:
        rewards: All that the suite wrote, by key.
        reward_key: The key that the task or the session names.
        minimum: The keys of the round's ``min_reward``.

    Raises:
        VerifierFault: The suite did not write the reward that is named.
    """
    if "reward" in rewards or len(rewards) == 1:
        return Verdict(reward=rewards.get("reward", next(iter(rewards.values()))), rewards=rewards)
    if reward_key is not None and reward_key not in rewards:
        raise VerifierFault(
            f"reward.json has no {reward_key!r}, which is the reward_key of the task or the session; "
            f"it has {', '.join(sorted(rewards))}"
        )
    asked = rewards.keys() & set(minimum)
    key = reward_key or min(sorted(asked or rewards), key=rewards.__getitem__)
    rule: DecidingRule = "named" if reward_key is not None else "min_reward" if asked else "smallest"
    return Verdict(reward=rewards[key], rewards=rewards, deciding_key=key, deciding_rule=rule)


def write_reward(directory: Path, verdict: Verdict, *, passed: bool) -> None:
    """Write a round's reward for Harbor's tools: a number, or all rewards where, in an old one, none decides.

    Where a session with ``--evocode-strict`` fails a round that its suite passed, the number is 0. Raises OSError.
    """
    reward = 0.0 if verdict.passed and not passed else verdict.reward
    if reward is None:
        name, other, text = "reward.json", "reward.txt", json.dumps(verdict.rewards)
    else:
        name, other, text = "reward.txt", "reward.json", repr(reward)
    (directory / other).unlink(missing_ok=True)  # Of an earlier verdict, by another reward_key.
    write_atomically(directory / name, f"{text}\n")


def contradiction(verdict: Verdict) -> str:
    """Return how the cases of a verdict contradict its reward; an empty text where they do not."""
    cases = verdict.cases
    failing = sum(case.failing for case in cases)
    if verdict.reward is None:
        return ""
    if verdict.passed and failing:
        return f"the reward is {verdict.reward:g}, but {failing} of {len(cases)} cases failed"
    if not verdict.passed and cases and not failing:
        return f"the reward is {verdict.reward:g}, but none of {len(cases)} cases failed"
    return ""


def _finite(file: str, key: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise VerifierFault(f"{file} has {number} for {key!r}, which is not a finite number; {_HINT}")
    return number


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


#: The files in which a suite may leave rewards, with their parsers; the first that exists counts.
REWARD_FILES = {"reward.json": parse_reward_json, "reward.txt": parse_reward_text}


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


def reward_of(record: RoundRecord) -> float | None:
    """Return the reward of a round for training: None where it has none by no fault of the agent's.

    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r", index=1, declared_rounds=1, outcome="error",
    ...     fault="infrastructure")
    >>> reward_of(record), reward_of(record.model_copy(update={"fault": "agent"}))
    (None, 0.0)
    """
    is_faulty = record.outcome == "error" and record.fault != "agent"
    if is_faulty or record.waiting or record.unscored is not None:
        return None
    return (record.verdict.reward if record.verdict is not None else None) or 0.0
