"""What kind of failure a failing case is, decided case by case from the earlier rounds of its attempt; and a round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_evocode.results.records import Case, FailureKind, RoundRecord

RoundFailure = Literal["cases", "build", "timeout", "agent error", "infrastructure", "other"]


def judge_cases(cases: Iterable[Case], earlier: Sequence[RoundRecord], held: Collection[str] = ()) -> tuple[Case, ...]:
    """The cases with ``failure`` filled in for those that fail.

    ``earlier`` are the records of the rounds before, in order. A case that passed when it was last run is a
    *regression*, and so is one that a round required, by the case's own word, that is among those that ``held`` when
    the first began. One that did not pass is *carried*, and so is one that an earlier round required whose suite gave
    no verdict. All others are *new misses*, but for those that their suite found *stale*. A case without an id cannot
    be followed.

    >>> from pytest_evocode.results.records import Verdict
    >>> before = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=2, outcome="failed",
    ...     verdict=Verdict(reward=0, rewards={}, cases=(Case(id="x", status="passed"), Case(id="y", status="failed"))))
    >>> now = [Case(id="x", status="failed"), Case(id="y", status="failed"), Case(id="z", status="error")]
    >>> [case.failure for case in judge_cases(now, [before])]
    ['regression', 'carried', 'new miss']
    """
    history = _History(held)
    for record in earlier:
        history.add(record)
    return history.judge(cases)


class _History:
    """How the cases of an attempt's rounds went so far."""

    def __init__(self, held: Collection[str] = ()) -> None:
        self._held = held
        self._passed: dict[str, bool] = {}
        self._rounds: set[str] = set()

    def add(self, record: RoundRecord) -> None:
        """The next round."""
        self._rounds.add(record.round)
        for case in record.verdict.cases if record.verdict else ():
            if not case.id:
                continue
            if case.status == "skipped":
                self._passed.setdefault(case.id, False)  # Skipped ones count as not passed in the Case Score too.
            else:
                self._passed[case.id] = case.status == "passed"

    def judge(self, cases: Iterable[Case]) -> tuple[Case, ...]:
        """See :func:`judge_cases`."""
        return tuple(
            case.model_copy(update={"failure": self.kind(case)}) if case.failing and case.failure is None else case
            for case in cases
        )

    def kind(self, case: Case) -> FailureKind:
        """Of a failing case."""
        if case.failure is not None:
            return case.failure
        if case.id in self._passed:
            return "regression" if self._passed[case.id] else "carried"
        if case.origin in self._held:
            return "regression"
        return "carried" if case.origin in self._rounds else "new miss"


def judge_attempts(records: Iterable[RoundRecord]) -> list[RoundRecord]:
    """The records, by attempt and in order, with the kinds of failing cases filled in where a record has none.

    Ours have them; those that another harness wrote do not.
    """
    return [_judged(record, history) for record, history in _with_history(records)]


def failing_cases(records: Iterable[RoundRecord]) -> Iterator[tuple[RoundRecord, Case, FailureKind]]:
    """Every failing case with its round and its kind, by attempt and in order; faster than to judge them all."""
    for record, history in _with_history(records):
        for case in record.verdict.cases if record.verdict else ():
            if case.failing:
                yield record, case, history.kind(case)


def _with_history(records: Iterable[RoundRecord]) -> Iterator[tuple[RoundRecord, _History]]:
    """The records by attempt and in order, each with the history of the rounds before it."""
    attempts: dict[tuple[str, str, int], list[RoundRecord]] = defaultdict(list)
    for record in records:
        attempts[record.agent, record.task, record.attempt].append(record)
    for key in sorted(attempts):
        history = _History()
        for record in sorted(attempts[key], key=lambda record: record.index):
            yield record, history
            history.add(record)


def _judged(record: RoundRecord, history: _History) -> RoundRecord:
    verdict = record.verdict
    if verdict is None or all(case.failure is not None for case in verdict.cases if case.failing):
        return record
    return record.model_copy(update={"verdict": verdict.model_copy(update={"cases": history.judge(verdict.cases)})})


def round_failure(record: RoundRecord) -> RoundFailure | None:
    """Why a round that was begun did not pass; None for one that did, and for one that was not reached.

    An *agent error* and an *infrastructure* fault leave no verdict that counts, and an error of unknown origin is taken
    for the latter. A *timeout* of the agent or the suite comes before what the cases say. With *build* not one case
    ran, with *cases* some failed. *Other* is a round that failed with all its cases passed: by a reward that
    contradicts them, or in a strict session.

    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=2, outcome="failed")
    >>> round_failure(record), round_failure(record.model_copy(update={"timed_out": "agent"}))
    ('build', 'timeout')
    """
    if record.outcome in ("passed", "not reached"):
        return None
    if record.outcome == "error" and (record.fault is not None or record.timed_out is None):
        return "agent error" if record.fault == "agent" else "infrastructure"
    if record.timed_out is not None:
        return "timeout"
    passed, total = record.case_counts
    cases = record.verdict.cases if record.verdict else ()
    if not total or (cases and all(case.status == "skipped" for case in cases)):
        return "build"
    return "cases" if passed < total else "other"


@dataclass(frozen=True, slots=True)
class FailureKinds:
    """How often what went wrong; every kind is there, with 0 where it was never met."""

    cases: dict[FailureKind, int]
    rounds: dict[RoundFailure, int]
    not_reached: int


def failure_kinds(records: Iterable[RoundRecord]) -> FailureKinds:
    """Count the kinds of all failing cases and of all failed rounds, of any agents and tasks.

    >>> from pytest_evocode.results.records import Verdict
    >>> def record(index, status):
    ...     verdict = Verdict(reward=0, rewards={}, cases=(Case(id="x", status=status),))
    ...     return RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=2,
    ...         outcome=status, verdict=verdict)
    >>> found = failure_kinds([record(2, "failed"), record(1, "passed")])
    >>> found.cases["regression"], found.rounds["cases"]
    (1, 1)
    """
    records = list(records)
    cases = Counter(kind for _, _, kind in failing_cases(records))
    rounds = Counter(map(round_failure, records))
    return FailureKinds(
        cases={kind: cases[kind] for kind in get_args(FailureKind)},
        rounds={kind: rounds[kind] for kind in get_args(RoundFailure)},
        not_reached=sum(record.outcome == "not reached" for record in records),
    )
