"""What is known of agents beyond their scores: how far they get, and which failures only the chain causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pytest_evocode.metrics.faults import is_fault
from pytest_evocode.metrics.grid import Rounds, TaskRounds, as_grid
from pytest_evocode.metrics.intervals import Interval
from pytest_evocode.metrics.over_attempts import PassAtK, Unit, pass_at_k, pass_at_k_intervals
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.metrics.spending import TokenRatio, Tokens, token_ratios
from pytest_evocode.metrics.statistics.survival import LifeTableRow, added
from pytest_evocode.metrics.task_values import passed
from pytest_evocode.names import scored_name
from pytest_evocode.results.records import Mode, TaskFacts

K = TypeVar("K", int, str)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, both counted in (agent, task) or in (agent, task, round)."""

    passed: float
    """It is a fraction where it is a mean over attempts."""
    of: int

    @property
    def percent(self) -> float | None:
        """The share, 0 to 100; None where the whole is empty."""
        return 100 * self.passed / self.of if self.of else None


def pass_rates(rounds: Rounds) -> dict[int, Share]:
    """Return, by round index i, the share of the (agent, task) with N_t >= i that passed round i.

    It is the mean over attempts. The records may be of several agents.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> def record(task, index, of):
    ...     return RoundRecord(task=task, agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=of,
    ...         outcome="passed")
    >>> pass_rates([record("t", 1, of=2), record("u", 1, of=1)])
    {1: Share(passed=2.0, of=2), 2: Share(passed=0.0, of=1)}
    """
    shares: dict[int, list[float]] = defaultdict(list)
    for task in as_grid(rounds).decided().tasks:
        for index in task.indices:
            shares[index].append(task.share(index))
    return {index: Share(sum(found), len(found)) for index, found in sorted(shares.items())}


def followed(rounds: Rounds) -> dict[int, LifeTableRow]:
    """Return, by round index, how many attempts got there without a failure, and how many failed there first.

    That is what :func:`~pytest_evocode.metrics.statistics.survival.kaplan_meier` takes. The attempts at one task count
    as one together. An attempt is lost from sight before the first round that has no verdict for a reason that is not
    the agent's: an infrastructure error, a session that ended, a round that was not selected.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> outcomes = [(1, 1, "passed"), (1, 2, "failed"), (1, 3, "passed"), (2, 1, "passed"), (2, 2, "not reached")]
    >>> followed(RoundRecord(task="t", agent="a", attempt=attempt, round=f"r{i}", index=i, declared_rounds=3,
    ...     outcome=outcome) for attempt, i, outcome in outcomes)  # doctest: +NORMALIZE_WHITESPACE
    {1: LifeTableRow(at_risk=1.0, failed=0.0, censored=0.0), 2: LifeTableRow(at_risk=0.5, failed=0.5, censored=0.5)}
    """
    tasks = as_grid(rounds).decided().tasks
    return added(dict(_followed(task, number)) for task in tasks for number in task.attempts)


