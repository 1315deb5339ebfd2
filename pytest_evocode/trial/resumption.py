"""What an earlier session left of an attempt, for this one to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.environments import Snapshot
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.states import Spent, TurnRecord


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where an attempt goes on: behind ``last_turn``, in the state ``start``; None is the image as built."""

    records: Mapping[int, RoundRecord] = field(default_factory=dict)
    """Records of the rounds that are done, by index."""
    turns: tuple[TurnRecord, ...] = ()
    """Turns that have ended and whose rounds have no verdict yet."""
    lost: Mapping[int, str] = field(default_factory=dict)
    """Rounds that were done, whose records cannot be had any more, and why, by index."""
    last_turn: int = 0
    first_played: int = 1
    """The first round that is run; those before it have no record."""
    start: Snapshot | None = None
    kept: Mapping[int, Snapshot] = field(default_factory=dict)
    """The states that are kept of ``turns`` which nobody took in this attempt; they stay beyond it."""
    agent: Any = None
    spent: Spent = field(default_factory=Spent)
