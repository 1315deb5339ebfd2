"""Parsing of the reward files that a suite writes, with errors that say what to write instead."""

from __future__ import annotations

import json
import math

from pytest_evocode.errors import VerifierFault

_HINT = "test.sh has to write a number from 0 to 1 to /logs/verifier/reward.txt, or a flat table of them to reward.json"


def parse_reward_text(text: str) -> dict[str, float]:
    """Return the reward that ``reward.txt`` holds, under the key ``reward``; raises VerifierFault."""
    if not text.strip():
        raise VerifierFault(f"reward.txt is empty; {_HINT}")
    try:
        value = float(text.strip())
    except ValueError:
        raise VerifierFault(f"reward.txt holds {_shortened(text)}, which is not a number; {_HINT}") from None
    return {"reward": _finite("reward.txt", "reward", value)}


def parse_reward_json(text: str) -> dict[str, float]:
    """Return all rewards that ``reward.json`` holds, by key; raises VerifierFault."""
    try:
        table = json.loads(text)
        json.dumps(
            table, ensure_ascii=False
        ).encode()  # Raises for half a surrogate pair, which could not be written to a record.
    except (ValueError, RecursionError) as error:
        raise VerifierFault(f"reward.json is not JSON ({error}); {_HINT}") from None
    if not isinstance(table, dict) or not table:
        raise VerifierFault(f"reward.json holds {_shortened(text)}, not a table with at least one reward; {_HINT}")
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise VerifierFault(f"reward.json has {_shortened(json.dumps(value))} for {key!r}, not a number; {_HINT}")
    return {key: _finite("reward.json", key, value) for key, value in table.items()}


def deciding_reward(rewards: dict[str, float], reward_key: str | None) -> float:
    """Return the one reward that decides: ``reward``, else the only one, else that of the task's ``reward_key``.

    Raises:
        VerifierFault: It is not clear which reward decides, or it lies outside 0 to 1.
    """
    if "reward" in rewards:
        key = "reward"
    elif len(rewards) == 1:
        (key,) = rewards
    elif reward_key is None:
        raise VerifierFault(
            f"reward.json has several rewards ({', '.join(sorted(rewards))}) and none named 'reward'; name the one "
            "that decides with reward_key below [metadata.evocode] in task.toml"
        )
    elif reward_key not in rewards:
        raise VerifierFault(
            f"reward.json has no {reward_key!r}, which task.toml gives as reward_key; "
            f"it has {', '.join(sorted(rewards))}"
        )
    else:
        key = reward_key
    value = rewards[key]
    if not 0 <= value <= 1:
        raise VerifierFault(f"the reward {key!r} is {value:g}, outside 0 to 1; {_HINT}")
    return value


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
