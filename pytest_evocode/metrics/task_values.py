"""What one agent reached at one task: the values, mostly 0 to 1, whose means over tasks are the metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial, wraps
from itertools import takewhile
from operator import eq
from typing import Literal, NamedTuple, TypeVar

from pytest_evocode.metrics.grid import Attempt, TaskRounds, reports_cases
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import RewardStrategy

TaskValue = Callable[[TaskRounds], float | None]
"""Returns None where nothing was measured at the task, which is then left out of the mean."""


T = TypeVar("T")


def _of_decided(value: Callable[[TaskRounds], T | None]) -> Callable[[TaskRounds], T | None]:
    """Return the same value over the rounds that a reward decides; None where there is none."""

    @wraps(value)
    def of_decided(task: TaskRounds) -> T | None:
        return None if task.decided is None else value(task.decided)

    return of_decided


def _of_whole(value: Callable[[TaskRounds], T | None]) -> Callable[[TaskRounds], T | None]:
    """Return the same value; None where no attempt was to go through all rounds."""

    @wraps(value)
    def of_whole(task: TaskRounds) -> T | None:
        return value(task) if task.whole else None

    return of_whole


@_of_decided
def passed_share(task: TaskRounds) -> float:
    """Return ``mean_a(sum_i p / N_t)``."""
    return sum(map(task.passes, task.indices)) / task.cells


def case_share(task: TaskRounds) -> float | None:
    """Return ``mean_a mean_i(s / c)``; None where the task's suites report no cases."""
    return _mean_ratio(task, case_ratio)


def pinned_case_share(task: TaskRounds) -> float | None:
    """Return ``mean_a mean_i(s / c)`` with the pinned number of cases for c, where there is one."""
    return _mean_ratio(task, _pinned_ratio)


def _mean_ratio(task: TaskRounds, ratio: Callable[[RoundRecord], float | None]) -> float | None:
    if not has_cases(task):
        return None
    reporting = task.known_suites.cases
    known = [ratio(record) for record in task.records]
    known = [
        0.0 if value is None and record.index in reporting else value
        for value, record in zip(known, task.records, strict=True)
    ]
    counted = task.cells - known.count(None)
    return sum(value for value in known if value is not None) / counted if counted else None


def has_cases(task: TaskRounds) -> bool:
    """Return whether the suites of a task report cases, as far as is known; a task without verdicts counts.

    What they report in attempts of others counts, too, so that no agent gains by keeping them from it.
    """
    if task.suites.cases & {*task.indices}:
        return True
    verdicts = [record.verdict for record in task.records if record.verdict is not None and _counts(record)]
    # A suite that was stopped, or that does not count, may have been about to report some.
    silent = any(not (verdict.timed_out or verdict.void or verdict.lacks_reports) for verdict in verdicts)
    return not silent or any(map(reports_cases, task.records))


def _pins(record: RoundRecord) -> int:
    return record.verdict.pinned[1] if record.verdict and record.verdict.pinned else 0


def tool_calls_per_round(task: TaskRounds) -> float | None:
    """Return the mean of tool calls over the rounds with a trajectory."""
    calls = [record.tool_calls for record in task.records if record.tool_calls is not None]
    return sum(calls) / len(calls) if calls else None


def turns(task: TaskRounds) -> float | None:
    """Return how many requests to its model an attempt makes over all rounds; see :func:`_over_all_rounds`."""
    return _over_all_rounds(task, [record.usage.requests for record in task.records if record.usage is not None])


def output_tokens(task: TaskRounds) -> float | None:
    """Return how many tokens an attempt's model writes over all rounds; see :func:`_over_all_rounds`."""
    return _over_all_rounds(
        task, [record.usage.completion_tokens for record in task.records if record.usage is not None]
    )


def _over_all_rounds(task: TaskRounds, values: Iterable[int | None]) -> float | None:
    """Return the mean over the rounds where a value is known, times N_t; None where it is known of none.

    So an attempt that ended early takes what it would have taken over all rounds at the rate of those that it reached.
    """
    known = [value for value in values if value is not None]
    return len(task.indices) * sum(known) / len(known) if known else None


@_of_whole
def is_perfect(task: TaskRounds) -> bool | None:
    """Return whether one attempt passed all rounds; None where none was to go through all, or no reward decides any."""
    if task.decided is None:
        return None
    return any(all(passed(attempt, index) for index in task.indices) for attempt in task.attempts.values())


@_of_whole
@_of_decided
def fail_stop_share(task: TaskRounds) -> float:
    """Return ``mean_i max_a p``, where p is 0 after an attempt's first round that is not passed.

    So a round counts as passed where the attempt that got farthest passed it.
    """
    through = {index for number in task.attempts for index in _rounds_through(task, number)}
    return sum(index in through for index in task.indices) / len(task.indices)


