"""What what-if forks say: whether a round failed for the state that it began in, or for the agent that played it.

Each round after a fork is looked at four ways: as the other agent went on from its own state, as it goes on from there
in a new conversation, as the agent of the fork goes on from there, and as that does in whole attempts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, differing_contents
from pytest_evocode.names import is_fork
from pytest_evocode.results.identity import AgentIdentity, identity_of
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import AttemptRecord, ForkSource


@dataclass(frozen=True, slots=True)
class Passes:
    """How many attempts passed a round, of those with a verdict on it."""

    passed: int = 0
    of: int = 0

    @classmethod
    def at(cls, records: Iterable[AttemptRecord], index: int) -> Passes:
        """Count the attempts at a round, by its place from 1."""
        outcomes = [each.outcome for record in records for each in record.rounds if each.index == index]
        return cls(outcomes.count("passed"), outcomes.count("passed") + outcomes.count("failed"))

    @property
    def every(self) -> bool:
        """Whether there are some, and all passed."""
        return 0 < self.of == self.passed

    @property
    def none(self) -> bool:
        """Whether there are some, and none passed."""
        return self.of > 0 and not self.passed

    @property
    def mixed(self) -> bool:
        """Whether some passed and some did not."""
        return 0 < self.passed < self.of


@dataclass(frozen=True, slots=True)
class ForkedRound:
    """What is known of a round that forks of one kind have played."""

    task: str
    point: str
    """The other agent, and the round after which the forks went on: ``A:round-3``."""
    agent: str
    """The agent of the forks, as its row calls it."""
    round: str
    index: int
    state: Passes
    """How many of the states passed the suite of the round after which they were left."""
    went_on: Passes
    """The attempts that the states are of."""
    fresh: Passes
    """Forks of the same states by the other agent itself, in new conversations."""
    forked: Passes
    own: Passes
    """Whole attempts of the agent."""
    reading: str
    """What the counts mean, where each is all or nothing; ``mixed`` where one is not."""


def forked_rounds(table: ScoreTable, attempts: Iterable[StoredAttempt]) -> list[ForkedRound]:
    """Return the rounds of all forks that count, by task, the state that they began in, agent and round.

    Args:
        table: The attempts that count.
        attempts: All attempts, among which the ones are that were forked from, whether they count or not.
    """
    every = {(each.run, each.record.task, each.record.agent, each.record.attempt): each.record for each in attempts}
    found = [each for row in table.rows if is_fork(row.from_round) for each in _rounds_of(row, table, every)]
    return sorted(found, key=lambda each: (each.task, each.point, each.agent, each.index))


_Key = tuple[str, str, str, int]
"""Run, task, agent and number of an attempt."""


def _rounds_of(row: ScoreRow, table: ScoreTable, every: Mapping[_Key, AttemptRecord]) -> Iterator[ForkedRound]:
    of_task: dict[str, list[AttemptRecord]] = {}
    for attempt in row.attempts:
        of_task.setdefault(attempt.record.task, []).append(attempt.record)
    for task, forks in of_task.items():
        begun = [each.forked_from for each in forks if each.forked_from is not None]
        keys = {(each.run, task, each.agent, each.attempt) for each in begun}
        others = [every[key] for key in sorted(keys) if key in every]
        agents = {_agent(each) for each in begun}
        is_own = agents == {row.subject.agent}
        fresh = [] if is_own else list(_of_rows(_fresh_rows(row, table, agents), task))
        own = list(_of_rows(_whole_rows(row, table), task))
        states = [each.outcomes.get(each.round) for each in begun]
        names = {(each.index, each.round) for record in forks for each in record.rounds}
        for index, name in sorted(names):
            went_on, renewed, forked, whole = (Passes.at(each, index) for each in (others, fresh, forks, own))
            yield ForkedRound(
                task,
                row.from_round or "",
                row.group,
                name,
                index,
                Passes(states.count("passed"), len(states)),
                went_on,
                renewed,
                forked,
                whole,
                reading(went_on, renewed, forked, whole, is_own=is_own),
            )


def _agent(source: ForkSource) -> AgentIdentity:
    return identity_of(source.made_by, source.agent)


def _of_rows(rows: Iterable[ScoreRow], task: str) -> Iterator[AttemptRecord]:
    return (each.record for row in rows for each in row.attempts if each.record.task == task)


def _fresh_rows(row: ScoreRow, table: ScoreTable, agents: set[AgentIdentity]) -> Iterator[ScoreRow]:
    for each in table.rows:
        is_alike = (each.mode, each.from_round) == (row.mode, row.from_round) and each.subject.agent in agents
        if is_alike and each.subject.conditions == row.subject.conditions and not differing_contents(each, row):
            yield each


def _whole_rows(row: ScoreRow, table: ScoreTable) -> Iterator[ScoreRow]:
    for each in table.rows:
        is_whole = each.from_round is None and each.mode == row.mode
        if is_whole and each.subject == row.subject and not differing_contents(each, row):
            yield each


def reading(went_on: Passes, fresh: Passes, forked: Passes, own: Passes, *, is_own: bool = False) -> str:
    """Return what the counts at one round mean.

    Args:
        went_on: The other agent's own attempts.
        fresh: Its forks of its own states.
        forked: The forks.
        own: The agent's whole attempts.
        is_own: Whether both agents are one.

    >>> bad, good = Passes(0, 2), Passes(2, 2)
    >>> reading(bad, Passes(), bad, good), reading(good, Passes(), bad, bad), reading(bad, Passes(), bad, Passes())
    ('inherited a bad state', 'cannot do the round', 'not told apart: no whole attempt')
    >>> reading(bad, Passes(), Passes(1, 2), good)
    'mixed'
    """
    if not forked.of:
        return "no verdict"
    if forked.mixed or went_on.mixed or (own.mixed and not is_own):
        return "mixed"
    if is_own:
        return _of_conversation(went_on, forked)
    if forked.every:
        if not went_on.none:
            return "goes on" if not went_on.of else "both go on"
        return "the state is good, the other's conversation is not" if fresh.every else "the state is good"
    if not own.of:
        return "not told apart: no whole attempt"
    if own.none:
        return "cannot do the round"
    return "cannot go on from this state, the other can" if went_on.every else "inherited a bad state"


def _of_conversation(went_on: Passes, forked: Passes) -> str:
    """Return what it means that an agent went on from its own state in a new conversation."""
    if not went_on.of:
        return "not told apart: nothing to compare"
    if forked.every:
        return "passes with and without its conversation" if went_on.every else "passes without its conversation"
    return "needs its conversation" if went_on.every else "passes neither with nor without its conversation"
