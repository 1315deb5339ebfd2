"""The grid that metrics are computed from: records by agent, task, attempt and round; some may be missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pytest_evocode.results.records import RoundRecord

Attempt = Mapping[int, RoundRecord]
"""The records of one attempt by round index; a round without a record was not run, or left nothing."""


@dataclass(frozen=True, slots=True)
class TaskRounds:
    """All attempts of one agent at one task."""

    agent: str
    task: str
    chain: range
    """The indices of the rounds that an attempt goes through, from the first that it begins with to the last declared
    one.
    """
    indices: tuple[int, ...]
    """The indices of the rounds that count: the whole chain, or the part of it that a breakdown looks at."""
    attempts: Mapping[int, Attempt]
    """The attempts by number; one that was to be made and left no record is empty."""

    def records(self) -> Iterator[RoundRecord]:
        """Yield the records that there are of the rounds that count."""
        for attempt in self.attempts.values():
            for index in self.indices:
                if index in attempt:
                    yield attempt[index]

    def passes(self, index: int) -> int:
        """Return how many attempts passed a round."""
        return sum(index in attempt and attempt[index].passed for attempt in self.attempts.values())

    def total(self, value: Callable[[RoundRecord], float]) -> float:
        """Return the sum of a value over the rounds that count, in all attempts; a round without a record adds 0."""
        return sum(map(value, self.records()))

    @property
    def cells(self) -> int:
        """How many rounds count, over all attempts."""
        return len(self.indices) * len(self.attempts)


@dataclass(frozen=True, slots=True)
class Grid:
    """The rounds of all tasks, ordered by agent and task, so that no number depends on the order of the records."""

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
        """Return the grid of some records.

        Args:
            records: The records, in any order. Where they differ in a task's number of declared rounds, the largest
                holds.
            selected: How many rounds each task declares that was to be run, by name; a task without records is in the
                grid all the same.
            attempts: How many attempts were to be made at each task, or by task; those without records are in the grid.
            begin: The index of the first round that counts, by task, where that is not 1.

        Raises:
            ValueError: There are two records of one round: attempts of several runs need numbers of their own.

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
        """Return the part of the grid with those rounds that ``counts`` accepts, called with a task and an index.

        A task without such a round is left out.
        """
        parts = (
            (rounds, tuple(index for index in rounds.indices if counts(rounds.task, index))) for rounds in self.tasks
        )
        return Grid(tuple(narrowed(rounds, indices) for rounds, indices in parts if indices))

    def records(self) -> Iterator[RoundRecord]:
        """Yield the records that there are of the rounds that count."""
        for rounds in self.tasks:
            yield from rounds.records()


Rounds = Iterable[RoundRecord] | Grid
"""What metrics are computed from: records in any order, or their grid, which also knows what left no record."""


def as_grid(rounds: Rounds) -> Grid:
    """Return the grid that ``rounds`` is, or a new one of the records."""
    return rounds if isinstance(rounds, Grid) else Grid.of(rounds)


def narrowed(rounds: TaskRounds, indices: tuple[int, ...]) -> TaskRounds:
    """Return the same attempts with only the rounds at ``indices`` counting."""
    return TaskRounds(rounds.agent, rounds.task, rounds.chain, indices, rounds.attempts)


def _task_rounds(agent: str, task: str, chain: range, made: Mapping[int, Attempt], attempts: int) -> TaskRounds:
    free = (number for number in range(1, attempts + 1) if number not in made)
    left_nothing = islice(free, max(0, attempts - len(made)))
    numbers = sorted([*made, *left_nothing])
    return TaskRounds(agent, task, chain, tuple(chain), {number: made.get(number, {}) for number in numbers})


def by_agent(records: Iterable[RoundRecord]) -> dict[str, list[RoundRecord]]:
    """Return the records by agent, in the order in which agents first appear."""
    agents: dict[str, list[RoundRecord]] = defaultdict(list)
    for record in records:
        agents[record.agent].append(record)
    return agents


def by_task(records: Iterable[RoundRecord]) -> dict[str, dict[int, list[RoundRecord]]]:
    """Return the records by task, then by attempt, in the order given."""
    tasks: dict[str, dict[int, list[RoundRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        tasks[record.task][record.attempt].append(record)
    return tasks
