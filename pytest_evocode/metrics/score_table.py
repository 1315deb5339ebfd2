"""The table of scores: of all attempts in some directories those that count, a row for each agent and mode."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pytest_evocode.metrics.faults import Faults, faults
from pytest_evocode.metrics.flaky import FlakyRound, flaky_rounds
from pytest_evocode.metrics.grid import NOTHING_KNOWN, Grid, Part, SuiteFacts, facts_of
from pytest_evocode.metrics.grouping import (
    Grouping,
    Missing,
    Place,
    count_what_was_selected,
    counting_attempts,
    known_facts,
    known_rounds,
    missing_attempts,
    session_of,
    session_of_run,
    when,
)
from pytest_evocode.metrics.intervals import Interval, intervals_or_reasons
from pytest_evocode.metrics.over_attempts import Headline, OverAttempts, over_attempts
from pytest_evocode.metrics.scores import Scores, scores
from pytest_evocode.names import first_played, is_fork, scored_name
from pytest_evocode.results.identity import UNKNOWN, Subject, are_different, contents_label, subject_labels
from pytest_evocode.results.loading import Results, StoredAttempt, StoredRun, called
from pytest_evocode.results.records import Mode, RoundRecord, RunRecord, TaskFacts, Unscored, Usage, total_usage
from pytest_evocode.tasks import RewardStrategy


@dataclass(frozen=True)
class ScoreRow:
    """One agent's attempts in one mode, which are scored together; scores of different modes cannot be compared."""

    agent: str
    mode: Mode
    from_round: str | None
    """The round that the chains begin with, or of forks of A's state after a round ``A:round-3``; None is the first.

    In single-round mode it is always None.
    """
    attempts: tuple[StoredAttempt, ...]
    """The attempts that count, with the numbers that they have in this table."""
    missing: tuple[tuple[str, int], ...]
    """Task and number of each attempt that a run was to make and that left nothing; it counts as not passed."""
    facts: Mapping[str, TaskFacts]
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the rounds of tasks, as far as anything tells; empty ones are not known."""
    missing_parts: Part = field(default_factory=dict)
    """The rounds that were selected, for missing attempts of which that is not all."""
    beside: tuple[StoredAttempt, ...] = ()
    """Partial attempts that do not count, because there is one with the same number of which nothing was left out."""
    label: str = ""
    """What tables call the agent; see :func:`~pytest_evocode.results.identity.subject_labels`."""
    subject: Subject = UNKNOWN
    """Who made the attempts, under which conditions."""
    version: int = 0
    """0 where tasks have the newest contents that the subject was run at, 1 for the ones before, and so on."""
    contents: Mapping[str, str] = field(default_factory=dict)
    """The hash of each task's contents, empty where it is not known; without tasks whose attempts are at several."""
    suites: Mapping[str, SuiteFacts] = field(default_factory=dict)
    """What the suites of each task gave in any attempt at the same contents, whoever made it."""
    changed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of tasks that the subject was run at several contents of: how many attempts there are at each, newest first."""

    @property
    def name(self) -> str:
        """The label, older contents of tasks, and the mode where that is not a whole chain.

        >>> ScoreRow("gpt", "fail-stop", "round-3", (), (), {}).name
        'gpt (fail-stop, from round-3)'
        """
        return scored_name(self.group, self.mode, self.from_round)

    @property
    def group(self) -> str:
        """The label and older contents of tasks, whatever the mode."""
        return " ".join([self.label or self.agent, *([contents_label(self.contents)] if self.version else [])])

    @cached_property
    def records(self) -> tuple[RoundRecord, ...]:
        """The records of all attempts, with one that stands in for each attempt that left none.

        Attempts at single rounds may have one number; of a round that several of them made, the newest record counts.
        """
        newest: dict[tuple[str, int, int], RoundRecord] = {}
        for attempt in sorted(self.attempts, key=when):
            for record in attempt.record.rounds:
                newest[record.task, record.attempt, record.index] = record
        left_none = {(attempt.record.task, attempt.record.attempt) for attempt in self.attempts}
        left_none -= {(task, number) for task, number, _ in newest}
        stand_ins = (self._stand_in(task, number) for task, number in sorted({*left_none, *self.missing}))
        return (*(newest[key] for key in sorted(newest)), *stand_ins)

    @cached_property
    def grid(self) -> Grid:
        """The grid of the records, without the rounds before the one that the chains begin with."""
        begin = {task: self._begin(task) for task in self._tasks()} if self.from_round else {}
        return Grid.of(self.records, begin=begin, partial=self._parts(), suites=self.suites)

    def without_tasks(self, tasks: Collection[str]) -> ScoreRow:
        """Return the same row without some tasks; their contents stay known."""
        return replace(
            self,
            attempts=tuple(each for each in self.attempts if each.record.task not in tasks),
            missing=tuple(each for each in self.missing if each[0] not in tasks),
            beside=tuple(each for each in self.beside if each.record.task not in tasks),
        )

    def _parts(self) -> Part:
        parts: dict[tuple[str, int], set[int]] = defaultdict(set)
        for attempt in self.attempts:
            parts[attempt.record.task, attempt.record.attempt].update(attempt.selected)
        whole = {(each.record.task, each.record.attempt) for each in self.attempts if not each.partial}
        return {**self.missing_parts, **{key: part for key, part in parts.items() if key not in whole}}

    @property
    def partial(self) -> list[StoredAttempt]:
        """The attempts that count of which not all rounds were selected."""
        return [each for each in self.attempts if each.is_part]

    @property
    def waiting(self) -> list[StoredAttempt]:
        """The attempts that wait for a later session; their rounds so far count."""
        return [each for each in self.attempts if each.waiting]

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The tasks of missing attempts of which nothing tells how many rounds they have; they count as one."""
        return tuple(sorted({task for task, _ in self.missing if task not in self.declared}))

    @property
    def is_control(self) -> bool:
        """Whether the agent is there to tell what others' scores mean, and is ranked with none."""
        return self.subject.agent.is_control

    @property
    def deterministic(self) -> bool:
        """Whether the agent does the same in every attempt."""
        return bool(self.attempts) and all(each.record.deterministic for each in self.attempts)

    @property
    def flaky(self) -> list[FlakyRound]:
        """The rounds whose verdict differs although nothing else does, such as the contents of their task."""
        versions: dict[str, set[str]] = defaultdict(set)
        for each in self.attempts:
            versions[each.record.task].add(each.record.task_hash)
        found = flaky_rounds(self.grid.records(), {self.agent} if self.deterministic else ())
        return [each for each in found if each.attempt is not None or len(versions[each.task]) == 1]

    @property
    def strategies(self) -> dict[str, RewardStrategy]:
        """The ``multi_step_reward_strategy`` of each task."""
        return {task: facts.reward_strategy for task, facts in self.facts.items()}

    def _tasks(self) -> set[str]:
        return {attempt.record.task for attempt in self.attempts} | {task for task, _ in self.missing}

    def _begin(self, task: str) -> int:
        start = self.from_round or ""
        if (begin := first_played(start, self.declared.get(task, ()))) is not None:
            return begin
        of_task = (record for record in self.records if record.task == task)
        return min((record.index for record in of_task if is_fork(start) or record.round == start), default=1)

    def _stand_in(self, task: str, number: int) -> RoundRecord:
        """Return the record that counts for an attempt that left nothing."""
        declared = max(len(self.declared.get(task, ("",))), *self.missing_parts.get((task, number), (1,)))
        return RoundRecord(
            task=task,
            agent=self.agent,
            attempt=number,
            round="",
            index=declared,
            declared_rounds=declared,
            outcome="not reached",
            cause="nothing was recorded of this attempt",
        )


