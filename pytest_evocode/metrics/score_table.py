"""The table of scores: of all attempts in some directories those that count, a row for each agent and mode."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.scores import Scores, scores
from pytest_evocode.names import scored_name
from pytest_evocode.results.directory import STAMP
from pytest_evocode.results.loading import Results, StoredAttempt, numbered
from pytest_evocode.results.records import Mode, RoundRecord, TaskFacts
from pytest_evocode.tasks import RewardStrategy

_Place = tuple[str, Mode, str | None]
"""An agent, the mode of its attempts, and the round that their chains begin with."""
_Identity = tuple[str, int]
"""A task, and the number of an attempt at it."""


@dataclass(frozen=True)
class ScoreRow:
    """One agent's attempts in one mode, which are scored together; scores of different modes cannot be compared."""

    agent: str
    mode: Mode
    from_round: str | None
    """The round that the chains begin with; None is the first, and in single-round mode it is always None."""
    attempts: tuple[StoredAttempt, ...]
    """The attempts that count, with the numbers that they have in this table."""
    missing: tuple[tuple[str, int], ...]
    """Task and number of each attempt that a run was to make and that left nothing; it counts as not passed."""
    facts: Mapping[str, TaskFacts]

    @property
    def name(self) -> str:
        """The agent, and its mode where that is not a whole chain.

        >>> ScoreRow("gpt", "fail-stop", "round-3", (), (), {}).name
        'gpt (fail-stop, from round-3)'
        """
        return scored_name(self.agent, self.mode, self.from_round)

    @cached_property
    def records(self) -> tuple[RoundRecord, ...]:
        """The records of all attempts, with one that stands in for each attempt that is missing."""
        found = tuple(record for attempt in self.attempts for record in attempt.record.rounds)
        return found + tuple(self._stand_in(task, number, found) for task, number in self.missing)

    @cached_property
    def grid(self) -> Grid:
        """The grid of the records, without the rounds before the one that the chains begin with."""
        return Grid.of(
            self.records, begin={task: self._begin(task) for task in self._tasks()} if self.from_round else {}
        )

    @property
    def strategies(self) -> dict[str, RewardStrategy]:
        """The ``multi_step_reward_strategy`` of each task."""
        return {task: facts.reward_strategy for task, facts in self.facts.items()}

    def _tasks(self) -> set[str]:
        return {attempt.record.task for attempt in self.attempts} | {task for task, _ in self.missing}

    def _begin(self, task: str) -> int:
        names = self.facts[task].rounds if task in self.facts else ()
        if self.from_round in names:
            return names.index(self.from_round) + 1
        known = [record.index for record in self.records if record.task == task and record.round == self.from_round]
        return min(known, default=1)

    def _stand_in(self, task: str, number: int, found: Iterable[RoundRecord]) -> RoundRecord:
        """Return the record that counts for an attempt that left nothing."""
        declared = [self.facts[task].declared] if task in self.facts else []
        declared = declared or [record.declared_rounds for record in found if record.task == task] or [1]
        return RoundRecord(
            task=task,
            agent=self.agent,
            attempt=number,
            round="",
            index=max(declared),
            declared_rounds=max(declared),
            outcome="not reached",
            cause="nothing was recorded of this attempt",
        )


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """All rows for some directories, ordered by agent and mode."""

    rows: tuple[ScoreRow, ...]
    facts: Mapping[str, TaskFacts]
    superseded: int
    """How many attempts do not count because a newer one has the same number."""

    def single_rounds(self, row: ScoreRow) -> ScoreRow | None:
        """Return the row with the single rounds of the agent whose chains ``row`` has; None where there is none."""
        if row.mode == "single-round" or row.from_round is not None:
            return None
        single = (each for each in self.rows if each.agent == row.agent and each.mode == "single-round")
        return next(single, None)

    def scores(self, row: ScoreRow) -> Scores:
        """Return all scores of a row; SR and Gap come from the single rounds of the same agent."""
        if row.mode == "single-round":
            return scores((), row.grid)
        single = self.single_rounds(row)
        return scores(row.grid, single.grid if single else (), row.strategies)


