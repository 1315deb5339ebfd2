"""The record of an attempt's process, ``process.json``: versioned, round by round, with all evidence."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_evocode.process.evidence import Evidence, FrozenRecord, Measure
from pytest_evocode.process.protocols import Judgement
from pytest_evocode.process.scores.rigor_score import (
    PILLARS,
    WEIGHTS,
    Pillar,
    RigorScore,
    Shares,
    mean_known,
    mean_pillars,
    mean_shares,
    rigor_score,
)

PROCESS_VERSION = 1


class RoundProcess(FrozenRecord):
    """How an agent worked on one round."""

    round: str
    index: int
    """The round's number, from 1."""
    edited: bool
    """Whether the product or a test that can fail was changed; without that a round has no score."""
    ran: bool = True
    """Whether anything was built, tested or started after the first edit."""
    pillars: dict[str, Pillar]
    """By their short names; see :data:`~pytest_evocode.process.scores.rigor_score.PILLARS`."""
    extended: dict[str, Measure] = {}
    false_abstention: Evidence | None = None
    """The message in which the agent gave up on a request that can be met."""
    outcome: float | None = None
    """The share of the round's cases that passed; 1 or 0 if there are no cases, None without a verdict."""
    judge: str = ""
    """The model that was asked beside the rules; empty if none was."""
    judgements: dict[str, Judgement] = {}
    """What the judge said, by sub-metric."""

    @property
    def values(self) -> dict[str, float | None]:
        """The pillars' values."""
        return {name: self.pillars[name].value if name in self.pillars else None for name in PILLARS}

    def score(self, weights: Mapping[str, float] = WEIGHTS) -> RigorScore | None:
        """Return the RigorScore; None for a round without an edit."""
        return rigor_score(self.values, weights, self.shares) if self.edited else None

    @property
    def shares(self) -> dict[str, Shares]:
        """How much of each pillar that has a value was measured, judged by a model, and executed."""
        return {name: each.shares(name) for name, each in self.pillars.items() if each.value is not None}


class AttemptProcess(FrozenRecord):
    """How an agent worked on a task."""

    version: int = PROCESS_VERSION
    task: str
    agent: str
    attempt: int
    category: str | None = None
    rounds: tuple[RoundProcess, ...]
    notes: tuple[str, ...] = ()
    """What could not be measured, or not in full, and why."""

    @property
    def edited(self) -> bool:
        """Whether any round has a score."""
        return any(round_.edited for round_ in self.rounds)

    @property
    def values(self) -> dict[str, float | None]:
        """The mean of each pillar over the rounds in which it was measured."""
        return mean_pillars(round_.values for round_ in self.rounds)

    def score(self, weights: Mapping[str, float] = WEIGHTS) -> RigorScore | None:
        """Return the RigorScore of :attr:`values`; None for an attempt without an edit."""
        return rigor_score(self.values, weights, self.shares) if self.edited else None

    @property
    def shares(self) -> dict[str, Shares]:
        """The mean shares of each pillar over the rounds in which it was measured."""
        return mean_shares(round_.shares for round_ in self.rounds)

    @property
    def outcome(self) -> float | None:
        """The mean outcome of the rounds that have one."""
        return mean_known(round_.outcome for round_ in self.rounds)