def differing_contents(first: ScoreRow, second: ScoreRow) -> list[str]:
    """Return the tasks whose contents are known to differ between two rows, in order."""
    both = sorted(first.contents.keys() & second.contents.keys())
    return [task for task in both if are_different(first.contents[task], second.contents[task])]


@dataclass(frozen=True, slots=True)
class ApartAttempt:
    """An attempt that no score counts."""

    task: str
    agent: str
    attempt: int
    run: str
    state: Unscored
    why: str
    """The reason, in one line."""
    usage: Usage | None = None
    """What it used; None where no model was used, or nothing is known."""
    stored: StoredAttempt | None = None
    """What there is of it; None where nothing is, and in a session."""


def apart_in(records: Iterable[RoundRecord]) -> list[ApartAttempt]:
    """Return the attempts of a session that no score counts; what went wrong its report has said at length."""
    attempts: dict[tuple[str, str, int], list[RoundRecord]] = defaultdict(list)
    for record in records:
        attempts[record.task, record.agent, record.attempt].append(record)
    return [
        ApartAttempt(
            *key,
            "",
            state,
            _IN_ITS_ERROR if rounds[0].outcome == "error" and state == "never started" else _why_apart(state, rounds),
            total_usage(each.usage for each in rounds),
        )
        for key, rounds in attempts.items()
        if (state := next((each.unscored for each in rounds if each.unscored is not None), None)) is not None
    ]


