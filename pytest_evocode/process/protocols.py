"""What only running something can tell, as the rest of the process asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from pytest_evocode.process.evidence import Measure, not_measured
from pytest_evocode.process.tests_written import WrittenTests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.tasks import DeclaredRequirement

NOT_EXECUTED = "nothing was executed (--execute does it)"


def _nothing() -> Measure:
    return not_measured(NOT_EXECUTED)


@dataclass(frozen=True, slots=True)
class ExecutedMeasures:
    """What running a round's states has shown."""

    build_health: Measure = field(default_factory=_nothing)
    """BH."""
    stability: Measure = field(default_factory=_nothing)
    """TS."""
    coverage_gain: Measure = field(default_factory=_nothing)
    """dC."""
    grounding: Measure | None = None
    """Contextual Grounding, where imports were looked up in the environment."""
    reference_lines: int | None = None
    """Lines of the product that the reference solution changes in this round."""


class Executor(Protocol):
    """Runs the states of an attempt; told of its rounds in order."""

    def run_round(self, activity: RoundActivity) -> ExecutedMeasures:
        """Rebuild what the round went through, and measure it; never raises for what the agent left."""


@dataclass(frozen=True, slots=True)
class JudgeMaterial:
    """What a judge may look at."""

    activity: RoundActivity
    requirements: Sequence[DeclaredRequirement]
    """Those of this round and the rounds before."""
    tests: WrittenTests
    """The agent's."""


class Judge(Protocol):
    """Says of sub-metrics that have a rule what a model thinks of them."""

    @property
    def name(self) -> str:
        """The model's."""

    def judge(self, name: str, material: JudgeMaterial, by_rule: Measure) -> Judgement | None:
        """What the model says of DQ, RT, SC or CBS; None where there is nothing to ask, or no answer that is one."""


class Judgement(BaseModel):
    """What a judge says of one sub-metric, beside what the rule says."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    value: float
    """0 to 1: the median of the votes."""
    votes: tuple[float, ...]
    rule: float | None
    """None where the rule does not say."""
    agreement: float | None
    """1 less the difference of the two; None where the rule does not say."""
    reason: str
    """The model's, of a vote with this value."""
    cost_usd: float | None
    """Of all votes; 0 where they were known from before, None where the price is not known."""
