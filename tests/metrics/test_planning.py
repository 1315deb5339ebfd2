"""How many tasks and attempts a comparison takes, from observed variance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from random import Random
from statistics import fmean, variance

import pytest

from pytest_evocode.metrics.comparison import plan, plan_from
from pytest_evocode.metrics.statistics.variance import detectable_difference, power
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
    assert made.variance is not None
    assert made.variance.within == pytest.approx(within)
    assert made.variance.between == pytest.approx(total - within / 2)
    assert (made.tasks, made.attempts) == (7, (2, 2))
    assert made.detectable.observed == pytest.approx(detectable_difference(total**0.5, 7))
    assert made.difference(7, 2) == pytest.approx(made.detectable)
    assert made.difference(28, 2).observed == pytest.approx(detectable_difference(total**0.5, 28))


def test_the_power_is_kept_by_upper_bounds_of_what_was_observed(record: MakeRecord) -> None:
    made = plan(of_tasks(record, OLD), of_tasks(record, NEW))
    assert made is not None
    assert made.variance is not None
    assert made.detectable.observed is not None
    assert made.detectable.bound is not None
    # Six degrees of freedom: the tenth percentile of chi-squared is 2.204.
    assert made.detectable.bound == pytest.approx(made.detectable.observed * (6 / 2.204) ** 0.5, rel=0.001)
    # What is not known of the variance between tasks does not go away by attempts.
    bounds = [made.variance.upper_sd(attempts) ** 2 for attempts in (1, 2, 8, 1000)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] > 2 * made.variance.between
    wanted = made.detectable.observed - 2
    assert made.attempts_for(wanted).bound is None
    fewer, enough = made.tasks_for(wanted, 2)
    assert fewer is not None
    assert enough is not None
    assert enough == 2 * fewer


@pytest.mark.parametrize("place", [0, 1])
def test_what_a_difference_takes_is_enough(record: MakeRecord, place: int) -> None:
    made = plan(of_tasks(record, OLD), of_tasks(record, NEW))
    assert made is not None
    seen, best = made.detectable[place], made.difference(7, 1000)[place]
    assert seen is not None
    assert best is not None
    wanted = (seen + best) / 2
    attempts, tasks = made.attempts_for(wanted)[place], made.tasks_for(wanted, 2)[place]
    assert attempts is not None
    assert tasks is not None
    for found, less in (
        (made.difference(7, int(attempts))[place], made.difference(7, int(attempts) - 1)[place]),
        (made.difference(int(tasks), 2)[place], made.difference(int(tasks) - 1, 2)[place]),
    ):
        assert found is not None
        assert less is not None
        assert found <= wanted < less
    assert made.attempts_for(1) == (None, None)
    assert made.tasks_for(0.1, 2) == (None, None)


def test_from_one_attempt_nothing_is_planned(record: MakeRecord) -> None:
    old, new = ({task: numbers[:1] for task, numbers in side.items()} for side in (OLD, NEW))
    for made in (plan(of_tasks(record, old), of_tasks(record, new)), plan(of_tasks(record, old))):
        assert made is not None
        assert made.why_not.startswith("one attempt does not tell how attempts vary")
        assert {made.difference(20, 4), made.attempts_for(30), made.tasks_for(30, 2)} == {(None, None)}
    both = plan(of_tasks(record, OLD), of_tasks(record, new))
    assert both is not None
    assert both.why_not
    # What the comparison that was made can see is known all the same.
    shares = [[number / 4 for (number,) in side.values()] for side in (old, new)]
    total = variance(100 * (high - low) for low, high in zip(*shares, strict=True))
    made = plan(of_tasks(record, old), of_tasks(record, new))
    assert made is not None
    assert made.detectable.observed == pytest.approx(detectable_difference(total**0.5, 7))


def test_where_chance_explains_all_that_tasks_differ_by_nothing_is_planned(record: MakeRecord) -> None:
    half = dict.fromkeys("abcdefg", (1, 3))
    made = plan(of_tasks(record, half), of_tasks(record, {**half, "a": (2, 3)}))
    assert made is not None
    assert made.variance is not None
    assert made.variance.between < 0
    assert made.why_not.startswith("attempts vary so much that how far tasks differ cannot be told from nothing")
    assert {made.difference(20, 4), made.attempts_for(30), made.tasks_for(30, 2)} == {(None, None)}


def test_of_one_agent_another_is_taken_to_vary_as_much(record: MakeRecord) -> None:
    rounds = of_tasks(record, OLD)
    half, none, all_ = (plan(rounds, correlation=correlation) for correlation in (0.5, 0.0, 1.0))
    assert half is not None
    assert none is not None
    assert all_ is not None
    within = fmean(variance([25 * each for each in pair]) for pair in OLD.values())
    between = variance(25 * fmean(pair) for pair in OLD.values()) - within / 2
    assert half.variance is not None
    assert half.variance.within == pytest.approx(2 * within)
    assert [each.variance and each.variance.between for each in (none, half, all_)] == pytest.approx(
        [2 * between, between, 0]
    )
    assert not all_.why_not


def test_one_task_or_none_in_common_tells_nothing(record: MakeRecord) -> None:
    one = of_tasks(record, {"a": (1, 2)})
    assert plan(one, one) is None
    assert plan(one) is None
    assert plan(one, of_tasks(record, {"b": (1, 2)})) is None


def test_without_variance_no_difference_can_be_named(record: MakeRecord) -> None:
    made = plan(*(of_tasks(record, dict.fromkeys("abcdefg", (number,))) for number in (4, 0)))
    assert made is not None
    assert made.why_not == "nothing varies here, so it is not known what differences could be seen"
    assert {made.detectable, made.difference(100, 4), made.attempts_for(5), made.tasks_for(5, 1)} == {(None, None)}


def test_too_few_tasks_show_no_difference_and_more_of_them_do(record: MakeRecord) -> None:
    few = {task: OLD[task] for task in "abcde"}
    made = plan(of_tasks(record, few), of_tasks(record, {task: NEW[task] for task in few}))
    assert made is not None
    assert {made.detectable, made.attempts_for(50)} == {(None, None)}
    assert made.difference(10, 2).bound is not None


def test_only_one_agent_of_each_side_can_be_planned_for(record: MakeRecord) -> None:
    with pytest.raises(ValueError, match="one agent on each side can be compared, and not a, b at once"):
        plan([record("t"), record("t", agent="b")])


def shares(tasks: int, attempts: int, between: float, within: float, random: Random) -> list[list[list[float]]]:
    """Draw the scores of two agents, whose differences vary by these standard deviations."""
    centres = [random.gauss(0, between) for _ in range(tasks)]
    return [[[random.gauss(side * centre, within) for _ in range(attempts)] for centre in centres] for side in (0, 1)]


@pytest.mark.parametrize(("tasks", "attempts"), [(7, 4), (12, 2), (26, 4)])
def test_what_is_planned_has_the_power_that_it_promises(tasks: int, attempts: int) -> None:
    random = Random(tasks)
    found: dict[str, list[float]] = {"attempts": [], "tasks": []}
    observed: list[float] = []
    for _ in range(200):
        between, within, most = random.uniform(3, 30), random.uniform(3, 30), random.choice((10, 20))
        made = plan_from(shares(tasks, attempts, between, within, random))

        def sd(number: float, between: float = between, within: float = within) -> float:
            return sqrt(between**2 + 2 * within**2 / number)

        difference = detectable_difference(sd(attempts), most)
        assert difference is not None
        needed = made.tasks_for(difference, attempts)
        for kept, number in ((found["tasks"], needed.bound), (observed, needed.observed)):
            if number is not None and number > 6:
                kept.append(power(difference / sd(attempts), int(number)))
        difference = detectable_difference(sd(random.choice((1, 2, 4, 8))), tasks)
        assert difference is not None
        if (number := made.attempts_for(difference).bound) is not None:
            found["attempts"].append(power(difference / sd(number), tasks, 3 / 64 if tasks == 7 else 0.05))
    assert len(found["attempts"]) > 9
    assert {what: fmean(powers) > 0.8 for what, powers in found.items()} == {"attempts": True, "tasks": True}
    assert fmean(each > 0.79 for each in found["tasks"]) > 0.88
    # Without the bound, which is what plans were before, every second one was too small.
    assert fmean(each > 0.79 for each in observed) < 0.7