_IN_ITS_ERROR = "what its error says came before the agent's first turn"


def _why_apart(state: Unscored, rounds: Sequence[RoundRecord], of: int | None = None) -> str:
    if state == "never started":
        return next((each.cause for each in rounds if each.cause), "").partition("\n")[0]
    done = sum(each.outcome != "not reached" for each in rounds)
    declared = rounds[0].declared_rounds if of is None else of
    return f"{done} of {declared} round{'' if declared == 1 else 's'} judged"


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """All rows for some directories, ordered by agent and mode."""

    rows: tuple[ScoreRow, ...]
    facts: Mapping[str, TaskFacts]
    superseded: int
    """How many attempts do not count because a newer one has the same number; without those that are beside."""
    any_version: bool = False
    """Whether attempts at different contents of a task are in one row."""
    apart: tuple[ApartAttempt, ...] = ()
    """The attempts that never started or were interrupted, by task, agent and number; no row has them."""
    excluded: tuple[str, ...] = ()
    """The runs that do not count because their records say so."""
    # What takes a second of 10,000 rounds, and is asked for several times. With the row, lest another gets its id().
    _scores: dict[int, tuple[ScoreRow, Scores]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _intervals: dict[int, tuple[ScoreRow, dict[str, Interval | str]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def single_rounds(self, row: ScoreRow) -> ScoreRow | None:
        """Return the row with the single rounds of the agent whose chains ``row`` has; None where there is none."""
        if row.mode == "single-round" or row.from_round is not None:
            return None
        single = (each for each in self.rows if each.subject == row.subject and each.mode == "single-round")
        return next((each for each in single if not differing_contents(row, each)), None)

    def grids(self, row: ScoreRow) -> tuple[Grid, Grid]:
        """Return the grid of a row's chains, and that of the single rounds of the same agent; either may be empty."""
        if row.mode == "single-round":
            return Grid(()), row.grid
        single = self.single_rounds(row)
        return row.grid, single.grid if single else Grid(())

    def over_attempts(self, row: ScoreRow) -> dict[Headline, OverAttempts]:
        """Return the headline scores of a row over its attempts; empty where it has one at each task."""
        return over_attempts(row.grid, single_round=row.mode == "single-round")

    def scores(self, row: ScoreRow) -> Scores:
        """Return all scores of a row; SR and Gap come from the single rounds of the same agent."""
        if id(row) not in self._scores:
            self._scores[id(row)] = row, scores(*self.grids(row), row.strategies)
        return self._scores[id(row)][1]

    def faults(self, row: ScoreRow) -> Faults | None:
        """Return what infrastructure errors did to a row's scores; None where there is no such error."""
        return faults(*self.grids(row))

    def intervals(self, row: ScoreRow) -> dict[str, Interval | None]:
        """Return the intervals of a row's scores, by the names of the scores."""
        found = self.intervals_or_reasons(row)
        return {name: each if isinstance(each, Interval) else None for name, each in found.items()}

    def intervals_or_reasons(self, row: ScoreRow) -> dict[str, Interval | str]:
        """Return the same with the reason where there is no interval."""
        if id(row) not in self._intervals:
            self._intervals[id(row)] = row, intervals_or_reasons(*self.grids(row), row.strategies)
        return dict(self._intervals[id(row)][1])


def score_table(
    results: Results,
    *,
    only: Collection[str] | None = None,
    all_runs: bool = False,
    any_version: bool = False,
    tasks: Mapping[str, TaskFacts] | None = None,
) -> ScoreTable:
    """Return the table of what was loaded.

    Args:
        results: The attempts and runs.
        only: The names of the only sessions or jobs that count; None counts all.
        all_runs: Whether attempts of the same number at the same task all count, under new numbers. Otherwise the
            newest does. In both cases one that only a part of the rounds was selected for counts only where there is no
            other.
        any_version: Whether attempts at different contents of a task are in one row.
        tasks: The facts about the tasks that count, by name, whether there are results or not. None counts those that
            have results or were selected.
    """
    found, runs, excluded = _counting(results, only, tasks)
    records = [stored.record for stored in runs]
    facts = known_facts(found, records) | dict(tasks or {})
    declared = known_rounds(results.attempts, facts)
    every = found
    found, runs, apart = _set_apart(found, runs, tasks)
    grouping = Grouping(found, runs, any_version=any_version)
    suites = _suites(every, grouping)
    places: dict[Place, list[StoredAttempt]] = defaultdict(list)
    for attempt in found:
        places[grouping.place(attempt)].append(attempt)
    if not all_runs:
        count_what_was_selected(runs, places, grouping)
    missing = missing_attempts(runs, places, grouping, all_runs=all_runs, tasks=tasks)
    labels = subject_labels(place.subject for place in {*places, *missing})
    rows = [
        _row(place, places[place], missing[place], facts, declared, all_runs, grouping, labels[place.subject], records)
        for place in {*places, *missing}
    ]
    rows = [replace(row, suites=_known_of(row, suites, grouping)) for row in rows]
    rows.sort(key=lambda row: (row.subject.agent.name, row.label, row.mode, row.from_round or "", row.version))
    superseded = len(found) - sum(len(row.attempts) + len(row.beside) for row in rows)
    return ScoreTable(tuple(rows), facts, superseded, any_version, apart, excluded)


def _counting(
    results: Results, only: Collection[str] | None, tasks: Collection[str] | None
) -> tuple[list[StoredAttempt], list[StoredRun], tuple[str, ...]]:
    """Return the attempts in the order of time, the runs, and the names of those left out that are excluded."""
    # One that is named counts.
    excluded = {session_of_run(each) for each in results.runs if each.record.excluded} if only is None else set()
    found = [
        attempt
        for attempt in sorted(results.attempts, key=when)
        if (only is None or attempt.run in only)
        and (tasks is None or attempt.record.task in tasks)
        and not (excluded and session_of(attempt) in excluded)
    ]
    runs = [
        stored
        for stored in results.runs
        if (only is None or stored.record.run in only) and session_of_run(stored) not in excluded
    ]
    return found, runs, tuple(sorted({name for _, name in excluded}))


def _set_apart(
    attempts: Sequence[StoredAttempt], runs: Sequence[StoredRun], tasks: Collection[str] | None
) -> tuple[list[StoredAttempt], list[StoredRun], tuple[ApartAttempt, ...]]:
    """Return the attempts that scores count, the runs as if they had selected no others, and those others.

    What a run that broke off has selected and not begun never started. Where it is a shard that is not known: the
    others of its selection are for other shards to make. One that another shard has unfinished is not missing here.
    """
    made: dict[tuple[str, str, str, int], list[StoredAttempt]] = defaultdict(list)
    for each in attempts:
        made[each.run, each.record.task, each.record.agent, each.record.attempt].append(each)
    apart = [_apart(each, state) for each in attempts if (state := each.unscored) is not None]
    shards = {stored.record.run: stored.record.shard[1] for stored in runs if stored.record.shard is not None}
    unfinished = {(shards[each.run], each.task, each.agent, each.attempt) for each in apart if each.run in shards}
    kept = []
    for stored in runs:
        run = stored.record
        never_begun = run.broke_off and run.shard is None and not run.waiting
        left: dict[str, dict[str, tuple[int, ...]]] = {}
        for task, agents in run.selected.items():
            left[task] = {}
            for agent, numbers in agents.items():
                counting = []
                for number in numbers:
                    of_number = made.get((run.run, task, agent, number), [])
                    elsewhere = (shards.get(run.run), task, agent, number) in unfinished and not of_number
                    if any(each.unscored is None for each in of_number) or not (of_number or never_begun or elsewhere):
                        counting.append(number)
                    elif not (of_number or elsewhere) and (tasks is None or task in tasks):
                        apart.append(ApartAttempt(task, agent, number, run.run, "never started", _NOT_BEGUN))
                left[task][agent] = tuple(counting)
        kept.append(replace(stored, record=run.model_copy(update={"selected": left})))
    apart.sort(key=lambda each: (each.task, each.agent, each.attempt, each.run))
    return [each for each in attempts if each.unscored is None], kept, tuple(apart)


_NOT_BEGUN = "its session was stopped before it, or is under way"


def _apart(attempt: StoredAttempt, state: Unscored) -> ApartAttempt:
    record = attempt.record
    why = _why_apart(state, record.rounds, len(record.declared_rounds))
    return ApartAttempt(record.task, record.agent, record.attempt, attempt.run, state, why, attempt.usage, attempt)


def _row(
    place: Place,
    attempts: Sequence[StoredAttempt],
    missing: Mapping[Missing, tuple[int, ...] | None],
    facts: Mapping[str, TaskFacts],
    declared: Mapping[str, tuple[str, ...]],
    all_runs: bool,
    grouping: Grouping,
    label: str,
    runs: Iterable[RunRecord],
) -> ScoreRow:
    counting, beside = counting_attempts(attempts, all_runs)
    used = {(attempt.record.task, attempt.record.attempt) for attempt in counting}
    free: dict[tuple[str, int], tuple[int, ...] | None] = {}
    for (_, task, number), part in sorted(missing.items(), key=lambda each: (each[0][0] or "", each[0][1:])):
        while (task, number) in used:
            number += 1
        used.add((task, number))
        free[task, number] = part
    counting.sort(key=lambda each: (each.record.task, each.record.attempt, str(each.path)))
    agent, contents = grouping.agent_name(place.subject), grouping.contents(place, {task for task, _ in used})
    # Elsewhere facts are those of the newest contents.
    older = {task for task, digest in contents.items() if digest != grouping.newest_contents(task)}
    own = known_facts([each for each in counting if each.record.task in older], runs, {t: contents[t] for t in older})
    return ScoreRow(
        agent,
        place.mode,
        place.from_round,
        tuple(replace(each, record=called(each.record, agent=agent)) for each in counting),
        tuple(sorted(free)),
        {**facts, **own},
        {**declared, **{task: known.rounds for task, known in own.items()}},
        {key: part for key, part in free.items() if part is not None},
        tuple(beside),
        label,
        place.subject,
        place.version,
        contents,
        changed=grouping.changed(place),
    )


def _suites(attempts: Iterable[StoredAttempt], grouping: Grouping) -> dict[tuple[str, str], SuiteFacts]:
    """Return what suites gave, by task and the hash of its contents."""
    found: dict[tuple[str, str], list[RoundRecord]] = defaultdict(list)
    for each in attempts:
        found[each.record.task, grouping.contents_of(each)] += each.record.rounds
    return {key: facts_of(records) for key, records in found.items()}


def _known_of(row: ScoreRow, suites: Mapping[tuple[str, str], SuiteFacts], grouping: Grouping) -> dict[str, SuiteFacts]:
    """Return what suites gave, by task, at the contents that the attempts of a row were made at."""
    found: dict[str, SuiteFacts] = {}
    for task, contents in {(each.record.task, grouping.contents_of(each)) for each in row.attempts}:
        found[task] = found.get(task, NOTHING_KNOWN).merged(suites[task, contents])
    return found
