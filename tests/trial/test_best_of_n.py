"""The example of the documentation that plays a task by forks."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "best_of_n.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.nightly
@pytest.mark.slow("18 turns in three episodes and their forks")
def test_the_best_of_four_forks_is_better_than_one_try(example: dict[str, Any]) -> None:
    rewards: Mapping[str, Sequence[float]] = asyncio.run(example["main"]())
    assert rewards["scripted"] == [1.0, 1.0, 1.0]
    assert len(rewards["model"]) == len(rewards["best of 4"]) == 3
    assert all(best >= one for best, one in zip(rewards["best of 4"], rewards["model"], strict=True))
    assert sum(rewards["best of 4"]) > sum(rewards["model"])


def test_rewards_are_plotted_by_round(example: dict[str, Any]) -> None:
    assert example["plot"]({"one": [0.0, 1.0], "two": [0.5, 0.25]}).splitlines() == [
        "round 1",
        f"  one        |{' ' * 40}| 0.00",
        f"  two        |{'#' * 20}{' ' * 20}| 0.50",
        "round 2",
        f"  one        |{'#' * 40}| 1.00",
        f"  two        |{'#' * 10}{' ' * 30}| 0.25",
    ]
