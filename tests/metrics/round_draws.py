"""Draws of the model of rounds as its sampler returns them, at once: around what the outcomes suggest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_evocode.metrics.round_model.outcomes import Outcomes

if TYPE_CHECKING:
    from pytest_evocode.metrics.round_model.outcomes import Floats


def suggested(
    seen: Sequence[Outcomes], draws: int, warmup: int, seed: int, *, thin: int = 1, target_accept: float = 0.8
) -> dict[str, Floats]:
    """Stand in for ``sampled``: draws without autocorrelation, with abilities in the order of what was passed."""
    import numpy as np

    random = np.random.default_rng(seed)
    agents, tasks, _, rounds = seen[0].counted.shape
    passed = (seen[0].passed & seen[0].counted).sum(axis=(1, 2, 3)) / seen[0].counted.sum(axis=(1, 2, 3))
    middle: dict[str, Floats | float] = {
        "intercept": 0.0, "depth": -0.1, "agent": 4 * (passed - passed.mean()), "task": np.linspace(-1, 1, tasks),
        "discrimination": 1.0, "interaction": 0.0, "round": 0.0, "sd_agent": 1.0, "sd_task": 0.8,
        "sd_discrimination": 0.2, "sd_interaction": 0.4, "sd_round": 0.4,
    }  # fmt: skip
    middle |= {"sd_attempt": 0.5} if seen[0].has_attempts else {}
    middle |= {"carried": -1.0} if seen[0].carries else {}
    shapes = {
        "agent": (agents,), "task": (tasks,), "discrimination": (tasks,), "interaction": (agents, tasks),
        "round": (tasks, rounds),
    }  # fmt: skip
    found = {
        name: value + 0.1 * random.standard_normal((len(seen), draws, *shapes.get(name, ())))
        for name, value in middle.items()
    }
    return {**found, "diverging": np.zeros((len(seen), draws), dtype=bool)}
