"""Kinds of failures, of cases (by earlier rounds of their attempt) and of rounds; worst requirements, and refusals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_evocode.metrics.grid import Grid, Rounds, by_agent, suite_facts
from pytest_evocode.metrics.task_values import has_cases
from pytest_evocode.results.records import Case, FailureKind, RoundRecord

RoundFailure = Literal["cases", "reward", "build", "timeout", "agent error", "infrastructure", "other"]


def judge_cases(cases: Iterable[Case], earlier: Sequence[RoundRecord], held: Collection[str] = ()) -> tuple[Case, ...]:
    """Return the cases with ``failure`` filled in for those that fail.

    A failing case is a *regression* where it passed in an earlier round, or where it names as its origin a round in
    ``held``. It is *carried* where an earlier round required it, too, and it never passed. It stays *stale* where its
    suite found so, and is a *new miss* otherwise. A case without an id cannot be followed through the rounds.

    Args:
        cases: The cases of one round.
        earlier: The records of the rounds before it, in order.
        held: The rounds whose requirements were met when the attempt's first round began.

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
    return tuple(
        case.model_copy(update={"failure": history.kind(case)}) if case.failing and case.failure is None else case
        for case in cases
    )


class _History:
    """Which cases passed in any round of an attempt so far, and which did not."""

    def __init__(self, held: Collection[str] = ()) -> None:
        self._held = held
        self._passed: dict[str, bool] = {}
        self._rounds: set[str] = set()

    def add(self, record: RoundRecord) -> None:
        """Add the next round."""
        self._rounds.add(record.round)
        for case in record.verdict.cases if record.verdict else ():
            if not case.id:
                continue
            if case.status == "skipped":
                self._passed.setdefault(case.id, False)  # A skipped case counts as not passed, as in the Case Score.
            else:
                self._passed[case.id] = self._passed.get(case.id, False) or case.status == "passed"

    def kind(self, case: Case) -> FailureKind:
        """Return the kind of a failing case."""
        if case.failure is not None:
            return case.failure
        if case.id in self._passed:
            return "regression" if self._passed[case.id] else "carried"
        if case.origin in self._held:
            return "regression"
        return "carried" if case.origin in self._rounds else "new miss"


def failing_cases(records: Iterable[RoundRecord]) -> Iterator[tuple[RoundRecord, Case, FailureKind]]:
    """Yield each failing case with its round and its kind, by attempt and in order.

    Our own records have the kinds; those that another harness wrote have not.
    """
    for of_attempt in _by_attempt(records):
        history, added = _History(), 0
        for number, record in enumerate(of_attempt):
            for case in record.verdict.cases if record.verdict else ():
                if case.status == "passed" or not case.failing:
                    continue
                if case.failure is None:
                    for earlier in of_attempt[added:number]:
                        history.add(earlier)
                    added = number
                yield record, case, history.kind(case)


def _by_attempt(records: Iterable[RoundRecord]) -> Iterator[list[RoundRecord]]:
    """Yield the records of each attempt in order."""
    attempts: dict[tuple[str, str, int], list[RoundRecord]] = defaultdict(list)
    for record in records:
        attempts[record.agent, record.task, record.attempt].append(record)
    for key in sorted(attempts):
        yield sorted(attempts[key], key=lambda record: record.index)


def round_failure(record: RoundRecord, *, silent: bool = False) -> RoundFailure | None:
    """Return why a round did not pass; None for one that passed, that no reward decides, or that was not reached.

    An *agent error* or an *infrastructure* fault left no verdict that counts; an error of unknown origin is taken for
    the latter. A *timeout* of agent or suite comes before what the cases say. *Build* means that no case ran, *cases*
    that some failed. *Reward* is the only word of a suite that never reports cases. *Other* is a round that failed
    although its cases passed: because of a reward that contradicts them, or in a session with ``--evocode-strict``.

    Args:
        record: The round.
        silent: Whether the task's suites report no cases, as far as is known: then it is not for the agent that none
            ran.

    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=2, outcome="failed")
    >>> round_failure(record), round_failure(record.model_copy(update={"timed_out": "agent"}))
    ('build', 'timeout')
    >>> from pytest_evocode.results.records import Verdict
    >>> round_failure(record.model_copy(update={"verdict": Verdict(reward=0, rewards={})}), silent=True)
    'reward'
    """
    if record.outcome in ("passed", "undecided", "not reached"):
        return None
    if record.outcome == "error" and (record.fault is not None or record.timed_out is None):
        return "agent error" if record.fault == "agent" else "infrastructure"
    if record.timed_out is not None:
        return "timeout"
    if record.verdict is not None and record.verdict.void:
        return "other"
    passed, total = record.case_counts
    if silent and not total and record.verdict is not None and not record.verdict.lacks_reports:
        return "reward"
    cases = record.verdict.cases if record.verdict else ()
    if not total or (cases and all(case.status == "skipped" for case in cases)):
        return "build"
    return "cases" if passed < total else "other"


@dataclass(frozen=True, slots=True)
class FailureKinds:
    """How often each kind of failure occurred; a kind that never did is there with 0."""

    cases: dict[FailureKind, int]
    rounds: dict[RoundFailure, int]
    not_reached: int


