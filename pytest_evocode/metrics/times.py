"""Where the wall time of rounds went, by what tasks or rounds have in common: medians over rounds, in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from pytest_evocode.metrics.breakdown import Dimension, group_grids
from pytest_evocode.metrics.grid import Rounds
from pytest_evocode.results.phases import PHASES
from pytest_evocode.results.records import RoundRecord, TaskFacts


@dataclass(frozen=True, slots=True)
class Duration:
    """What one phase took in the rounds where it is known; seconds."""

    median: float
    mean: float
    total: float
    known: int
    """In how many rounds it is known: where a phase did not happen, or the record does not say, it is not."""


@dataclass(frozen=True, slots=True)
class Times:
    """Where the time of some rounds went."""

    rounds: int
    """How many rounds were begun."""
    silent: int
    """How many of them took a time of which their records do not say where it went, because they are older."""
    durations: Mapping[str, Duration]
    """By name: ``agent``, ``verifier``, ``waiting`` and ``overhead``, and the other phases of records; without those
    that are known of no round.
    """


def times(records: Iterable[RoundRecord]) -> Times:
    """Return where the time of some rounds went; those that were not reached took none.

    ``agent`` is the agent's turn, ``verifier`` the suite with what was brought into its environment and read from it,
    ``waiting`` the suite's for a slot, and ``overhead`` what the round cost where the agent works beside its setup and
    the turn.

    >>> from pytest_evocode.results.phases import Phases
    >>> rounds = [RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=3,
    ...     outcome="passed", agent_seconds=seconds, phases=phases)
    ...     for index, seconds, phases in [(1, 4.0, Phases(snapshot=0.5)), (2, 2.0, None), (3, 9.0, None)]]
    >>> found = times(rounds)
    >>> found.rounds, found.silent, found.durations["agent"].median, found.durations["overhead"].known
    (3, 2, 4.0, 1)
    """
    begun = [each for each in records if each.outcome != "not reached" or each.agent_seconds is not None]
    phases = [each.phases for each in begun if each.phases is not None]
    found = {
        "agent": _duration(each.agent_seconds for each in begun),
        "verifier": _duration(each.verifier_seconds for each in begun),
        "waiting": _duration(each.waiting for each in phases),
        "overhead": _duration(each.overhead_seconds for each in phases),
    }
    for name in PHASES:
        found.setdefault(name, _duration(getattr(each, name) for each in phases))
    silent = sum(each.phases is None and (each.agent_seconds, each.verifier_seconds) != (None, None) for each in begun)
    return Times(len(begun), silent, {name: each for name, each in found.items() if each is not None})


def times_by(rounds: Rounds, by: Dimension, facts: Mapping[str, TaskFacts] | None = None) -> dict[str, Times]:
    """Return where the time went by group, as :func:`~pytest_evocode.metrics.breakdown.breakdown` has the groups."""
    return {
        name: times(record for task in grid.tasks for record in task.records())
        for name, grid in group_grids(rounds, by, facts).items()
    }


def _duration(values: Iterable[float | None]) -> Duration | None:
    known = [value for value in values if value is not None]
    return Duration(median(known), fmean(known), sum(known), len(known)) if known else None