def _rounds_through(task: TaskRounds, number: int) -> Iterable[int]:
    """Return the rounds that an attempt passed before the first that it did not."""
    return takewhile(partial(passed, task.attempts[number]), task.own(number))


def passed(attempt: Attempt, index: int) -> bool:
    """Return whether an attempt passed a round; one without a record did not."""
    return index in attempt and attempt[index].passed


@_of_whole
@_of_decided
def best_share(task: TaskRounds) -> float:
    """Return ``mean_i max_a p``, where a round that is passed after a failed one counts too."""
    return sum(task.passes(index) > 0 for index in task.indices) / len(task.indices)


@_of_decided
def is_complete(task: TaskRounds) -> bool | None:
    """Return whether an attempt passed the last declared round; None where it was selected or decided for none."""
    return task.passes(task.declared) > 0 if task.declared in task.chain else None


@_of_decided
def is_hard(task: TaskRounds) -> bool:
    """Return whether at most half of the rounds are passed, on the mean over attempts."""
    return 2 * sum(map(task.passes, task.indices)) <= task.cells


@_of_decided
def all_of_any(task: TaskRounds) -> tuple[float, float] | None:
    """Return how many rounds all attempts passed, and how many any attempt passed; None where none has two attempts.

    Only rounds that several attempts were made at count: of a single attempt, all is the same as any.
    """
    several = [index for index in task.indices if task.tries(index) > 1]
    if not several:
        return None
    passes = [task.passes(index) for index in several]
    return sum(map(eq, passes, map(task.tries, several))), sum(number > 0 for number in passes)


@_of_decided
def passed_of(task: TaskRounds) -> tuple[float, float]:
    """Return how many rounds were passed, on the mean over attempts, and how many there are."""
    return sum(map(task.share, task.indices)), len(task.indices)


def totals(pairs: Collection[tuple[float, float]]) -> tuple[float, float]:
    """Return the sums of the first and of the second numbers of pairs."""
    return sum(part for part, _ in pairs), sum(whole for _, whole in pairs)


def case_ratio(record: RoundRecord) -> float | None:
    """Return the share of a round's cases that passed: 0 without a verdict that counts, None where it has no cases.

    A round that failed and has no cases counts 0: where others have cases, it is the suite that broke off.
    """
    passed, total = record.case_counts
    if total or record.outcome not in ("passed", "undecided") or record.verdict is None or _pins(record):
        return passed / total if total and _counts(record) else 0.0
    return None


def _pinned_ratio(record: RoundRecord) -> float | None:
    pinned = record.verdict.pinned if record.verdict else None
    if pinned is None or not pinned[1]:
        return case_ratio(record)
    passed, total = pinned
    return passed / total if _counts(record) else 0.0


def _counts(record: RoundRecord) -> bool:
    # A round that broke down may have a verdict too, where its results could not be written.
    return record.outcome in ("passed", "failed", "undecided")


def reward_share(task: TaskRounds, strategies: Mapping[str, RewardStrategy] | None = None) -> float | None:
    """Return the mean over attempts of the deciding reward at one task, 0 to 1; None where none decides."""
    if (left := task.decided) is None:
        return None
    final = (strategies or {}).get(task.task) == "final"
    rewards = [
        _reward(attempt.get(index))
        for number, attempt in left.attempts.items()
        for index in (task.own(number)[-1:] if final else task.own(number))
        if index in left.own(number)
    ]
    return sum(rewards) / len(rewards) if rewards else None


def _reward(record: RoundRecord | None) -> float:
    return (record.verdict.reward or 0.0) if record is not None and record.verdict is not None else 0.0


Metric = Literal[
    "dataset_score",
    "case_score",
    "pinned_case_score",
    "avg_rounds",
    "perfect_tasks",
    "mean_reward",
    "mt_at_k",
    "final_round_completion",
    "hard_tasks",
]
"""The scores that are means over tasks."""


class Mean(NamedTuple):
    """A metric as ``scale`` times the mean over tasks of a value."""

    value: TaskValue
    scale: float = 100


MEANS: dict[Metric, Mean] = {
    "dataset_score": Mean(passed_share),
    "case_score": Mean(case_share),
    "pinned_case_score": Mean(pinned_case_share),
    "avg_rounds": Mean(tool_calls_per_round, scale=1),
    "perfect_tasks": Mean(is_perfect),
    "mean_reward": Mean(reward_share),
    "mt_at_k": Mean(fail_stop_share),
    "final_round_completion": Mean(is_complete),
    "hard_tasks": Mean(is_hard),
}
"""By the names of :class:`~pytest_evocode.metrics.scores.Scores`; Perfect Tasks is a share here."""