def failure_kinds(rounds: Rounds) -> FailureKinds:
    """Count the kinds of all failing cases and of all failed rounds; records may be of several agents and tasks.

    A round that a grid knows was selected, and that has no record, was not reached.

    >>> from pytest_evocode.results.records import Verdict
    >>> def record(index, status):
    ...     verdict = Verdict(reward=0, rewards={}, cases=(Case(id="x", status=status),))
    ...     return RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=2,
    ...         outcome=status, verdict=verdict)
    >>> found = failure_kinds([record(2, "failed"), record(1, "passed")])
    >>> found.cases["regression"], found.rounds["cases"]
    (1, 1)
    """
    records = list(rounds.records() if isinstance(rounds, Grid) else rounds)
    without_record = sum(task.cells for task in rounds.tasks) - len(records) if isinstance(rounds, Grid) else 0
    grid = rounds if isinstance(rounds, Grid) else Grid.of(records, suites=suite_facts(records))
    silent = {(task.agent, task.task) for task in grid.tasks if not has_cases(task)}
    cases = Counter(kind for _, _, kind in failing_cases(records))
    failures = Counter(round_failure(record, silent=(record.agent, record.task) in silent) for record in records)
    return FailureKinds(
        cases={kind: cases[kind] for kind in get_args(FailureKind)},
        rounds={kind: failures[kind] for kind in get_args(RoundFailure)},
        not_reached=sum(record.outcome == "not reached" for record in records) + without_record,
    )


@dataclass(frozen=True, slots=True)
class RequirementFailures:
    """How often one requirement failed, over all rounds that checked it, of any agents and attempts."""

    task: str
    requirement: str
    """The requirement's id, or the id of a case that names no requirement."""
    failed: int
    """In how many rounds one of its cases failed."""
    of: int
    """In how many rounds one of its cases was run."""
    kinds: dict[FailureKind, int]
    """How many of its failing cases are of each kind."""

    @property
    def share(self) -> float:
        """The share of the rounds that checked the requirement in which it failed, 0 to 100."""
        return 100 * self.failed / self.of


def worst_requirements(*groups: Iterable[RoundRecord]) -> list[RequirementFailures]:
    """Return the requirements that ever failed, the worst first: by share, then by number of rounds, then by name.

    Args:
        groups: Records, each by agents that have names of their own; those of two groups are never one attempt.

    >>> from pytest_evocode.results.records import Case, Verdict
    >>> def record(index, **cases):
    ...     cases = tuple(Case(id=id_, status=status, requirement=id_[0]) for id_, status in cases.items())
    ...     return RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=2,
    ...         outcome="failed", verdict=Verdict(reward=0, rewards={}, cases=cases))
    >>> records = [record(1, a1="failed", a2="passed", b1="passed"), record(2, a1="passed", b1="failed", c1="failed")]
    >>> [(found.requirement, found.failed, found.of) for found in worst_requirements(records)]
    [('c', 1, 1), ('a', 1, 2), ('b', 1, 2)]
    """
    counts = RequirementCounts()
    for group in groups:
        counts.add(list(group))
    return counts.worst()


class RequirementCounts:
    """Counts how often requirements were checked and failed, where records come and go one attempt after another."""

    def __init__(self) -> None:
        self._run: Counter[tuple[str, str]] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._kinds: dict[tuple[str, str], Counter[FailureKind]] = defaultdict(Counter)

    def add(self, records: Sequence[RoundRecord]) -> None:
        """Add records, as a group of :func:`worst_requirements`."""
        for record in records:
            checked: dict[tuple[str, str], bool] = {}
            for case in record.verdict.cases if record.verdict else ():
                key = record.task, case.requirement or case.id
                if case.status != "skipped" and key[1]:
                    checked[key] = checked.get(key, False) or case.failing
            self._run.update(checked.keys())
            self._failed.update(key for key, fails in checked.items() if fails)
        for record, case, kind in failing_cases(records):
            self._kinds[record.task, case.requirement or case.id][kind] += 1

    def worst(self) -> list[RequirementFailures]:
        """Return what :func:`worst_requirements` returns."""
        found = [
            RequirementFailures(*key, failed=number, of=self._run[key], kinds=dict(sorted(self._kinds[key].items())))
            for key, number in self._failed.items()
        ]
        return sorted(found, key=lambda each: (-each.share, -each.failed, each.task, each.requirement))


def refusal_rates(records: Iterable[RoundRecord]) -> dict[str, float]:
    """Return by agent the share, 0 to 100, of the rounds whose turn ended in a refusal, of those that it was asked for.

    Agents that refused nothing are left out.

    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r", index=1, declared_rounds=1, outcome="failed")
    >>> refusal_rates([record, record.model_copy(update={"refused": True, "index": 2})])
    {'a': 50.0}
    """
    found = {}
    for agent, of_agent in by_agent(records).items():
        asked = [record for record in of_agent if record.outcome != "not reached"]
        if refused := sum(record.refused for record in asked):
            found[agent] = 100 * refused / len(asked)
    return found
