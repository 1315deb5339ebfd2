"""The grid that metrics are computed from: records by agent, task, attempt and round; some may be missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from pytest_evocode.results.records import RoundRecord


class SuiteFacts(NamedTuple):
    """What the suites of a task gave in any attempt, by the indices of its rounds."""

    cases: frozenset[int] = frozenset()
    """The rounds whose suites reported cases, or have cases that ``evocode.lock`` lists."""
    decided: frozenset[int] = frozenset()
    """The rounds of which a reward decided whether they passed."""

    def merged(self, other: SuiteFacts) -> SuiteFacts:
        """Return what two together know."""
        return SuiteFacts(self.cases | other.cases, self.decided | other.decided)


NOTHING_KNOWN = SuiteFacts()


def reports_cases(record: RoundRecord) -> bool:
    """Return whether the suite of a round reported cases, or has pinned ones."""
    return bool(record.case_counts[1] or (record.verdict and record.verdict.pinned and record.verdict.pinned[1]))


def facts_of(records: Iterable[RoundRecord]) -> SuiteFacts:
    """Return what the rounds of one task tell.

    >>> from pytest_evocode.results.records import Verdict
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r2", index=2, declared_rounds=2, outcome="failed",
    ...     verdict=Verdict(reward=0, rewards={}, counts=(0, 3)))
    >>> facts_of([record]) == SuiteFacts(frozenset({2}), frozenset({2}))
    True
    """
    records = list(records)
    return SuiteFacts(
        frozenset(record.index for record in records if reports_cases(record)),
        frozenset(record.index for record in records if record.outcome in ("passed", "failed")),
    )


def suite_facts(records: Iterable[RoundRecord]) -> dict[str, SuiteFacts]:
    """Return the facts by task, of records of any agents at the same contents of each task."""
    by_task: dict[str, list[RoundRecord]] = defaultdict(list)
    for record in records:
        by_task[record.task].append(record)
    return {task: facts_of(found) for task, found in by_task.items()}


Attempt = Mapping[int, RoundRecord]
"""The records of one attempt by round index; a round without a record was not run, or left nothing."""
Part = Mapping[tuple[str, int], Collection[int]]
"""By task and attempt the indices of the rounds that were selected, for attempts of which that is not all."""


@dataclass(frozen=True)
class TaskRounds:
    """All attempts of one agent at one task.

    Two dozen metrics ask the same of each, so what goes through all of its records is found once.
    """

    agent: str
    task: str
    chain: tuple[int, ...]
    """The indices of the rounds that attempts go through, from the first that they begin with to the last declared one,
    without those that were selected for none of them.
    """
    indices: tuple[int, ...]
    """The indices of the rounds that count: the whole chain, or the part of it that a breakdown looks at."""
    attempts: Mapping[int, Attempt]
    """The attempts by number; one that was to be made and left no record is empty."""
    declared: int
    """How many rounds the task has."""
    partial: Mapping[int, Collection[int]] = field(default_factory=dict)
    """The indices of the rounds that were selected, by number, for attempts of which that is not the whole chain."""
    suites: SuiteFacts = NOTHING_KNOWN
    """What the task's suites gave in attempts of others; those here tell it of themselves."""
    unselected: tuple[int, ...] = ()
    """The indices of the rounds that attempts would go through, too, and that were selected for none of them."""

    @cached_property
    def decided(self) -> TaskRounds | None:
        """The same without rounds that no reward decides; None where nothing is left.

        Such a round has not failed, so that it counts nowhere where passes do. But it counts as not passed in an
        attempt whose suite gave none that decides, where that of the same round did in any other.
        """
        undecided = self._undecided
        if not any(undecided.values()):
            return self
        known = self.known_suites.decided
        left = {
            number: tuple(index for index in self.own(number) if index not in undecided[number] - known)
            for number in self.attempts
        }
        kept = self.keeping(left)
        return kept if kept.attempts else None

    def keeping(self, left: Mapping[int, tuple[int, ...]]) -> TaskRounds:
        """Return the same with those rounds of the chain that are left of attempts, by number.

        Attempts of which none is left that counts are left out.
        """
        counting = {number: part for number, part in left.items() if set(part) & set(self.indices)}
        played = {index for part in counting.values() for index in part}
        chain = tuple(index for index in self.chain if index in played)
        return replace(
            self,
            chain=chain,
            indices=tuple(index for index in self.indices if index in played),
            attempts={number: self.attempts[number] for number in counting},
            partial={number: part for number, part in counting.items() if part != chain},
        )

    def undecided_failed(self) -> int:
        """Return how many rounds that no reward decides count as not passed all the same."""
        known = self.known_suites.decided
        return sum(len(indices & known) for indices in self._undecided.values())

    @cached_property
    def _undecided(self) -> dict[int, set[int]]:
        """The indices of the rounds that no reward decides, by number of the attempt."""
        return {
            number: {index for index, record in attempt.items() if record.outcome == "undecided"}
            for number, attempt in self.attempts.items()
        }

    @cached_property
    def known_suites(self) -> SuiteFacts:
        """What the task's suites gave in any attempt, these and those of others."""
        return self.suites.merged(facts_of(record for made in self.attempts.values() for record in made.values()))

    @property
    def whole(self) -> list[int]:
        """The numbers of the attempts that all rounds that count were selected for; none where some are unselected."""
        if self.unselected:
            return []
        return [number for number in self.attempts if set(self.indices) <= set(self.own(number))]

    def own(self, number: int) -> tuple[int, ...]:
        """Return the indices of the rounds of the chain that were selected for an attempt."""
        part = self.partial.get(number)
        return self.chain if part is None else tuple(index for index in self.chain if index in part)

    def tries(self, index: int) -> int:
        """Return for how many attempts a round was selected."""
        if not self.partial:
            return len(self.attempts)
        return sum(index in self.partial.get(number, (index,)) for number in self.attempts)

    @cached_property
    def records(self) -> tuple[RoundRecord, ...]:
        """The records that there are of the rounds that count."""
        return tuple(
            attempt[index]
            for number, attempt in self.attempts.items()
            for index in self.indices
            if index in attempt and index in self.partial.get(number, (index,))
        )

    def passes(self, index: int) -> int:
        """Return how many attempts passed a round."""
        return self._passes[index]

    @cached_property
    def _passes(self) -> Counter[int]:
        """How many attempts passed each round, by index."""
        return Counter(
            index for attempt in self.attempts.values() for index, record in attempt.items() if record.passed
        )

    def share(self, index: int) -> float:
        """Return the share of the attempts that passed a round, of those for which it was selected; 0 without any."""
        return self.passes(index) / (self.tries(index) or 1)

    @property
    def cells(self) -> int:
        """How many rounds count, over all attempts."""
        return sum(map(self.tries, self.indices)) if self.partial else len(self.indices) * len(self.attempts)


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
        partial: Part | None = None,
        suites: Mapping[str, SuiteFacts] | None = None,
    ) -> Grid:
        """Return the grid of some records.

        Args:
            records: The records, in any order; those that were brought along do not count. Where they differ in a
                task's number of declared rounds, the largest holds.
            selected: How many rounds each task declares that was to be run, by name; a task without records is in the
                grid all the same.
            attempts: How many attempts were to be made at each task, or by task; those without records are in the grid.
            begin: The index of the first round that counts, by task, where that is not 1.
            partial: The rounds that were selected, for attempts of which that is not all; no others of them count.
            suites: What the suites of each task gave, by name, in attempts of others.

        Raises:
            ValueError: There are two records of one round: attempts of several runs need numbers of their own.

        >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r2", index=2, declared_rounds=3,
        ...     outcome="passed")
        >>> [(rounds.task, rounds.indices, rounds.passes(2)) for rounds in Grid.of([record], selected={"u": 1}).tasks]
        [('t', (1, 2, 3), 1), ('u', (1,), 0)]
        >>> [rounds.indices for rounds in Grid.of([record], partial={("t", 1): {2}}).tasks]
        [(2,)]
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
            if not record.brought_along:
                rounds[record.index] = record
            declared[record.task] = max(declared.get(record.task, 0), record.declared_rounds)
        for agent in {agent for agent, _ in found} or {""}:
            for task in selected or ():
                found[agent, task]
        chains = {task: range((begin or {}).get(task, 1), last + 1) for task, last in declared.items()}
        made = {task: attempts if isinstance(attempts, int) else attempts.get(task, 1) for task in declared}
        tasks = (
            replace(
                _task_rounds(agent, task, chains[task], found[agent, task], made[task], partial or {}),
                suites=(suites or {}).get(task, NOTHING_KNOWN),
            )
            for agent, task in sorted(found)
        )
        return cls(tuple(rounds for rounds in tasks if rounds.chain))

    def only(self, counts: Callable[[str, int], bool]) -> Grid:
        """Return the part of the grid with those rounds that ``counts`` accepts, called with a task and an index.

        A task without such a round is left out.
        """
        parts = (
            (rounds, tuple(index for index in rounds.indices if counts(rounds.task, index))) for rounds in self.tasks
        )
        return Grid(tuple(narrowed(rounds, indices) for rounds, indices in parts if indices))

    def decided(self) -> Grid:
        """Return the grid without rounds that no reward decides; see :attr:`TaskRounds.decided`."""
        return Grid(tuple(task.decided for task in self.tasks if task.decided is not None))

    def records(self) -> Iterator[RoundRecord]:
        """Yield the records that there are of the rounds that count."""
        for rounds in self.tasks:
            yield from rounds.records


Rounds = Iterable[RoundRecord] | Grid
"""What metrics are computed from: records in any order, or their grid, which also knows what left no record."""


def as_grid(rounds: Rounds) -> Grid:
    """Return the grid that ``rounds`` is, or a new one of the records."""
    return rounds if isinstance(rounds, Grid) else Grid.of(rounds)


def narrowed(rounds: TaskRounds, indices: tuple[int, ...]) -> TaskRounds:
    """Return the same attempts with only the rounds at ``indices`` counting; what was unselected counts no longer."""
    if indices == rounds.indices:
        return rounds
    part = replace(rounds, indices=indices, unselected=())
    # The attempts are the same, and each part would go through all of them.
    vars(part).update(known_suites=rounds.known_suites, _undecided=rounds._undecided, _passes=rounds._passes)
    return part


def _task_rounds(
    agent: str, task: str, chain: range, made: Mapping[int, Attempt], attempts: int, partial: Part
) -> TaskRounds:
    free = (number for number in range(1, attempts + 1) if number not in made)
    left_nothing = islice(free, max(0, attempts - len(made)))
    numbers = sorted([*made, *left_nothing])
    parts = {number: partial[task, number] for number in numbers if (task, number) in partial}
    parts = {number: part for number, part in parts.items() if not set(chain) <= set(part)}
    own = tuple(chain)
    if len(parts) == len(numbers):
        own = tuple(index for index in chain if any(index in part for part in parts.values()))
    return TaskRounds(
        agent,
        task,
        own,
        own,
        {number: made.get(number, {}) for number in numbers},
        chain.stop - 1,
        parts,
        unselected=tuple(index for index in chain if index not in own),
    )


def are_of_the_same_rounds(first: Grid, second: Grid) -> bool:
    """Return whether two grids have the same tasks, and where a part of a task's rounds was selected the same part."""
    sides = [{task.task: task for task in grid.tasks} for grid in (first, second)]
    return sides[0].keys() == sides[1].keys() and all(
        task.indices == sides[1][name].indices or not (task.partial or sides[1][name].partial)
        for name, task in sides[0].items()
    )


def was_begun(record: RoundRecord) -> bool:
    """Return whether a round took anything; one that was not reached did where its turn had ended all the same."""
    return record.outcome != "not reached" or record.agent_seconds is not None


def scored(records: Iterable[RoundRecord]) -> list[RoundRecord]:
    """Return the records without those of attempts that never started, and of interrupted ones: no score counts them.

    >>> def record(attempt, index, **values):
    ...     return RoundRecord(task="t", agent="a", attempt=attempt, round=f"r{index}", index=index, declared_rounds=2,
    ...         **values)
    >>> found = scored([record(1, 1, outcome="passed"), record(1, 2, outcome="not reached", unscored="unfinished"),
    ...     record(2, 1, outcome="passed"), record(2, 2, outcome="not reached")])
    >>> [(each.attempt, each.index) for each in found]
    [(2, 1), (2, 2)]
    """
    records = list(records)
    apart = {(each.task, each.agent, each.attempt) for each in records if each.unscored is not None}
    return [each for each in records if (each.task, each.agent, each.attempt) not in apart] if apart else records


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
