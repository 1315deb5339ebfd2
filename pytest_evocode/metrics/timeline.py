"""What a run waited for, from its first moment to its last: attempts, turns and suites on one clock.

Records say when the turn and the suite of each round began, and how long each of their phases took. The critical path
is found backwards from the end: each thing began when the last of what it had to wait for was over.
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Literal, TypeVar

from pytest_evocode.metrics.grouping import session_of, session_of_run
from pytest_evocode.names import attempt_name
from pytest_evocode.results.loading import Results, StoredAttempt
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import RoundRecord, RunRecord

Stage = Literal[
    "session", "start",
    "setup", "agent", "snapshot", "bookkeeping",
    "waiting", "fork", "suite", "reading",
    "end", "other",
]  # fmt: skip
"""What is done in a piece of a critical path: phases of rounds, of which ``waiting`` is there as far as no suite of the
run had the slots; ``start`` and ``end`` are what an attempt does before its first turn and after its last suite,
``session`` what is before, between and after attempts, and ``other`` what no record tells.
"""
_OF_TURN: tuple[Stage, ...] = ("setup", "agent", "snapshot", "bookkeeping")
_AT_ONCE = 0.05
"""Seconds up to which one thing begins when another is over: slots are looked for in intervals, moments rounded."""
_IN_ALL = 0.05
"""The share of a slot that rounding may bring."""
_NEXT_ATTEMPT = 1.0
"""Seconds up to which an attempt begins because something of one is over whose last suites still run."""
_MOST_SLOTS = 4096
"""More than a suite can hold, so that damaged numbers do not fill the memory."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of time, in seconds since 1970."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.begin

    def within(self, begin: float, end: float) -> float:
        """Return how many of its seconds lie between two moments.

        >>> Stretch(2.0, 5.0).within(4.0, 9.0), Stretch(2.0, 5.0).within(6.0, 9.0)
        (1.0, 0.0)
        """
        return max(0.0, min(self.end, end) - max(self.begin, begin))


@dataclass(frozen=True, slots=True)
class Work:
    """The turn of a round, or its suite."""

    attempt: str
    round: str
    span: Stretch
    phases: Phases
    held: Stretch | None = None
    """When a suite held its slots; None of a turn."""
    slots: int = 0
    """How many it held."""


@dataclass(frozen=True, slots=True)
class AttemptTime:
    """The time of one attempt."""

    name: str
    """Its task and its agent, with a number from the second attempt on."""
    span: Stretch
    turns: tuple[Work, ...]
    """Those whose records tell when they began, in order."""
    suites: tuple[Work, ...]
    has_ended: bool = True
    """Whether its record tells when it ended; one that was killed may have gone on after what its rounds tell."""

    @property
    def works(self) -> tuple[Work, ...]:
        """Its turns and its suites."""
        return (*self.turns, *self.suites)

    @property
    def turns_over(self) -> float:
        """When the last turn was over that is known."""
        return max((each.span.end for each in self.turns), default=self.span.begin)


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of a critical path."""

    stage: Stage
    span: Stretch
    attempt: str = ""
    round: str = ""


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """The time of one run."""

    run: str
    span: Stretch
    attempts: tuple[AttemptTime, ...]
    """In the order in which they began."""
    path: tuple[Link, ...]
    """The critical path, from the run's first moment to its last without a gap."""
    slots: tuple[tuple[Stretch, ...], ...]
    """When each slot was held, of as few slots as the records allow."""
    untold: int
    """Rounds whose records do not tell when they began."""

    @property
    def seconds_by_stage(self) -> dict[Stage, float]:
        """The seconds of the critical path by stage, the most first."""
        sums: dict[Stage, float] = {}
        for link in self.path:
            sums[link.stage] = sums.get(link.stage, 0.0) + link.span.seconds
        return dict(sorted(sums.items(), key=lambda each: -each[1]))


def timelines(results: Results, only: Collection[str] | None = None) -> list[RunTimeline]:
    """Return the time of each run that tells it, the newest first; ``only`` has the names of those wanted."""
    made: dict[tuple[str, str], list[StoredAttempt]] = {}
    for attempt in results.attempts:
        made.setdefault(session_of(attempt), []).append(attempt)
    records = {session_of_run(run): run.record for run in results.runs}
    wanted = (session for session in made if only is None or session[1] in only)
    found = (timeline(session[1], made[session], records.get(session)) for session in wanted)
    return sorted((each for each in found if each.attempts), key=lambda each: each.span.begin, reverse=True)


