"""How requirements break and are repaired as rounds go by: discrete-time hazards, and what is kept or repaired.

The hazard in round d of an event is the share of those at risk there, that had come as far without it, to which it
happens (J. Singer and J. Willett 1993, It's about time: using discrete-time survival analysis to study duration and the
timing of events). What is kept, or not repaired, so many rounds on is the product of 1 - hazard, Kaplan and Meier's
estimate.

A requirement is the cases of one name that came in the same round, or a case that names none. It holds where all of its
cases pass that were not skipped; one that the suite should have run and did not has not passed. The clock of breaking
starts where a requirement passes, and not where it came: what never passed cannot break, and so all are at risk in
round 1. After a repair it starts anew, as each time that something breaks is an event (R. Prentice, B. Williams and A.
Peterson 1981, on gap times).

What is followed is lost from sight, censored, where its requirement is retired, its attempt ends, or its round gives no
verdict or skips it. Behind such a gap it is followed again from the next change on, for what it did in the gap, and
since when, is not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar, get_args

from pytest_evocode.metrics.grid import Grid, TaskRounds
from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval, interval_of_ratio
from pytest_evocode.metrics.neighbours.round_cases import Required, cases_of, required_by_task
from pytest_evocode.metrics.statistics.survival import LifeTableRow, added, clustered_intervals, kaplan_meier
from pytest_evocode.results.records import RoundRecord, TaskFacts

Event = Literal["break", "repair", "catch-up"]
"""A requirement that passed fails; one that broke passes again; one that failed when it came passes."""
Clusters = Literal["tasks", "attempts"]
K = TypeVar("K", int, str)
METHOD = "Bayesian bootstrap of life tables with half a cluster at the bound"


class _Step(NamedTuple):
    """One round of a requirement that is followed."""

    event: Event
    """What may happen."""
    rounds: int
    """How many rounds it is since the clock started, from 1."""
    outcome: Literal["kept", "happened", "censored"]
    changes: tuple[str, ...]
    """The change types of the round."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """How often an event happened to those at risk, in the same round of each or in several."""

    at_risk: int
    """How many requirements had come as far without it."""
    events: int
    """To how many of them it happened."""
    censored: int
    """How many others had come as far, and were lost from sight."""
    interval: Interval | None
    """95 %, 0 to 100; None where fewer than five clusters have anything at risk."""

    @property
    def percent(self) -> float | None:
        """The hazard, 0 to 100; None where nothing was at risk."""
        return 100 * self.events / self.at_risk if self.at_risk else None


@dataclass(frozen=True, slots=True)
class Without:
    """The share of all that are followed to which an event has not happened so many rounds on, 0 to 100."""

    percent: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class EventHistory:
    """What is known of one event."""

    clusters: Clusters | None
    """What intervals take for independent: tasks, where five or more have anything at risk, else attempts, likewise.
    The attempts at one task are not, so that these intervals are rather too short. None where there are too few.
    """
    overall: Hazard
    by_rounds: Mapping[int, Hazard]
    """By how many rounds it is since the clock started."""
    without: Mapping[int, Without]
    """Likewise, up to the last round in which anything was at risk."""
    by_change: Mapping[str, Hazard]
    """By change type of the round in which it may happen; a round with several is under each."""


def hazards(
    grid: Grid,
    reference: Grid | None = None,
    *,
    others: Iterable[TaskRounds] = (),
    facts: Mapping[str, TaskFacts] | None = None,
) -> tuple[dict[Event, EventHistory], list[str]]:
    """Return the hazards of one agent's requirements in chains, and the tasks whose records do not name their cases.

    Args:
        grid: The rounds of the agent in a mode other than single-round, with cases.
        reference: The rounds of the agent ``oracle``, where there are any; they tell what rounds require.
        others: The attempts of other agents and modes at the same contents of tasks, which tell it otherwise.
        facts: What is known of tasks, by name, for their rounds' change types.

    >>> from pytest_evocode.results.records import Case, RoundRecord, Verdict
    >>> def record(index, **cases):
    ...     cases = tuple(Case(id=id_, status=status) for id_, status in cases.items())
    ...     return RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=3,
    ...         outcome="failed", verdict=Verdict(reward=0, rewards={}, cases=cases))
    >>> found, _ = hazards(Grid.of([record(1, x="passed", y="passed"), record(2, x="failed", y="passed"),
    ...     record(3, x="passed", y="passed")]))
    >>> {rounds: (each.events, each.at_risk) for rounds, each in found["break"].by_rounds.items()}
    {1: (1, 2), 2: (0, 1), 3: (0, 0)}
    >>> found["break"].without[2].percent, found["repair"].by_rounds[1].percent, found["catch-up"].overall.percent
    (50.0, 100.0, None)
    """
    steps: dict[tuple[str, int], Counter[_Step]] = {}
    nameless = []
    for task, required in required_by_task(grid, reference, others):
        if required is None:
            nameless.append(task.task)
            continue
        known = (facts or {}).get(task.task)
        for number in task.attempts:
            steps[task.task, number] = Counter(_steps_of_attempt(task, number, required, known))
    return {event: _history(event, steps) for event in get_args(Event)}, nameless


def _steps_of_attempt(
    task: TaskRounds, number: int, required: Mapping[int, Required], facts: TaskFacts | None
) -> Iterator[_Step]:
    own, attempt = set(task.own(number)), task.attempts[number]
    changes = {index: facts.changes(index) if facts else () for index in task.chain}
    for came, cases in _requirements(task.chain, required):
        states = [
            (_holds(attempt.get(index), cases, required[index]) if index in own else None, changes[index])
            for index in task.chain
            if came is None or index >= came
        ]
        yield from _steps([*states, (None, ())], seen=came is not None)


def _requirements(
    chain: Sequence[int], required: Mapping[int, Required]
) -> Iterator[tuple[int | None, frozenset[str]]]:
    """Yield the index of the round that each requirement came in, and its cases; None is before the chain begins."""
    came: dict[str, int] = {}
    names: dict[str, str] = {}
    for index in chain:
        for case in required[index].new:
            came.setdefault(case, index)
        names = {**required[index].requirements, **names}
    found: dict[tuple[str, int | None], set[str]] = defaultdict(set)
    for case, name in names.items():
        found[name, came.get(case)].add(case)
    yield from ((begin, frozenset(cases)) for (_, begin), cases in found.items())


def _holds(record: RoundRecord | None, cases: frozenset[str], required: Required) -> bool | None:
    """Return whether a requirement holds in a round; None where that was not judged, or is no longer required."""
    checked = cases & (required.new | required.old)
    if not checked or record is None or record.outcome not in ("passed", "failed"):
        return None
    if record.verdict is None or record.verdict.void:
        return None
    found = cases_of(record)
    if record.passed and not found:  # By the suite's word all that is required holds.
        return True
    statuses = {case.id: case.status for case in found if case.id in checked}
    not_run = required.told and checked - statuses.keys()
    if not_run or {"failed", "error"} & {*statuses.values()}:
        return False
    return True if "passed" in statuses.values() else None


def _steps(states: Sequence[tuple[bool | None, tuple[str, ...]]], *, seen: bool) -> Iterator[_Step]:
    """Yield the steps of one requirement; ``seen`` is whether it came in the first of these rounds."""
    event: Event | None = None
    before: bool | None = None
    rounds = 0
    for place, (now, changes) in enumerate(states):
        if event is not None:
            rounds += 1
            yield _Step(event, rounds, "censored" if now is None else "kept" if now == before else "happened", changes)
        if now is None or (before is None and (place or not seen)):
            event = None
        elif now != before:
            event, rounds = "break" if now else "repair" if place else "catch-up", 0
        before = now


def _history(event: Event, steps: Mapping[tuple[str, int], Counter[_Step]]) -> EventHistory:
    by_task: dict[str, Counter[_Step]] = defaultdict(Counter)
    by_attempt = []
    for (task, _), found in steps.items():
        of_event = Counter({step: number for step, number in found.items() if step.event == event})
        by_task[task] += of_event
        by_attempt.append(of_event)
    groups: dict[Clusters, Sequence[Counter[_Step]]] = {"tasks": [*by_task.values()], "attempts": by_attempt}
    whole = {kind: _life_tables(parts, lambda _: [0]) for kind, parts in groups.items()}
    enough = [kind for kind, tables in whole.items() if _at_risk(tables, 0) >= FEWEST_TASKS]
    clusters = enough[0] if enough else None
    parts = groups[clusters or "tasks"]
    by_rounds = _life_tables(parts, lambda step: [step.rounds])
    return EventHistory(
        clusters,
        _hazard(whole[clusters or "tasks"], 0),
        _hazards(by_rounds),
        _without(by_rounds),
        _hazards(_life_tables(parts, lambda step: step.changes)),
    )


def _life_tables(parts: Iterable[Counter[_Step]], keys: Callable[[_Step], Iterable[K]]) -> list[dict[K, LifeTableRow]]:
    """Return what became of the steps of each cluster, by keys of which a step may have several."""
    found = []
    for part in parts:
        numbers: dict[K, Counter[str]] = defaultdict(Counter)
        for step, number in part.items():
            for key in keys(step):
                numbers[key][step.outcome] += number
        found.append(
            {
                key: LifeTableRow(each["kept"] + each["happened"], each["happened"], each["censored"])
                for key, each in numbers.items()
            }
        )
    return found


def _hazards(tables: Sequence[Mapping[K, LifeTableRow]]) -> dict[K, Hazard]:
    return {key: _hazard(tables, key) for key in sorted({key for table in tables for key in table})}


def _hazard(tables: Sequence[Mapping[K, LifeTableRow]], key: K) -> Hazard:
    rows = [table[key] for table in tables if key in table]
    at_risk, events, censored = (int(sum(getattr(row, name) for row in rows)) for name in _NAMES)
    return Hazard(at_risk, events, censored, interval_of_ratio([(row.failed, row.at_risk) for row in rows]))


_NAMES = ("at_risk", "failed", "censored")


def _at_risk(tables: Sequence[Mapping[K, LifeTableRow]], key: K) -> int:
    """Return how many clusters have anything at risk."""
    return sum(key in table and table[key].at_risk > 0 for table in tables)


def _without(tables: Sequence[Mapping[int, LifeTableRow]]) -> dict[int, Without]:
    intervals = clustered_intervals(tables)
    found = {}
    for rounds, one in kaplan_meier(added(tables)).items():
        low, high = (100 * end for end in intervals[rounds])
        enough = _at_risk(tables, rounds) >= FEWEST_TASKS
        found[rounds] = Without(100 * one.share, Interval(low, high, METHOD) if enough else None)
    return found