def _followed(task: TaskRounds, number: int) -> Iterator[tuple[int, LifeTableRow]]:
    attempt, own, weight = task.attempts[number], task.own(number), 1 / len(task.attempts)
    for place, index in enumerate(own):
        record = attempt.get(index)
        is_next = index == own[0] + place
        if record is None or record.outcome == "not reached" or is_fault(record) or not is_next:
            yield index, LifeTableRow(censored=weight)
            return
        yield index, LifeTableRow(weight, failed=0.0 if record.passed else weight)
        if not record.passed:
            return


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first round of an attempt that is not passed."""

    agent: str
    task: str
    attempt: int
    index: int
    declared: int

    @property
    def position(self) -> float:
        """``i / N_t``, above 0 and at most 1."""
        return self.index / self.declared


def first_failures(rounds: Rounds) -> list[FirstFailure]:
    """Return where each attempt failed first that did not pass all its rounds, by agent, task and attempt.

    The records may be of several agents.
    """
    return [
        FirstFailure(task.agent, task.task, number, failed, task.declared)
        for task in as_grid(rounds).decided().tasks
        for number, attempt in task.attempts.items()
        if (failed := next((index for index in task.own(number) if not passed(attempt, index)), None))
    ]


Failed = Literal["round", "record"]
"""What :func:`solvable` counts."""


@dataclass(frozen=True, slots=True)
class Solvable:
    """Of the rounds that fail in a chain, the share that passes in single-round mode."""

    overall: Share
    by_round: dict[int, Share]
    by_change: dict[str, Share]
    """A round with several change types counts under each; where the task names none, under none."""

    @classmethod
    def of(cls, parts: Iterable[Solvable]) -> Solvable:
        """Return what several are together, such as those of all agents."""
        parts = list(parts)
        return cls(
            _total(part.overall for part in parts),
            total_shares(part.by_round for part in parts),
            total_shares(part.by_change for part in parts),
        )


def total_shares(tables: Iterable[Mapping[K, Share]]) -> dict[K, Share]:
    """Return the shares of all tables together by key, such as the pass rates of all agents.

    >>> total_shares([{1: Share(1, of=2)}, {1: Share(0, of=1), 2: Share(1, of=1)}])
    {1: Share(passed=1, of=3), 2: Share(passed=1, of=1)}
    """
    found: dict[K, list[Share]] = defaultdict(list)
    for table in tables:
        for key, share in table.items():
            found[key].append(share)
    return {key: _total(found[key]) for key in sorted(found)}


def _total(shares: Iterable[Share]) -> Share:
    shares = list(shares)
    return Share(sum(share.passed for share in shares), sum(share.of for share in shares))


def solvable(
    rounds: Rounds,
    single_round: Rounds,
    facts: Mapping[str, TaskFacts] | None = None,
    *,
    unit: Failed = "round",
) -> Solvable:
    """Return which rounds that failed in chain or fail-stop mode any attempt passed in single-round mode.

    The records may be of several agents. An (agent, task) without any record in single-round mode is left out; where it
    has some, a round without a record did not pass, and one that was not selected is left out.

    Args:
        rounds: The rounds of chain or fail-stop mode.
        single_round: The rounds of single-round mode.
        facts: What is known of tasks, by name, for their rounds' change types.
        unit: What fails. ``round`` counts each (agent, task, round) that no attempt passed, whether an attempt reached
            it or not: what MT@k lacks. ``record`` counts each (agent, task, attempt, round) that was reached and
            failed, as EvoCode-Bench's paper counts failed round records: so a round counts as often as it failed, and
            late rounds count for the agents that reach them only.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> def record(index, outcome, attempt=1):
    ...     return RoundRecord(task="t", agent="a", attempt=attempt, round=f"r{index}", index=index, declared_rounds=3,
    ...         outcome=outcome)
    >>> chain = [record(1, "passed"), record(2, "failed"), record(3, "not reached"), record(1, "failed", 2)]
    >>> single = [record(1, "passed"), record(2, "failed"), record(3, "passed")]
    >>> facts = TaskFacts(rounds=("r1", "r2", "r3"), change_types=((), ("extension",), ("extension", "conflict")))
    >>> found = solvable(chain, single, {"t": facts})
    >>> found.overall, found.by_round[3], found.by_change["extension"]
    (Share(passed=1, of=2), Share(passed=1, of=1), Share(passed=1, of=2))
    >>> solvable(chain, single, unit="record").by_round
    {1: Share(passed=1, of=1), 2: Share(passed=0, of=1)}
    """
    single_tasks = {(task.agent, task.task): task for task in as_grid(single_round).decided().tasks}
    found = []
    for task in as_grid(rounds).decided().tasks:
        single = single_tasks.get((task.agent, task.task))
        if single is None:
            continue
        known = (facts or {}).get(task.task)
        for index in task.indices:
            is_left_out = bool(single.partial) and index not in single.indices
            if (failed := _failures(task, index, unit)) and not is_left_out:
                share = Share(failed if single.passes(index) else 0, failed)
                changes = known.changes(index) if known else ()
                found.append(Solvable(share, {index: share}, dict.fromkeys(changes, share)))
    return Solvable.of(found)


def _failures(task: TaskRounds, index: int, unit: Failed) -> int:
    if unit == "round":
        return int(task.passes(index) == 0)
    return sum(index in attempt and attempt[index].outcome == "failed" for attempt in task.attempts.values())


ALL = "all agents"


@dataclass(frozen=True, slots=True)
class Pooled:
    """What is counted over rounds, and so can be of one agent or of several together."""

    name: str
    pass_rates: Mapping[int, Share]
    """By round index."""
    followed: Mapping[int, LifeTableRow]
    """By round index, of the attempts that did not fail before it."""
    tasks: int
    """How many tasks these are of, whatever the number of agents."""
    solvable: Mapping[Failed, Solvable] | None
    """By what is counted; None without single rounds, or of them."""
    survives: bool
    """Whether an attempt has a first failure, which single rounds, that are independent of each other, have not."""
    token_ratios: Mapping[Tokens, Mapping[int, TokenRatio]]
    """By which tokens are compared, then by round index."""


@dataclass(frozen=True, slots=True)
class Analyses:
    """What is known of one row beyond its scores."""

    row: ScoreRow
    scores: Scores
    pass_at_k: Mapping[Unit, list[PassAtK]]
    """Single rounds are no whole tasks, and have no estimate of them."""
    intervals: Mapping[Unit, list[tuple[Interval | None, Interval | None]]]
    """Of pass@k and of pass^k, in the order of ``pass_at_k``."""
    reliability_interval: Interval | None
    pooled: Pooled


def analyse(table: ScoreTable) -> list[Analyses]:
    """Return the analyses of each row of a table."""
    return [_of_row(table, row) for row in table.rows]


def _of_row(table: ScoreTable, row: ScoreRow) -> Analyses:
    units: tuple[Unit, ...] = ("round",) if row.mode == "single-round" else ("round", "task")
    single = table.single_rounds(row)
    counted: tuple[Failed, ...] = ("round", "record")
    return Analyses(
        row,
        table.scores(row),
        pass_at_k={unit: pass_at_k(row.grid, unit) for unit in units},
        intervals={unit: pass_at_k_intervals(row.grid, unit) for unit in units},
        reliability_interval=table.intervals(row)["reliability"],
        pooled=Pooled(
            row.name,
            pass_rates(row.grid),
            followed(row.grid),
            len(row.grid.tasks),
            None if single is None else {of: solvable(row.grid, single.grid, table.facts, unit=of) for of in counted},
            row.mode != "single-round",
            _ratios([row]),
        ),
    )


def pool(found: Iterable[Analyses]) -> list[Pooled]:
    """Return what all agents but controls are together, at the newest contents of tasks, of modes that have several."""
    modes: dict[tuple[Mode, str | None], list[Analyses]] = defaultdict(list)
    for each in (each for each in found if each.row.version == 0 and not each.row.is_control):
        modes[each.row.mode, each.row.from_round].append(each)
    return [
        Pooled(
            scored_name(ALL, *mode),
            total_shares(each.pooled.pass_rates for each in of_mode),
            added(each.pooled.followed for each in of_mode),
            len({task.task for each in of_mode for task in each.row.grid.tasks}),
            _together([each.pooled.solvable for each in of_mode if each.pooled.solvable is not None]),
            mode[0] != "single-round",
            _ratios([each.row for each in of_mode]),
        )
        for mode, of_mode in modes.items()
        if len(of_mode) > 1
    ]


def _together(parts: list[Mapping[Failed, Solvable]]) -> dict[Failed, Solvable] | None:
    return {counted: Solvable.of(part[counted] for part in parts) for counted in parts[0]} if parts else None


def _ratios(rows: Iterable[ScoreRow]) -> dict[Tokens, dict[int, TokenRatio]]:
    records = [record for row in rows for record in row.grid.records()]
    kinds: tuple[Tokens, ...] = ("generated", "total")
    return {kind: token_ratios(records, kind) for kind in kinds}
