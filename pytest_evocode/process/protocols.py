"""What scoring asks of the outside: an executor that runs states of the workspace, and a judge that asks a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pytest_evocode.process.evidence import FrozenRecord, Measure, not_measured
from pytest_evocode.process.tests_written.code_elements import TestVerification, WrittenTests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.tasks import DeclaredRequirement

NOT_EXECUTED = "nothing was executed (--execute does it)"


def _nothing() -> Measure:
    return not_measured(NOT_EXECUTED)


@dataclass(frozen=True, slots=True)
class ExecutedMeasures:
    """What was measured by running a round's states."""

    build_health: Measure = field(default_factory=_nothing)
    """BH, the share of states that build."""
    stability: Measure = field(default_factory=_nothing)
    """TS, the share of transitions that break no test."""
    coverage_gain: Measure = field(default_factory=_nothing)
    """dC, the line coverage that the agent's tests add."""
    verification: TestVerification | None = None
    """Which of the agent's tests fail for mutants of what it changed; None where that was not found out."""
    unverified: str = NOT_EXECUTED
    """Why that was not found out; empty where no mutants can be made, and tests are taken as they read."""
    grounding: Measure | None = None
    """Contextual grounding; None where imports were not looked up in the environment."""
    reference_lines: int | None = None
    """Lines of the product that the reference solution changes in this round; None where that is unknown."""


class Executor(Protocol):
    """Runs the states of an attempt."""

    def run_round(self, activity: RoundActivity) -> ExecutedMeasures:
        """Rebuild the states of a round and measure them; to be called for the rounds in order.

        States that cannot be rebuilt are not measured; they raise nothing.
        """


@dataclass(frozen=True, slots=True)
class JudgeMaterial:
    """What a judge is shown of a round."""

    activity: RoundActivity
    requirements: Sequence[DeclaredRequirement]
    """The requirements of this round and of those before it."""
    tests: WrittenTests
    """The agent's tests."""


class Judge(Protocol):
    """Has a model judge sub-metrics beside the rules."""

    @property
    def name(self) -> str:
        """The name of the model."""

    def judge(self, name: str, material: JudgeMaterial, by_rule: Measure) -> Judgement | None:
        """Return the judgement of DQ, RT, AQ, SC or CBS; None where there is nothing to ask, or no valid answer."""


class Judgement(FrozenRecord):
    """What a judge says about one sub-metric, beside the value by the rule."""

    value: float
    """The median of the votes, from 0 to 1."""
    votes: tuple[float, ...]
    rule: float | None
    """The value by the rule; None where it has none."""
    agreement: float | None
    """1 minus the difference between value and rule; None where the rule has no value."""
    reason: str
    """The reason that the model gave for a vote of this value."""
    cost_usd: float | None
    """The cost of all votes; 0 if they were cached, None if the price is unknown."""
