"""What each round required of an attempt and what of it passed, case by case: what neighbours' metrics are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from pytest_evocode.metrics.failures import failing_cases
from pytest_evocode.metrics.grid import Attempt, Grid, TaskRounds
from pytest_evocode.results.records import Case, FailureKind, RoundRecord

Ids = frozenset[str]
_Kinds = Mapping[tuple[int, int], Mapping[str, FailureKind]]
"""The kinds of failing cases, by attempt and round index."""
_NONE: Ids = frozenset()


@dataclass(frozen=True, slots=True)
class RoundCases:
    """One round of one attempt. A case is known by its id; one that is no longer required is in none of the sets."""

    index: int
    new: Ids = _NONE
    """What this round is the first to require."""
    old: Ids = _NONE
    """What an earlier round required, and this one still does."""
    passed: Ids = _NONE
    """What of both passed."""
    held: Ids = _NONE
    """What of the old ones passed when it was last run in this attempt."""
    lost: Ids = _NONE
    """What of those does not pass now: the regressions of this round. A case that the suite should have run and did
    not, as where the program no longer starts, is lost too; one that it skipped is not.
    """
    ran: bool = False
    """Whether a suite ran at least one case, and gave a verdict; otherwise nothing passed, and nothing is lost unless
    the suite gave a verdict all the same.
    """
    judged: bool = False
    """Whether a suite gave a verdict; False for a round that was not reached, or ended in an error."""
    told: bool = True
    """Whether any attempt tells all that the round requires. Otherwise it may require more than is known, as where the
    only suite that ran broke off.
    """

    @property
    def required(self) -> Ids:
        """All that the round requires."""
        return self.new | self.old

    @property
    def broken(self) -> Ids:
        """What of the old ones does not pass, whether this attempt ever passed it or not."""
        return self.old - self.passed


@dataclass(frozen=True, slots=True)
class TaskCases:
    """The rounds of all attempts of one agent at one task."""

    task: str
    attempts: tuple[tuple[RoundCases, ...], ...]


class Required(NamedTuple):
    """What a round requires."""

    new: Ids
    """What it is the first to require."""
    old: Ids
    """What an earlier round required, and this one still does."""
    told: bool
    """Whether any attempt tells all that it requires."""
    requirements: Mapping[str, str]
    """The requirements of its cases, by their ids; a case that names none is one by itself."""


def task_cases(
    grid: Grid, reference: Grid | None = None, *, others: Iterable[TaskRounds] = (), single: bool = False
) -> tuple[list[TaskCases], list[str]]:
    """Return what one agent's rounds required and passed, and the tasks whose records do not name their cases.

    Args:
        grid: The rounds of one agent, with cases.
        reference: The rounds of the reference solutions, the agent ``oracle``, where there are any: a round then
            requires what passes there. Without it, a round requires what any attempt has a case for; where none tells
            all of them, also what the round before it does.
        others: The attempts of other agents and modes at the same contents of tasks.
        single: Whether the rounds are single ones, each of which begins with what the reference solutions lead to, so
            that all that an earlier round required is held.
    """
    found, nameless = [], []
    for task, required in required_by_task(grid, reference, others):
        if required is None:
            nameless.append(task.task)
            continue
        kinds: dict[tuple[int, int], dict[str, FailureKind]] = defaultdict(dict)
        for record, case, kind in failing_cases(task.records):
            kinds[record.attempt, record.index][case.id] = kind
        attempts = (_rounds(task, number, required, kinds, single) for number in task.attempts)
        found.append(TaskCases(task.task, tuple(attempts)))
    return found, nameless


def required_by_task(
    grid: Grid, reference: Grid | None, others: Iterable[TaskRounds]
) -> Iterator[tuple[TaskRounds, dict[int, Required] | None]]:
    """Yield each task of a grid with what its rounds require, by index; None where records do not name their cases.

    The arguments are those of :func:`task_cases`.
    """
    of_reference = {each.task: each for each in reference.tasks} if reference is not None else {}
    of_others: dict[str, list[Attempt]] = defaultdict(list)
    for other in (*of_reference.values(), *others):
        of_others[other.task] += other.attempts.values()
    for task in grid.tasks:
        every = [*task.attempts.values(), *of_others[task.task]]
        nameless = _is_nameless(task, [record for attempt in every for record in attempt.values()])
        yield task, None if nameless else _required(task, of_reference.get(task.task), every)


def cases_of(record: RoundRecord | None) -> tuple[Case, ...]:
    """Return the cases of a round that has a verdict; a round with another outcome has none that counts."""
    if record is None or record.verdict is None or record.outcome not in ("passed", "failed"):
        return ()
    return record.verdict.cases


def _is_nameless(task: TaskRounds, every: Iterable[RoundRecord]) -> bool:
    """Return whether cases cannot be followed: suites gave totals or rewards alone, or cases without ids."""
    records = [record for record in task.records if record.verdict is not None]
    cases = [cases_of(record) for record in records]
    return (
        any(sum(record.case_counts) > 0 and not record.verdict.cases for record in records if record.verdict)
        or any(not case.id for each in cases for case in each)
        or bool(records and not any(cases) and not any(map(cases_of, every)))
    )


def _required(task: TaskRounds, reference: TaskRounds | None, every: Sequence[Attempt]) -> dict[int, Required]:
    """Return by round index what each round requires; ``every`` is all attempts at the task, by anybody."""
    found: dict[int, Required] = {}
    seen: set[str] = set()
    last: Ids = _NONE
    for index in task.chain:
        records = [attempt[index] for attempt in every if index in attempt]
        cases, told = _reference_cases(reference, index), True
        if not cases:
            cases = {case.id: case for record in records for case in cases_of(record)}
            verdicts = [record.verdict for record in records if record.verdict is not None]
            pinned = max((each.pinned[1] for each in verdicts if each.pinned), default=0)
            told = len(cases) >= pinned and any(map(_tells_all, records))
        names = {record.round for record in records} - {""}
        new = frozenset(
            id_ for id_, case in cases.items() if (case.origin in names if case.origin and names else id_ not in seen)
        )
        # Of what is not told, all that was required before may be.
        old = (frozenset(cases) if told else last | frozenset(cases)) - new
        requirements = {id_: case.requirement or id_ for id_, case in cases.items()}
        found[index], last = Required(new, old, told, requirements), new | old
        seen |= last
    return found


def _tells_all(record: RoundRecord) -> bool:
    """Return whether a suite reported all of its cases, as far as its record shows.

    One that was stopped did not, nor did one that failed although none of its cases did: it broke off.
    """
    cases = cases_of(record)
    if not cases or (record.verdict is not None and record.verdict.timed_out):
        return False
    return record.passed or any(case.failing for case in cases)


def _reference_cases(reference: TaskRounds | None, index: int) -> dict[str, Case]:
    attempts = reference.attempts.values() if reference is not None else ()
    return {case.id: case for each in attempts for case in cases_of(each.get(index)) if case.status == "passed"}


def _rounds(
    task: TaskRounds, number: int, required: Mapping[int, Required], kinds: _Kinds, single: bool
) -> tuple[RoundCases, ...]:
    """Return the rounds of one attempt that count, in order; a round that was not selected is left out."""
    own, attempt = set(task.own(number)), task.attempts[number]
    held: Ids = _NONE
    gone: Ids = _NONE
    found = []
    for index in (each for each in task.indices if each in own):
        held = required[index].old if single else held
        # What was lost because it did not run fails later for the first time, and is not lost again.
        regressed = _regressed(kinds.get((number, index), {}), held) - (_NONE if single else gone)
        each = _round(attempt, index, required[index], held, regressed)
        found.append(each)
        held = (held | each.passed) - each.lost
        gone = (gone | each.lost) - each.passed
    return tuple(found)


def _regressed(kinds: Mapping[str, FailureKind], held: Ids) -> Ids:
    """Return the failing cases of a round that are regressions: by their history, or because they were held.

    A single round has no history that would tell what it broke. A stale behaviour was never to be kept.
    """
    return frozenset(id_ for id_, kind in kinds.items() if kind == "regression" or (kind != "stale" and id_ in held))


def _round(attempt: Attempt, index: int, required: Required, held: Ids, regressed: Ids) -> RoundCases:
    record = attempt.get(index)
    new, old, told, _ = required
    if record is None or record.verdict is None or record.outcome not in ("passed", "failed"):
        return RoundCases(index, new, old, held=held & old, told=told)
    cases = record.verdict.cases
    if record.passed and not cases:  # By the suite's word all that is required holds.
        return RoundCases(index, new, old, passed=new | old, held=held & old, ran=True, judged=True)
    passed = frozenset(case.id for case in cases if case.status == "passed" and not record.verdict.void)
    missing = held - {case.id for case in cases}
    return RoundCases(
        index,
        new,
        old,
        passed=passed & (new | old),
        held=(held | regressed) & old,
        lost=(regressed | missing) & old,
        ran=any(case.status != "skipped" for case in cases),
        judged=True,
        told=told,
    )


def mean_over_tasks(tasks: Iterable[TaskCases], value: Callable[[RoundCases], float | None]) -> float | None:
    """Return the mean over tasks of the mean over attempts of the mean over rounds; None where nothing was measured.

    Rounds at which the value is None, and attempts and tasks without any other, are left out.
    """

    def of_attempt(rounds: tuple[RoundCases, ...]) -> float | None:
        return mean(map(value, rounds))

    return mean(mean(map(of_attempt, task.attempts)) for task in tasks)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that were measured; None where none was."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
