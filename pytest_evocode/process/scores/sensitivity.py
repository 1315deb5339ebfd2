"""Test whether the agents' rank order depends on the weights: each weight is halved and increased by half."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_evocode.process.scores.rigor_score import WEIGHTS, rigor_score


@dataclass(frozen=True, slots=True)
class Variation:
    """One weight multiplied by ``factor``, and the agents from best to worst under it."""

    pillar: str
    factor: float
    order: tuple[str, ...]
    kept: bool
    """Whether that is the order under the unchanged weights."""


def sensitivity(
    agents: Mapping[str, Mapping[str, float | None]], weights: Mapping[str, float] = WEIGHTS
) -> list[Variation]:
    """Return the rank order of agents, given their pillars, with each weight at 50 % and at 150 %.

    Agents without a RigorScore are left out; equal scores are ranked by name, so that ties do not count as changes.
    """
    order = _order(agents, weights)
    variations = []
    for pillar in weights:
        for factor in (0.5, 1.5):
            changed = _order(agents, {**weights, pillar: weights[pillar] * factor})
            variations.append(Variation(pillar, factor, changed, changed == order))
    return variations


def _order(agents: Mapping[str, Mapping[str, float | None]], weights: Mapping[str, float]) -> tuple[str, ...]:
    scores = {agent: rigor_score(pillars, weights) for agent, pillars in agents.items()}
    known = {agent: round(score.value, 9) for agent, score in scores.items() if score is not None}
    return tuple(sorted(known, key=lambda agent: (-known[agent], agent)))
