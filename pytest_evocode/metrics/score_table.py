"""What is scored together: of everything in some directories the attempts that count, by agent and mode."""

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
from pytest_evocode.results.records import Mode, RoundRecord
from pytest_evocode.results.task_facts import TaskFacts
from pytest_evocode.tasks import RewardStrategy

_Place = tuple[str, Mode, str | None]
"""An agent, and how its attempts go through the rounds."""
_Identity = tuple[str, int]
"""A task and an attempt's number."""


@dataclass(frozen=True)
class ScoreRow:
    """One agent's attempts in one mode; scores of different modes do not compare."""

    agent: str
    mode: Mode
    from_round: str | None
    """Where its chains begin; None is the first round, and what single rounds have."""
    attempts: tuple[StoredAttempt, ...]
    """Those that count, with the numbers that they have here."""
    missing: tuple[tuple[str, int], ...]
    """The task and number of those that a run was to make, and that left nothing: they count as not passed."""
    facts: Mapping[str, TaskFacts]

    @property
    def name(self) -> str:
        """The agent, with all that is not a whole chain of rounds.

        >>> ScoreRow("gpt", "fail-stop", "round-3", (), (), {}).name
        'gpt (fail-stop, from round-3)'
        """
        return scored_name(self.agent, self.mode, self.from_round)

    @cached_property
    def records(self) -> tuple[RoundRecord, ...]:
        """Of all attempts, with one in place of each that is missing."""
        found = tuple(record for attempt in self.attempts for record in attempt.record.rounds)
        return found + tuple(self._stand_in(task, number, found) for task, number in self.missing)

    @cached_property
    def grid(self) -> Grid:
        """The records in their places, without the rounds that a chain from a later round leaves out."""
        return Grid.of(
            self.records, begin={task: self._begin(task) for task in self._tasks()} if self.from_round else {}
        )

    @property
    def strategies(self) -> dict[str, RewardStrategy]:
        """How the tasks add up rewards."""
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
        """What counts in place of an attempt that left nothing."""
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
    """All rows of some directories, by agent and mode."""

    rows: tuple[ScoreRow, ...]
    facts: Mapping[str, TaskFacts]
    superseded: int
    """Attempts that do not count because a newer one has the same number."""

    def single_rounds(self, row: ScoreRow) -> ScoreRow | None:
        """The row in single-round mode of the agent of one of whole chains; None where there is none."""
        if row.mode == "single-round" or row.from_round is not None:
            return None
        alone = (each for each in self.rows if each.agent == row.agent and each.mode == "single-round")
        return next(alone, None)

    def scores(self, row: ScoreRow) -> Scores:
        """All scores of a row; SR and Gap come from the same agent's single rounds."""
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
    """The rows of what was loaded.

    Of attempts with the same number at the same task the newest counts, or with ``all_runs`` all do, and have new
    numbers. ``run`` is the only session or job that counts. ``tasks`` are those that count, whether there are results
    or not; without them it is those with results and those that were selected.
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
    """The attempts that were to be made and left nothing: in no run, or with ``all_runs`` in the one that meant to."""
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
        told = {attempt.record.task for attempt in attempts} | {task for task, _ in found.get(place, ())}
        found.setdefault(place, []).extend((task, 1) for task in tasks or () if task not in told)
    return found


def _newest(attempts: Iterable[StoredAttempt]) -> list[StoredAttempt]:
    """One for each task and number, of attempts in the order of time; single rounds are an attempt each."""
    newest = {(each.record.task, each.record.attempt, each.record.from_round): each for each in attempts}
    return list(newest.values())


def _renumbered(attempts: Iterable[StoredAttempt]) -> list[StoredAttempt]:
    """All of them, of attempts in the order of time, with numbers from 1 at each task."""
    numbers: Counter[tuple[str, str | None]] = Counter()
    found = []
    for attempt in attempts:
        key = attempt.record.task, attempt.record.from_round
        numbers[key] += 1
        found.append(replace(attempt, record=numbered(attempt.record, numbers[key])))
    return found


def _when(attempt: StoredAttempt) -> tuple[float, str]:
    """When an attempt was begun, to sort by; what does not tell is older than everything."""
    for text, read in ((attempt.record.started, datetime.fromisoformat), (attempt.run, _stamp)):
        try:
            return read(text).timestamp(), str(attempt.path)
        except ValueError:
            continue
    return 0.0, str(attempt.path)


def _stamp(run: str) -> datetime:
    return datetime.strptime(run, STAMP)
