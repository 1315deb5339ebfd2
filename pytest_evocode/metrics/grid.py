"""Round records in their places: by agent and task, by attempt, by index, with room for those that are not there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pytest_evocode.results.records import RoundRecord

Attempt = Mapping[int, RoundRecord]
"""The records of one attempt by index; a round without one was not run, or left nothing."""


@dataclass(frozen=True, slots=True)
class TaskRounds:
    """One agent's rounds of one task."""

    agent: str
    task: str
    chain: range
    """The indices of all rounds that an attempt goes through, the declared ones, in order."""
    indices: tuple[int, ...]
    """Those that count: the whole chain, or the part of it that a breakdown looks at."""
    attempts: Mapping[int, Attempt]
    """By the attempt's number; one that was to be made and left no record is empty."""

    def records(self) -> Iterator[RoundRecord]:
        """Those there are of the rounds that count."""
        for attempt in self.attempts.values():
            for index in self.indices:
                if index in attempt:
                    yield attempt[index]

    def passes(self, index: int) -> int:
        """How many attempts passed a round."""
        return sum(index in attempt and attempt[index].passed for attempt in self.attempts.values())

    def total(self, value: Callable[[RoundRecord], float]) -> float:
        """The sum of a value over the rounds that count of all attempts; 0 for a round without a record."""
        return sum(map(value, self.records()))

    @property
    def cells(self) -> int:
        """How many rounds of all attempts together count."""
        return len(self.indices) * len(self.attempts)


@dataclass(frozen=True, slots=True)
class Grid:
    """The rounds of all tasks, in the order of agents and tasks by name, so that no number depends on another order."""

    tasks: tuple[TaskRounds, ...]

    @classmethod
    def of(
        cls,
        records: Iterable[RoundRecord],
        *,
        selected: Mapping[str, int] | None = None,
        attempts: int | Mapping[str, int] = 1,
        begin: Mapping[str, int] | None = None,
    ) -> Grid:
        """Put records in their places; they come in any order.

        ``selected`` has the declared rounds of every task that was to be run, by its name: those that left no record
        are there, too, and so are the ``attempts`` that were to be made of each, or by task. ``begin`` has the index of
        the first round that counts, by task, where that is not 1. Of differing numbers of declared rounds the largest
        holds.

        Raises ValueError for two records of one round: attempts of several runs need numbers of their own.

        >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r2", index=2, declared_rounds=3,
        ...     outcome="passed")
        >>> [(rounds.task, rounds.indices, rounds.passes(2)) for rounds in Grid.of([record], selected={"u": 1}).tasks]
        [('t', (1, 2, 3), 1), ('u', (1,), 0)]
        """
        found: dict[tuple[str, str], dict[int, dict[int, RoundRecord]]] = defaultdict(lambda: defaultdict(dict))
        declared: dict[str, int] = dict(selected or {})
        for record in records:
            rounds = found[record.agent, record.task][record.attempt]
            if record.index in rounds:
                raise ValueError(
                    f"two records of {record.round} in attempt {record.attempt} of {record.agent} at {record.task}: "
                    "give the attempts of several runs numbers of their own, and tasks names of their own"
                )
            rounds[record.index] = record
            declared[record.task] = max(declared.get(record.task, 0), record.declared_rounds)
        for agent in {agent for agent, _ in found} or {""}:
            for task in selected or ():
                found[agent, task]
        chains = {task: range((begin or {}).get(task, 1), last + 1) for task, last in declared.items()}
        made = {task: attempts if isinstance(attempts, int) else attempts.get(task, 1) for task in declared}
        return cls(
            tuple(
                _task_rounds(agent, task, chains[task], found[agent, task], made[task])
                for agent, task in sorted(found)
                if chains[task]
            )
        )

    def only(self, counts: Callable[[str, int], bool]) -> Grid:
        """The part of the rounds that ``counts``, asked with a task and an index; tasks without one are left out."""
        parts = (
            (rounds, tuple(index for index in rounds.indices if counts(rounds.task, index))) for rounds in self.tasks
        )
        return Grid(tuple(narrowed(rounds, indices) for rounds, indices in parts if indices))

    def records(self) -> Iterator[RoundRecord]:
        """Those there are of the rounds that count."""
        for rounds in self.tasks:
            yield from rounds.records()


Rounds = Iterable[RoundRecord] | Grid
"""What metrics are computed from: records in any order, or a grid of them, which also knows what left no record."""


def as_grid(rounds: Rounds) -> Grid:
    """The grid that ``rounds`` is, or a new one of the records."""
    return rounds if isinstance(rounds, Grid) else Grid.of(rounds)


def narrowed(rounds: TaskRounds, indices: tuple[int, ...]) -> TaskRounds:
    """The same with other rounds counting."""
    return TaskRounds(rounds.agent, rounds.task, rounds.chain, indices, rounds.attempts)


def _task_rounds(agent: str, task: str, chain: range, made: Mapping[int, Attempt], attempts: int) -> TaskRounds:
    free = (number for number in range(1, attempts + 1) if number not in made)
    left_nothing = islice(free, max(0, attempts - len(made)))
    numbers = sorted([*made, *left_nothing])
    return TaskRounds(agent, task, chain, tuple(chain), {number: made.get(number, {}) for number in numbers})


def by_agent(records: Iterable[RoundRecord]) -> dict[str, list[RoundRecord]]:
    """The records by agent, in the order in which agents first appear."""
    agents: dict[str, list[RoundRecord]] = defaultdict(list)
    for record in records:
        agents[record.agent].append(record)
    return agents


def by_task(records: Iterable[RoundRecord]) -> dict[str, dict[int, list[RoundRecord]]]:
    """The records by task, then by attempt, in the order given."""
    tasks: dict[str, dict[int, list[RoundRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        tasks[record.task][record.attempt].append(record)
    return tasks
