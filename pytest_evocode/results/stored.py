"""Records together with the place where they were found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pytest_evocode.results.records import AttemptRecord, RunRecord

Layout = Literal["evocode", "harbor", "multiround"]


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """The record of an attempt, and where it was found."""

    record: AttemptRecord
    path: Path
    """The attempt's directory."""
    run: str
    """The name of the session, or of Harbor's job."""
    finished: bool
    layout: Layout
    selected: tuple[int, ...]
    """The indices of the rounds that were selected; one of them without a record was not reached."""
    waiting: bool = False
    """Whether the rounds that were not selected wait for a later session."""

    @property
    def partial(self) -> bool:
        """Whether rounds were left out that an attempt in its mode goes through."""
        return len(self.selected) < len(whole_chain(self.record))

    def as_whole(self) -> StoredAttempt:
        """Return the attempt as an unfinished one of which all rounds were selected."""
        return replace(self, selected=whole_chain(self.record), finished=False)

    @property
    def round_names(self) -> list[str]:
        """The names of the rounds that were selected, in order, as far as they are known."""
        names = self.record.declared_rounds
        return [names[index - 1] or f"round {index}" for index in self.selected]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The record of a pytest session, and where it was found."""

    record: RunRecord
    path: Path


@dataclass(slots=True)
class Results:
    """Everything that was loaded from some directories."""

    attempts: list[StoredAttempt] = field(default_factory=list)
    runs: list[StoredRun] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line for each file that could not be read or counted and was left out, with the reason and what to do."""

    @property
    def are_empty(self) -> bool:
        """Whether no attempt was made, or was to be made by a run."""
        selected = (agents.values() for run in self.runs for agents in run.record.selected.values())
        return not self.attempts and not any(numbers for agents in selected for numbers in agents)

    @property
    def run_names(self) -> list[str]:
        """The names of all runs, those included that left nothing."""
        return sorted({*(each.run for each in self.attempts), *(each.record.run for each in self.runs)})


def whole_chain(record: AttemptRecord) -> tuple[int, ...]:
    """Return the indices of the rounds that an attempt in its mode goes through, if nothing is left out."""
    names = record.declared_rounds
    begin = 1
    if record.from_round is not None and record.mode != "single-round":
        begin = names.index(record.from_round) + 1 if record.from_round in names else min(recorded(record), default=1)
    return tuple(range(begin, len(names) + 1))


def recorded(record: AttemptRecord) -> tuple[int, ...]:
    """Return the indices of the rounds that have a record."""
    return tuple(sorted(round_.index for round_ in record.rounds if round_.index <= len(record.declared_rounds)))