def timeline(run: str, attempts: Sequence[StoredAttempt], record: RunRecord | None = None) -> RunTimeline:
    """Return the time of a run with the attempts that it made, of which there are some; it may have no record.

    A suite that was run again after its attempt had ended, as by ``evocode regrade``, is left out.
    """
    known = (time for each in attempts if (time := _time_of(each)) is not None)
    found = sorted(known, key=lambda each: (each.span.begin, each.name))
    began, over = (_moment(record.started), _moment(record.finished)) if record is not None else (None, None)
    own = [moment for moment in (began, over) if moment is not None]
    ends = [moment for each in found for moment in (each.span.begin, each.span.end)]
    span = Stretch(min([*own, *ends], default=0.0), max([*own, *ends], default=0.0))
    played = sum(record.outcome != "not reached" for each in attempts for record in each.record.rounds)
    told = sum(len({work.round for work in each.works}) for each in found)
    path = tuple(reversed([*_linked(span, found)]))
    return RunTimeline(run, span, tuple(found), path, _slots(found), max(0, played - told))


def attempt_label(attempt: StoredAttempt) -> str:
    """Return what a timeline calls an attempt."""
    return f"{attempt.record.task} {attempt_name(attempt.record.agent, attempt.record.attempt)}"


def _moment(text: str | None) -> float | None:
    """Return a moment of a record in seconds since 1970; None where it has none."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).timestamp() if text else None
    return None


def _time_of(attempt: StoredAttempt) -> AttemptTime | None:
    """Return the time of an attempt; of one that was killed as far as its rounds tell, None where they do not."""
    record = attempt.record
    name = attempt_label(attempt)
    turns = tuple(turn for each in record.rounds if (turn := _turn(name, each)))
    suites = tuple(suite for each in record.rounds if (suite := _suite(name, each)))
    begin, end = _moment(record.started), _moment(record.finished)
    if end is not None:
        suites = tuple(each for each in suites if each.span.begin <= end)
    if not (works := (*turns, *suites)):
        return None
    # What was killed and resumed was started, by its record, when it was resumed.
    begin = min([each.span.begin for each in works] + ([begin] if begin is not None else []))
    span = Stretch(begin, max(begin, max(map(_end, works)) if end is None else end))
    return AttemptTime(name, span, turns, suites, has_ended=end is not None)


def _turn(attempt: str, record: RoundRecord) -> Work | None:
    if (phases := record.phases) is None or (begin := phases.turn_began) is None:
        return None
    seconds = sum(phases.known.get(name, 0.0) for name in _OF_TURN)
    return Work(attempt, record.round, Stretch(begin, begin + seconds), phases)


def _suite(attempt: str, record: RoundRecord) -> Work | None:
    if (phases := record.phases) is None or (begin := phases.suite_began) is None:
        return None
    working = (phases.fork or 0.0) + (phases.suite or 0.0) + (phases.reading or 0.0)
    end = begin + (phases.waiting or 0.0) + working
    slot_seconds = phases.slot_seconds or 0.0
    # A part of the fork may be made before the slots are taken.
    slots = max(1, math.ceil(min(slot_seconds / working, _MOST_SLOTS) - _IN_ALL)) if working else 1
    held = Stretch(max(begin, end - slot_seconds / slots), end)
    return Work(attempt, record.round, Stretch(begin, end), phases, held, slots)


def _slots(attempts: Iterable[AttemptTime]) -> tuple[tuple[Stretch, ...], ...]:
    """Give each suite the first slots that are free when it takes its own."""
    held = [(suite.held, suite.slots) for each in attempts for suite in each.suites if suite.held]
    lanes: list[list[Stretch]] = []
    for span, slots in sorted(held, key=lambda each: each[0].begin):
        free = [lane for lane in lanes if lane[-1].end <= span.begin + _AT_ONCE]
        new: list[list[Stretch]] = [[] for _ in range(slots - len(free))]
        lanes += new
        for lane in [*free, *new][:slots]:
            lane.append(span)
    return tuple(map(tuple, lanes))


def _linked(span: Stretch, attempts: Sequence[AttemptTime]) -> Iterator[Link]:
    """Yield the critical path from its end, each piece with the end at which the one behind it begins."""
    moment = span.end
    for stage, begin, work in _backwards(span, attempts):
        if (begin := max(begin, span.begin)) < moment:
            attempt, round_ = (work.attempt, work.round) if isinstance(work, Work) else (work.name if work else "", "")
            yield Link(stage, Stretch(begin, moment), attempt, round_)
            moment = begin


def _backwards(
    span: Stretch, attempts: Sequence[AttemptTime]
) -> Iterator[tuple[Stage, float, Work | AttemptTime | None]]:
    """Yield what was done in each piece of the critical path, when that began, and what it was done for."""
    by_name = {each.name: each for each in attempts}
    by_end = sorted((suite for each in attempts for suite in each.suites), key=_end)
    ended = sorted(attempts, key=_end)
    works = sorted((work for each in attempts for work in each.works), key=_end)
    came_to: Work | AttemptTime | None = max(attempts, key=_end, default=None)
    left = dict(by_name)
    if came_to is not None and not all(each.has_ended for each in attempts):
        yield "other", came_to.span.end, None
    while came_to is not None:
        yield "session", came_to.span.end, None
        work = latest = came_to if isinstance(came_to, Work) else max(came_to.works, key=_end)
        attempt = by_name[work.attempt]
        yield "end", work.span.end, attempt
        cause: Work | None = work
        while cause is not None:
            work, attempt = cause, by_name[cause.attempt]
            begin, cause = _cause(work, attempt, by_end)
            yield from ((each, max(begin, since), work) for each, since in _stages_of(work))
            if cause is not None:
                yield "waiting" if work.held and cause.held else "other", cause.span.end, work
        yield "start", attempt.span.begin, attempt
        for name in (latest.attempt, attempt.name):  # Clocks are set back at times: nothing is come to twice.
            left.pop(name, None)
        came_to = _made_room(attempt, ended, works, left)
    yield "session", span.begin, None


def _stages_of(work: Work) -> Iterator[tuple[Stage, float]]:
    """Yield the stages of a turn or a suite, the last first, each with the moment when it began."""
    last: tuple[Stage, ...] = ("reading", "suite", "fork") if work.held else _OF_TURN[:0:-1]
    moment = work.span.end
    for stage in last:
        moment -= work.phases.known.get(stage, 0.0)
        yield stage, moment
    yield "waiting" if work.held else "setup", work.span.begin


def _cause(work: Work, own: AttemptTime, by_end: Sequence[Work]) -> tuple[float, Work | None]:
    """Return when a turn or a suite could go on, and what it had waited for, which ended before it did.

    None is the beginning of its attempt. ``by_end`` has all suites in the order of their ends.
    """
    begin, found = work.span.begin, None
    if work.held is None:
        turns = (each for each in own.turns if each.span.begin < begin and _end(each) <= begin + _AT_ONCE)
        found = max(turns, key=_end, default=None)
        if found is None or begin - _end(found) > _AT_ONCE:
            # It waited for a verdict, as in fail-stop mode.
            verdicts = (each for each in own.suites if _end(each) <= begin + _AT_ONCE)
            found = max(verdicts, key=_end, default=found)
    elif (work.phases.waiting or 0.0) > _AT_ONCE:
        latest = bisect_right(by_end, work.held.begin + _AT_ONCE, key=_end)
        if latest and begin < _end(by_end[latest - 1]) < _end(work):
            return work.held.begin, by_end[latest - 1]
    if work.held is not None:
        found = next((each for each in own.turns if each.round == work.round), None)
    return begin, found if found is not None and _end(found) < _end(work) else None


_Timed = TypeVar("_Timed", Work, AttemptTime)


def _end(found: Work | AttemptTime) -> float:
    return found.span.end


def _made_room(
    attempt: AttemptTime, ended: Sequence[AttemptTime], works: Sequence[Work], left: Mapping[str, AttemptTime]
) -> Work | AttemptTime | None:
    """Return the attempt whose end another one waited for; where it began beside last suites, what was over before it.

    ``ended`` and ``works`` are in the order of their ends; only attempts that are ``left`` come into question.
    """
    begin = attempt.span.begin

    def is_earlier(name: str) -> bool:
        return name in left and left[name].span.begin < begin

    last = next((each for each in _latest_first(ended, begin) if is_earlier(each.name)), None)
    just = takewhile(lambda work: begin - _end(work) <= _NEXT_ATTEMPT, _latest_first(works, begin))
    own = (work for work in just if is_earlier(work.attempt) and left[work.attempt].turns_over <= begin + _AT_ONCE)
    return max((each for each in (last, next(own, None)) if each is not None), key=_end, default=None)


def _latest_first(by_end: Sequence[_Timed], moment: float) -> Iterator[_Timed]:
    """Yield what had ended by a moment."""
    return (by_end[place] for place in range(bisect_right(by_end, moment, key=_end) - 1, -1, -1))
