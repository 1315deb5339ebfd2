"""RigorBench's formulas, from sub-metrics to pillars and the RigorScore, and the record of an attempt's process.

All are over what was measured. The record is ``process.json``: versioned, round by round, with all evidence.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pytest_evocode.errors import UsageError
from pytest_evocode.process import rules
from pytest_evocode.process.evidence import Certainty, Evidence, FrozenRecord, Measure
from pytest_evocode.process.protocols import Judgement

_CONTENT = tomllib.loads(Path(rules.__file__).with_name("pillars.toml").read_text(encoding="utf-8"))
_TABLES: Mapping[str, dict[str, Any]] = _CONTENT["pillars"]
#: The pillars by short name, in order, with their full names.
PILLARS: Mapping[str, str] = {pillar: each["name"] for pillar, each in _TABLES.items()}
#: The weight of each pillar in the RigorScore, as published.
WEIGHTS: Mapping[str, float] = {pillar: each["weight"] for pillar, each in _TABLES.items()}
#: The weight of each sub-metric in its pillar, as published.
PARTS: Mapping[str, Mapping[str, float]] = {pillar: each["parts"] for pillar, each in _TABLES.items()}
#: The pillar that each category of tasks is mainly about.
OF_CATEGORY: Mapping[str, str] = {each["category"]: pillar for pillar, each in _TABLES.items() if "category" in each}
#: The extended metrics by short name, in order, with their full names.
EXTENDED: Mapping[str, str] = _CONTENT["extended"]


class Shares(NamedTuple):
    """How much of a pillar's weight was measured, and how much of that by what means, all from 0 to 1."""

    measured: float
    judged: float = 0.0
    """Said by a model."""
    executed: float = 0.0
    """Found out by running something."""
    claimed: float = 0.0
    """Read of results that the agent's program has told; all else was parsed."""


class Pillar(FrozenRecord):
    """One pillar with its sub-metrics."""

    value: float | None
    """0 to 1; None where none of its sub-metrics was measured."""
    parts: dict[str, Measure]
    """The sub-metrics, by their names in :data:`PARTS`."""

    def shares(self, name: str) -> Shares:
        """Return how much of the pillar's weight was measured, and how much of that was judged and executed."""
        if not self.parts:
            return Shares(1.0)
        of_whole = 1 / math.fsum(PARTS[name].values())
        known = {part: PARTS[name][part] for part, measure in self.parts.items() if measure.value is not None}

        def share(certainty: Certainty) -> float:
            weights = (weight for part, weight in known.items() if self.parts[part].certainty == certainty)
            return math.fsum(weights) * of_whole

        return Shares(math.fsum(known.values()) * of_whole, share("judged"), share("executed"), share("claimed"))


class RigorScore(FrozenRecord):
    """A weighted mean of pillars."""

    value: float
    """0 to 1."""
    coverage: float
    """The share of the sub-metrics' weight that was measured, 0 to 1."""
    judged: float = 0.0
    """The share of the weight that a model judged, 0 to 1; part of :attr:`coverage`."""
    executed: float = 0.0
    """The share of the weight that was executed, 0 to 1; part of :attr:`coverage`."""
    claimed: float = 0.0
    """The share of the weight that rests on results which the agent's program has told; part of :attr:`coverage`."""


def pillar(name: str, parts: Mapping[str, Measure]) -> Pillar:
    """Return a pillar: the weighted mean of those of its sub-metrics that have a value.

    >>> from pytest_evocode.process.evidence import measured, not_measured
    >>> parts = {"PAC": measured(1), "DQ": measured(2 / 3), "PEA": not_measured("one step only")}
    >>> round(pillar("pf", parts).value, 3)  # (0.30 * 1 + 0.35 * 2/3) / 0.65
    0.821
    """
    known = {part: measure.value for part, measure in parts.items() if measure.value is not None}
    return Pillar(value=_weighted(known, PARTS[name]), parts=dict(parts))


def rigor_score(
    pillars: Mapping[str, float | None],
    weights: Mapping[str, float] = WEIGHTS,
    shares: Mapping[str, Shares] | None = None,
) -> RigorScore | None:
    """Return the weighted mean of the pillars that have a value; None where none has.

    Args:
        pillars: Their values.
        weights: Their weights.
        shares: How much of each pillar was measured, judged and executed; all was parsed where they are left out.

    >>> rigor_score({"pf": 1.0, "re": 0.5, "aq": None})  # (0.15 * 1 + 0.20 * 0.5) / 0.35
    RigorScore(value=0.7142857142857143, coverage=0.35, judged=0.0, executed=0.0, claimed=0.0)
    >>> rigor_score({"pf": 1.0, "re": 0.5}, shares={"pf": Shares(0.3), "re": Shares(1.0, judged=0.5)}).coverage
    0.245
    """
    known = {name: value for name, value in pillars.items() if value is not None}
    value = _weighted(known, weights)
    if value is None:
        return None
    whole = math.fsum(weights.values())
    found = {name: (shares or {}).get(name, Shares(1.0)) for name in known}
    covered, judged, executed, claimed = (
        round(math.fsum(weights[name] * each[side] for name, each in found.items()) / whole, 12) for side in range(4)
    )
    return RigorScore(value=value, coverage=covered, judged=judged, executed=executed, claimed=claimed)


def mean_shares(rows: Iterable[Mapping[str, Shares]]) -> dict[str, Shares]:
    """Return the mean shares of each pillar over the rows in which it was measured; rows are rounds or more.

    >>> mean_shares([{"pf": Shares(1.0)}, {"pf": Shares(0.5, judged=0.5)}, {}])
    {'pf': Shares(measured=0.75, judged=0.25, executed=0.0, claimed=0.0)}
    """
    rows = list(rows)
    found = {name: [row[name] for row in rows if name in row] for name in PILLARS}
    return {name: Shares(*map(fmean, zip(*some, strict=True))) for name, some in found.items() if some}


def _weighted(values: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    total = math.fsum(weights[name] for name in values)
    return math.fsum(weights[name] * value for name, value in values.items()) / total if total else None


def mean_pillars(rows: Iterable[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each pillar over the rows that have a value; rows are rounds, attempts or tasks.

    >>> mean_pillars([{"pf": 1.0}, {"pf": 0.0}, {"pf": None}])["pf"]
    0.5
    """
    rows = list(rows)
    return {name: mean_known(row.get(name) for row in rows) for name in PILLARS}


def mean_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there is none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def read_weights(texts: Iterable[str]) -> dict[str, float]:
    """Return the published weights with changes such as ``pf=0.3``.

    Raises:
        UsageError: A change is not valid, or all weights are 0.

    >>> read_weights(["pf=0.3"])["pf"]
    0.3
    """
    weights = dict(WEIGHTS)
    for text in texts:
        name, _, number = text.partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if name not in weights or not 0 <= weight < math.inf:
            names = ", ".join(PILLARS)
            told = f"a weight is a pillar and a number from 0, such as pf=0.3; the pillars are {names}"
            raise UsageError(f"{text}: {told}")
        weights[name] = weight
    if not any(weights.values()):
        raise UsageError("all weights are 0; leave at least one pillar a weight")
    return weights


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
