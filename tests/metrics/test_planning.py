"""How many tasks and attempts a comparison takes, from observed variance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, variance

import pytest

from pytest_evocode.metrics.comparison import plan
from pytest_evocode.metrics.statistics.variance import detectable_difference
from pytest_evocode.results.records import RoundRecord

MakeRecord = Callable[..., RoundRecord]

OLD = {"a": (4, 2), "b": (1, 3), "c": (0, 0), "d": (2, 3), "e": (4, 4), "f": (3, 1), "g": (4, 3)}
NEW = {"a": (4, 4), "b": (0, 1), "c": (2, 2), "d": (1, 3), "e": (4, 4), "f": (4, 4), "g": (2, 0)}


def of_tasks(record: MakeRecord, passed: Mapping[str, Sequence[int]]) -> list[RoundRecord]:
    """Four rounds at each task, of which so many are passed in each attempt."""
    return [
        record(task, index, "passed" if index <= number else "failed", of=4, attempt=attempt)
        for task, numbers in passed.items()
        for attempt, number in enumerate(numbers, 1)
        for index in range(1, 5)
    ]


def test_several_attempts_tell_chance_from_what_tasks_differ_by(record: MakeRecord) -> None:
    made = plan(of_tasks(record, OLD), of_tasks(record, NEW))
    assert made is not None
    within = sum(fmean(variance([25 * each for each in pair]) for pair in side.values()) for side in (OLD, NEW))
    total = variance(25 * (fmean(NEW[task]) - fmean(OLD[task])) for task in OLD)
    assert made.measured
    assert made.variance.within == pytest.approx(within)
    assert made.variance.between == pytest.approx(total - within / 2)
    assert (made.tasks, made.attempts) == (7, (2, 2))
    assert made.detectable == pytest.approx(detectable_difference(total**0.5, 7))
    assert made.difference(7, 2) == pytest.approx(made.detectable)
    assert made.difference(28, 2) == pytest.approx(detectable_difference(total**0.5, 28))


def test_what_a_difference_takes_is_enough(record: MakeRecord) -> None:
    made = plan(of_tasks(record, OLD), of_tasks(record, NEW))
    assert made is not None
    assert made.detectable is not None
    wanted = made.detectable - 2
    attempts, tasks = made.attempts_for(wanted), made.tasks_for(wanted, 2)
    assert attempts is not None
    assert tasks is not None
    for found, less in (
        (made.difference(7, attempts), made.difference(7, attempts - 1)),
        (made.difference(tasks, 2), made.difference(tasks - 1, 2)),
    ):
        assert found is not None
        assert less is not None
        assert found <= wanted < less
    assert made.attempts_for(1) is None
    assert made.tasks_for(0.1, 2) is None


def test_one_attempt_is_taken_to_vary_as_independent_rounds(record: MakeRecord) -> None:
    old, new = ({task: numbers[:1] for task, numbers in side.items()} for side in (OLD, NEW))
    made = plan(of_tasks(record, old), of_tasks(record, new))
    assert made is not None
    shares = [[number / 4 for (number,) in side.values()] for side in (old, new)]
    within = sum(fmean(1e4 * p * (1 - p) / 3 for p in side) for side in shares)
    total = variance(100 * (high - low) for low, high in zip(*shares, strict=True))
    assert not made.measured
    assert [made.variance.within, made.variance.between] == pytest.approx([within, total - within])
    assert made.detectable == pytest.approx(detectable_difference(total**0.5, 7))


def test_what_is_guessed_of_chance_is_no_more_than_the_whole(record: MakeRecord) -> None:
    half = dict.fromkeys("abcdefg", (2,))
    made = plan(of_tasks(record, half), of_tasks(record, {**half, "a": (3,)}))
    assert made is not None
    assert made.variance.between == 0
    assert made.variance.within == pytest.approx(variance([25, 0, 0, 0, 0, 0, 0]))


def test_of_one_agent_another_is_taken_to_vary_as_much(record: MakeRecord) -> None:
    rounds = of_tasks(record, OLD)
    half, none, all_ = (plan(rounds, correlation=correlation) for correlation in (0.5, 0.0, 1.0))
    assert half is not None
    assert none is not None
    assert all_ is not None
    within = fmean(variance([25 * each for each in pair]) for pair in OLD.values())
    between = variance(25 * fmean(pair) for pair in OLD.values()) - within / 2
    assert half.variance.within == pytest.approx(2 * within)
    assert [each.variance.between for each in (none, half, all_)] == pytest.approx([2 * between, between, 0])


def test_one_task_or_none_in_common_tells_nothing(record: MakeRecord) -> None:
    one = of_tasks(record, {"a": (1, 2)})
    assert plan(one, one) is None
    assert plan(one) is None
    assert plan(one, of_tasks(record, {"b": (1, 2)})) is None


def test_without_variance_no_difference_can_be_named(record: MakeRecord) -> None:
    made = plan(*(of_tasks(record, dict.fromkeys("abcdefg", (number,))) for number in (4, 0)))
    assert made is not None
    assert (made.sd, made.detectable, made.difference(100, 4)) == (0.0, None, None)
    assert (made.attempts_for(5), made.tasks_for(5, 1)) == (None, None)


def test_too_few_tasks_show_no_difference_and_more_of_them_do(record: MakeRecord) -> None:
    few = {task: OLD[task] for task in "abcde"}
    made = plan(of_tasks(record, few), of_tasks(record, {task: NEW[task] for task in few}))
    assert made is not None
    assert (made.detectable, made.attempts_for(50)) == (None, None)
    assert made.difference(10, 2) is not None


def test_only_one_agent_of_each_side_can_be_planned_for(record: MakeRecord) -> None:
    with pytest.raises(ValueError, match="one agent on each side can be compared, and not a, b at once"):
        plan([record("t"), record("t", agent="b")])