def score_table(
    results: Results,
    *,
    run: str | None = None,
    all_runs: bool = False,
    tasks: Mapping[str, TaskFacts] | None = None,
) -> ScoreTable:
    """Return the table of what was loaded.

    Args:
        results: The attempts and runs.
        run: The name of the only session or job that counts; None counts all.
        all_runs: Whether attempts of the same number at the same task all count, under new numbers. Otherwise the
            newest does.
        tasks: The facts about the tasks that count, by name, whether there are results or not. None counts those that
            have results or were selected.
    """
    found = [
        attempt
        for attempt in sorted(results.attempts, key=_when)
        if run in (None, attempt.run) and (tasks is None or attempt.record.task in tasks)
    ]
    facts = {each.record.task: each.record.facts for each in found if each.record.facts is not None} | dict(tasks or {})
    places: dict[_Place, list[StoredAttempt]] = defaultdict(list)
    for attempt in found:
        places[_place(attempt)].append(attempt)
    missing = _missing(results, places, run=run, all_runs=all_runs, tasks=tasks)
    rows = [
        _row(place, places[place], missing[place], facts, all_runs)
        for place in sorted({*places, *missing}, key=lambda place: (place[0], place[1], place[2] or ""))
    ]
    return ScoreTable(tuple(rows), facts, len(found) - sum(len(row.attempts) for row in rows))


def _row(
    place: _Place,
    attempts: Sequence[StoredAttempt],
    missing: Sequence[_Identity],
    facts: Mapping[str, TaskFacts],
    all_runs: bool,
) -> ScoreRow:
    counting = _renumbered(attempts) if all_runs else _newest(attempts)
    used = {(attempt.record.task, attempt.record.attempt) for attempt in counting}
    free = []
    for task, number in missing:
        while (task, number) in used:
            number += 1
        used.add((task, number))
        free.append((task, number))
    counting.sort(key=lambda each: (each.record.task, each.record.attempt, str(each.path)))
    return ScoreRow(*place, tuple(counting), tuple(sorted(free)), facts)


def _place(attempt: StoredAttempt) -> _Place:
    record = attempt.record
    return record.agent, record.mode, None if record.mode == "single-round" else record.from_round


def _missing(
    results: Results,
    places: Mapping[_Place, Sequence[StoredAttempt]],
    *,
    run: str | None,
    all_runs: bool,
    tasks: Mapping[str, TaskFacts] | None,
) -> dict[_Place, list[_Identity]]:
    """Return the attempts that were to be made and left nothing.

    They left nothing in any run, or, with ``all_runs``, in the run that was to make them.
    """
    made = {
        (place, attempt.run if all_runs else None, attempt.record.task, attempt.record.attempt)
        for place, attempts in places.items()
        for attempt in attempts
    }
    missing: dict[_Place, dict[tuple[str | None, str, int], None]] = defaultdict(dict)
    for stored in results.runs:
        record = stored.record
        begin = None if record.mode == "single-round" else record.from_round
        for task, agents in record.selected.items() if run in (None, record.run) else ():
            for agent, numbers in agents.items() if tasks is None or task in tasks else ():
                place = agent, record.mode, begin
                for number in numbers:
                    key = record.run if all_runs else None, task, number
                    if (place, *key) not in made:
                        missing[place][key] = None
    found = {place: [(task, number) for _, task, number in keys] for place, keys in missing.items()}
    for place, attempts in places.items():
        known = {attempt.record.task for attempt in attempts} | {task for task, _ in found.get(place, ())}
        found.setdefault(place, []).extend((task, 1) for task in tasks or () if task not in known)
    return found


def _newest(attempts: Iterable[StoredAttempt]) -> list[StoredAttempt]:
    """Return the newest attempt for each task and number, and in single-round mode for each round.

    The attempts are given in the order of time.
    """
    newest = {(each.record.task, each.record.attempt, each.record.from_round): each for each in attempts}
    return list(newest.values())


def _renumbered(attempts: Iterable[StoredAttempt]) -> list[StoredAttempt]:
    """Return all attempts, which are given in the order of time, with numbers from 1 at each task."""
    numbers: Counter[tuple[str, str | None]] = Counter()
    found = []
    for attempt in attempts:
        key = attempt.record.task, attempt.record.from_round
        numbers[key] += 1
        found.append(replace(attempt, record=numbered(attempt.record, numbers[key])))
    return found


def _when(attempt: StoredAttempt) -> tuple[float, str]:
    """Return a key to sort attempts by the time when they were begun; without a time one is older than all others."""
    for text, read in ((attempt.record.started, datetime.fromisoformat), (attempt.run, _stamp)):
        try:
            return read(text).timestamp(), str(attempt.path)
        except ValueError:
            continue
    return 0.0, str(attempt.path)


def _stamp(run: str) -> datetime:
    return datetime.strptime(run, STAMP)
