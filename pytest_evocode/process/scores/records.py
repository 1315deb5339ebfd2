"""What is kept of an attempt's process: a versioned record, round by round, with all evidence."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from pytest_evocode.process.evidence import Evidence, Measure
from pytest_evocode.process.protocols import Judgement
from pytest_evocode.process.scores.rigor_score import PILLARS, WEIGHTS, Pillar, RigorScore, mean_pillars, rigor_score

PROCESS_VERSION = 1


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class RoundProcess(_Record):
    """How an agent went about one round."""

    round: str
    index: int
    """From 1."""
    edited: bool
    """Whether the product was changed, or a test that can fail; without that a round has no score."""
    pillars: dict[str, Pillar]
    """By their short names; see :data:`~pytest_evocode.process.scores.rigor_score.PILLARS`."""
    extended: dict[str, Measure] = {}
    false_abstention: Evidence | None = None
    """The words with which the agent gave up on a request that can be met."""
    outcome: float | None = None
    """Of the round's cases, the share that passed; 1 or 0 where there are no cases, None without a verdict."""
    judge: str = ""
    """The model that was asked beside the rules; empty where none was."""
    judgements: dict[str, Judgement] = {}
    """By sub-metric."""

    @property
    def values(self) -> dict[str, float | None]:
        """The pillars' values."""
        return {name: self.pillars[name].value if name in self.pillars else None for name in PILLARS}

    def score(self, weights: Mapping[str, float] = WEIGHTS) -> RigorScore | None:
        """The RigorScore; None for a round without an edit."""
        return rigor_score(self.values, weights) if self.edited else None


class AttemptProcess(_Record):
    """How an agent went about a task: ``process.json``."""

    version: int = PROCESS_VERSION
    task: str
    agent: str
    attempt: int
    category: str | None = None
    rounds: tuple[RoundProcess, ...]
    notes: tuple[str, ...] = ()
    """What kept things from being measured, or measured in full."""

    @property
    def edited(self) -> bool:
        """Whether there is a score at all."""
        return any(round_.edited for round_ in self.rounds)

    @property
    def values(self) -> dict[str, float | None]:
        """Pillar by pillar the mean over the rounds in which it was measured."""
        return mean_pillars(round_.values for round_ in self.rounds)

    def score(self, weights: Mapping[str, float] = WEIGHTS) -> RigorScore | None:
        """The RigorScore of these values; None for an attempt without an edit."""
        return rigor_score(self.values, weights) if self.edited else None

    @property
    def outcome(self) -> float | None:
        """The mean outcome of the rounds that have one."""
        known = [round_.outcome for round_ in self.rounds if round_.outcome is not None]
        return sum(known) / len(known) if known else None
