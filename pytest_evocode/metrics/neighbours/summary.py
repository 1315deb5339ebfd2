"""All neighbours' metrics of one agent, over everything and by round, and how regressions accumulate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_evocode.metrics.efficiency import Efficiency, efficiency
from pytest_evocode.metrics.grid import Grid, TaskRounds
from pytest_evocode.metrics.neighbours.published import (
    Base,
    CodeDecay,
    CodeQuality,
    Milestones,
    ZeroRegression,
    base_of,
    change_of_round,
    evo_score,
    fix_rate,
    milestones,
    zero_regression,
)
from pytest_evocode.metrics.neighbours.round_cases import RoundCases, TaskCases, mean, task_cases


@dataclass(frozen=True, slots=True)
class RoundRegressions:
    """How many cases a round lost and regained, or, of several attempts, the mean over tasks of how many."""

    lost: float
    recovered: float
    standing: float
    so_far: float
    """How many were lost in this round and all before it."""


@dataclass(frozen=True, slots=True)
class Regressions:
    """Regression accumulation: what an attempt loses, as means over the attempts at each task, then over tasks.

    No benchmark publishes a number of this name. EvoClaw's authors describe what it shows, that regressions pile up
    faster than they are repaired (arXiv 2603.13428), and the zero-regression rate of SWE-CI says only whether there was
    any. The formula is ours. In round i of an attempt, *lost* are the cases that passed when they were last run, are
    still required and do not pass; *recovered* are those that were lost and pass again; *standing* are all that were
    lost, are still required and do not pass; *so far* is the sum of what was lost up to round i. A retired requirement
    is no regression: what a round no longer requires is in none of them, and no longer standing.
    """

    lost: float
    """How many cases are lost over all rounds; a case that is lost twice counts twice."""
    recovered: float
    standing: float
    """How many are still lost in the last round with a verdict."""
    standing_share: float | None
    """Those, of all cases that passed in an earlier round and that the last one still requires, 0 to 100; None where
    no attempt has any.
    """


def accumulation(rounds: Iterable[RoundCases]) -> Iterator[tuple[int, RoundRegressions, int]]:
    """Yield, for each round of an attempt with a verdict, its index, its regressions, and what they could have been.

    The last number is how many cases passed in an earlier round and are still required.
    """
    ever: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    so_far = 0
    for each in (each for each in rounds if each.judged):
        ever |= each.held
        so_far += len(each.lost)
        known = ever & each.old
        recovered = gone & each.passed
        gone = (gone | each.lost) - each.passed
        yield (
            each.index,
            RoundRegressions(len(each.lost), len(recovered), len(gone & each.old), so_far),
            len(known),
        )
        ever |= each.passed


def regressions(tasks: Sequence[TaskCases]) -> Regressions | None:
    """Return the regressions of one agent in a chain; None where no suite gave a verdict."""
    attempts = [[list(accumulation(rounds)) for rounds in task.attempts] for task in tasks]
    attempts = [[rounds for rounds in task if rounds] for task in attempts]

    def over_tasks(value: Callable[[list[tuple[int, RoundRegressions, int]]], float | None]) -> float | None:
        return mean(mean(map(value, task)) for task in attempts)

    lost = over_tasks(lambda rounds: rounds[-1][1].so_far)
    recovered = over_tasks(lambda rounds: sum(each.recovered for _, each, _ in rounds))
    standing = over_tasks(lambda rounds: rounds[-1][1].standing)
    share = over_tasks(lambda rounds: 100 * rounds[-1][1].standing / rounds[-1][2] if rounds[-1][2] else None)
    return (
        None if lost is None or recovered is None or standing is None else Regressions(lost, recovered, standing, share)
    )


def regressions_by_round(tasks: Sequence[TaskCases]) -> dict[int, RoundRegressions]:
    """Return, by round index, the means over those attempts whose round has a verdict, then over tasks."""
    found: dict[int, list[list[RoundRegressions]]] = {}
    for task in tasks:
        of_task: dict[int, list[RoundRegressions]] = {}
        for rounds in task.attempts:
            for index, each, _ in accumulation(rounds):
                of_task.setdefault(index, []).append(each)
        for index, values in of_task.items():
            found.setdefault(index, []).append(values)
    return {index: _mean_regressions(found[index]) for index in sorted(found)}


def _mean_regressions(tasks: Sequence[Sequence[RoundRegressions]]) -> RoundRegressions:
    def of(name: str) -> float:
        value = mean(mean(getattr(each, name) for each in task) for task in tasks)
        assert value is not None
        return value

    return RoundRegressions(*map(of, ("lost", "recovered", "standing", "so_far")))


@dataclass(frozen=True, slots=True)
class NeighbourMetrics:
    """The metrics of one agent or of one round index; None where nothing was measured."""

    evo_score: float | None
    """By round, the mean of the normalized changes."""
    zero_regression: ZeroRegression | None
    """None by round, and in single-round mode, where nothing that an attempt does lasts."""
    milestones: Milestones | None
    fix_rate: float | None
    regressions: Regressions | RoundRegressions | None
    """None in single-round mode."""
    quality: CodeQuality | None = None
    """None where nobody has looked at files."""


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """What there is of one agent."""

    whole: NeighbourMetrics
    by_round: dict[int, NeighbourMetrics]
    gamma: float
    """The weight of each round in EvoScore over the one before it."""
    efficiency: Efficiency
    nameless: tuple[str, ...]
    """Tasks whose records do not tell cases apart, and that count only in the score and its cost."""
    without_reference: tuple[str, ...]
    """Tasks of which no reference solution tells what a round requires, but the attempts that there are."""
    untold: tuple[str, ...]
    """Task and index of the rounds of which no attempt tells all cases, and that count in few of these metrics."""
    without_base: tuple[str, ...]
    """Tasks of which it is not known what passes before an agent has done anything; it is taken for nothing."""
    decay: CodeDecay | None = None
    """None where nobody has looked at files."""

    def with_code(self, decay: CodeDecay | None) -> AgentMetrics:
        """Return the same with what became of the code."""
        if decay is None:
            return self
        by_round = {index: replace(each, quality=decay.by_round.get(index)) for index, each in self.by_round.items()}
        return replace(self, whole=replace(self.whole, quality=decay.quality), by_round=by_round, decay=decay)


def agent_metrics(
    grid: Grid,
    *,
    reference: Grid | None = None,
    untouched: Grid | None = None,
    others: Iterable[TaskRounds] = (),
    single: bool = False,
    gamma: float = 1.0,
) -> AgentMetrics:
    """Return the neighbours' metrics of one agent.

    Args:
        grid: The rounds of the agent in one mode, with cases.
        reference: The rounds of the agent ``oracle``, where there are any.
        untouched: The rounds of the agent ``nop``, where there are any.
        others: The attempts of other agents and modes at the same contents of tasks.
        single: Whether the rounds are single ones.
        gamma: The weight of each round in EvoScore over the one before it.
    """
    tasks, nameless = task_cases(grid, reference, others=others, single=single)
    base = base_of(untouched)
    names = {task.task for task in tasks}
    whole = NeighbourMetrics(
        evo_score=evo_score(tasks, base, gamma),
        zero_regression=None if single else zero_regression(tasks),
        milestones=milestones(tasks),
        fix_rate=fix_rate(tasks),
        regressions=None if single else regressions(tasks),
    )
    return AgentMetrics(
        whole,
        dict(_by_round(tasks, base, single)),
        gamma,
        efficiency(grid, single=single),
        tuple(nameless),
        tuple(sorted(names - {task.task for task in (reference.tasks if reference is not None else ())})),
        tuple(dict.fromkeys(_untold(tasks))),
        tuple(sorted(names - {task for task, _ in base})),
    )


def _untold(tasks: Iterable[TaskCases]) -> Iterator[str]:
    for task in tasks:
        rounds = sorted({each.index for attempt in task.attempts for each in attempt if each.ran and not each.told})
        yield from (f"{task.task} round {index}" for index in rounds)


def _by_round(tasks: list[TaskCases], base: Base, single: bool) -> Iterator[tuple[int, NeighbourMetrics]]:
    lost = {} if single else regressions_by_round(tasks)
    for index in sorted({each.index for task in tasks for rounds in task.attempts for each in rounds}):
        only = [_only(task, index) for task in tasks]
        yield (
            index,
            NeighbourMetrics(
                evo_score=mean(
                    mean(change_of_round(task.task, each, base) for rounds in task.attempts for each in rounds)
                    for task in only
                ),
                zero_regression=None,
                milestones=milestones(only),
                fix_rate=fix_rate(only),
                regressions=lost.get(index),
            ),
        )


def _only(task: TaskCases, index: int) -> TaskCases:
    """Return the same attempts with the round at one index, if they have it."""
    return TaskCases(
        task.task, tuple(tuple(each for each in rounds if each.index == index) for rounds in task.attempts)
    )
