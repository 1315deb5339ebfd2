"""Two agents, task by task."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb

import pytest
from hypothesis import given

from pytest_evocode.metrics.comparison import Flip, compare, regressed
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.results.records import RoundRecord
from tests.metrics.matrices import Matrix, matrices

MakeRecord = Callable[..., RoundRecord]


def test_the_difference_is_the_mean_of_the_differences_by_task(record: MakeRecord) -> None:
    first = [record("t", 1, of=2), record("u", 1, of=1), record("v", 1, "failed", of=1)]
    second = [
        record("t", 1, of=2, agent="b"),
        record("t", 2, of=2, agent="b"),
        record("u", 1, "failed", of=1, agent="b"),
        record("v", 1, of=1, agent="b"),
    ]
    found = compare(first, second)
    assert [found.first, found.second] == pytest.approx([50, 200 / 3])
    assert found.difference == pytest.approx(50 / 3)
    assert (found.tasks, found.won, found.lost, found.tied) == (3, 2, 1, 0)
    assert found.flips == (
        Flip("t", 2, "round-2", 0.0, 1.0),
        Flip("u", 1, "round-1", 1.0, 0.0),
        Flip("v", 1, "round-1", 0.0, 1.0),
    )
    assert [flip.lost for flip in found.flips] == [False, True, False]


def test_what_all_tasks_have_in_common_is_certain_though_the_tasks_differ_much(record: MakeRecord) -> None:
    # Unpaired, scores of 0 to 45 would leave a difference of 10 or 15 open.
    first = [record(f"t{n}", index, of=20) for n in range(10) for index in range(1, n + 1)]
    first += [record("t0", 1, "failed", of=20)]
    second = [record(f"t{n}", index, of=20) for n in range(10) for index in range(1, n + 3 + n % 2)]
    found = compare(first, second)
    assert found.difference == pytest.approx(12.5)
    assert found.interval is not None
    # Student's t: the standard deviation is 2.635, and 2.262 standard errors are 1.885.
    assert [found.interval.low, found.interval.high] == pytest.approx([10.615, 14.385], abs=1e-3)
    assert (found.won, found.lost, found.tied) == (10, 0, 0)
    assert found.p_value == 2 / 2**10


def test_two_of_the_same_are_tied(record: MakeRecord) -> None:
    records = [record("t", index, outcome, of=3) for index, outcome in enumerate(["passed", "failed", "passed"], 1)]
    found = compare(records, records)
    assert (found.difference, found.won, found.lost, found.tied, found.flips) == (0.0, 0, 0, 1, ())
    assert found.interval is None


def test_tasks_of_one_side_are_named_and_count_nowhere(record: MakeRecord) -> None:
    found = compare([record("t"), record("old", 1, "failed")], [record("t"), record("new", 1, "failed")])
    assert (found.only_first, found.only_second) == (("old",), ("new",))
    assert (found.tasks, found.first, found.second, found.flips) == (1, 100.0, 100.0, ())


def test_a_selected_task_without_a_record_is_lost(record: MakeRecord) -> None:
    found = compare([record("t")], Grid.of([], selected={"t": 1}))
    assert (found.lost, found.flips) == (1, (Flip("t", 1, "round-1", 1.0, 0.0),))


def test_of_several_attempts_the_greater_part_says_whether_a_round_flipped(record: MakeRecord) -> None:
    def attempts(*passed: bool) -> list[RoundRecord]:
        return [record("t", 1, "passed" if each else "failed", attempt=i) for i, each in enumerate(passed, 1)]

    assert compare(attempts(True, True, True), attempts(True, True, False)).flips == ()
    assert compare(attempts(True, False), attempts(False, False)).flips == ()
    assert compare(attempts(True, False), attempts(True, False)).flips == ()
    assert compare(attempts(True, True, False), attempts(True, False, False)).flips[0].lost
    assert compare(attempts(True, True), attempts(True, False)).flips == (Flip("t", 1, "round-1", 1.0, 0.5),)


def test_any_mean_over_tasks_can_be_compared(record: MakeRecord) -> None:
    first = [record("t", 1, "failed", of=1, cases="pf", tool_calls=10), record("u", 1, cases="p", tool_calls=5)]
    second = [record("t", 1, "failed", of=1, cases="pp", tool_calls=4), record("u", 1, cases="p")]
    assert compare(first, second, "case_score").difference == 25.0
    calls = compare(first, second, "avg_rounds")
    assert (calls.tasks, calls.difference, calls.only_first) == (1, -6.0, ("u",))


def test_nothing_in_common_and_several_agents_are_refused(record: MakeRecord) -> None:
    with pytest.raises(ValueError, match="no task for which both have the metric dataset_score"):
        compare([record("t")], [record("u")])
    with pytest.raises(ValueError, match="one agent on each side can be compared, and not a, b at once"):
        compare([record("t"), record("t", agent="b")], [record("t")])


def of_tasks(record: MakeRecord, **passed: int) -> list[RoundRecord]:
    """Four rounds at each task, of which so many are passed."""
    return [
        record(task, index, "passed" if index <= number else "failed", of=4)
        for task, number in passed.items()
        for index in range(1, 5)
    ]


def test_the_p_value_is_that_of_the_permutation_test_over_tasks(record: MakeRecord) -> None:
    first = of_tasks(record, a=4, b=3, c=2, d=2, e=4, f=1)
    second = of_tasks(record, a=1, b=2, c=2, d=1, e=2, f=2)
    found = compare(first, second)
    # Of the 32 choices of signs of 3, 1, 1, 2 and 1 rounds, these sum up to 6 or more: all that are positive, and those
    # where one of the three that are 1 is not.
    assert found.test is not None
    assert (found.p_lower, found.p_value, found.test.exact) == (4 / 32, 8 / 32, True)
    assert compare(second, first).p_lower == 1 - 1 / 32


def test_fewer_than_five_tasks_have_no_p_value_and_cannot_show_a_regression(record: MakeRecord) -> None:
    first, second = (of_tasks(record, **dict.fromkeys("abcde", number)) for number in (4, 0))
    all_five = compare(first, second)
    four = compare(first[:16], second[:16])
    assert (four.interval, four.test, four.p_value, four.flips_by_task_p_value) == (None, None, None, None)
    assert all_five.p_lower == 1 / 32
    assert regressed([four]) == [None]
    assert regressed([all_five]) == [True]
    assert regressed([compare(second, first)]) == [False]


def test_what_is_worse_beyond_noise_is_judged_by_the_number_of_comparisons(record: MakeRecord) -> None:
    first, second = (of_tasks(record, **dict.fromkeys("abcde", number)) for number in (4, 0))
    four = compare(first[:16], second[:16])
    # Holm: of two the smaller p-value has to be half as small. What cannot be told is no comparison.
    assert regressed([compare(first, second)] * 2) == [False, False]
    assert regressed([compare(first, second), four]) == [True, None]


def test_ties_tell_nothing(record: MakeRecord) -> None:
    first = of_tasks(record, a=4, b=3, c=2, d=2, e=4)
    found = compare(first, first)
    assert (found.p_value, found.p_lower, found.flips_p_value, found.flips_by_task_p_value) == (1.0, 1.0, 1.0, 1.0)
    assert regressed([found]) == [False]


def test_flips_are_tested_with_rounds_as_units_and_with_tasks(record: MakeRecord) -> None:
    ties = {"c": 2, "d": 2, "e": 2, "f": 2, "g": 2}
    one_task = compare(of_tasks(record, a=4, b=0, **ties), of_tasks(record, a=0, b=1, **ties))
    assert one_task.flips_p_value == 12 / 32
    assert one_task.flips_by_task_p_value == 1.0
    spread = compare(of_tasks(record, **dict.fromkeys("abcdef", 2)), of_tasks(record, **dict.fromkeys("abcdef", 1)))
    assert (spread.flips_p_value, spread.flips_by_task_p_value) == (2 / 64, 2 / 64)


def test_the_numbers_of_attempts_are_told(record: MakeRecord) -> None:
    first = [record("t", attempt=attempt) for attempt in (1, 2)] + [record("u")]
    second = [record("t", attempt=attempt) for attempt in (1, 2, 3)] + [record("u")]
    found = compare(first, second)
    assert (found.attempts, found.same_attempts) == (((1, 2), (1, 3)), False)
    assert compare(first, first).same_attempts


def share_of(matrix: Matrix, task: str) -> Fraction:
    """The share of a task's rounds that are passed, over all attempts."""
    places = product(matrix.attempts(task), range(1, matrix.declared[task] + 1))
    cells = [matrix.passed(task, attempt, index) for attempt, index in places]
    return Fraction(sum(cells), len(cells))


@given(matrices(tasks=7), matrices(tasks=7))
def test_comparisons_agree_with_counting(first: Matrix, second: Matrix) -> None:
    both = sorted(first.declared.keys() & second.declared.keys())
    found = compare(first.grid, second.grid)
    differences = [share_of(second, task) - share_of(first, task) for task in both]
    total = sum(differences, Fraction(0))
    assert found.difference == pytest.approx(float(100 * total / len(both)))
    assert (found.won, found.lost) == (sum(each > 0 for each in differences), sum(each < 0 for each in differences))
    sums = []
    for signs in product((-1, 1), repeat=len(both)):
        pairs = zip(signs, differences, strict=True)
        sums.append(sum((sign * each for sign, each in pairs), Fraction(0)))
    expected = None if len(both) < 5 else sum(abs(each) >= abs(total) for each in sums) / len(sums)
    assert found.p_value == expected
    lost, won = sum(flip.lost for flip in found.flips), sum(not flip.lost for flip in found.flips)
    tail = sum(comb(lost + won, number) for number in range(min(lost, won) + 1))
    assert found.flips_p_value == pytest.approx(min(1, 2 * tail / 2 ** (lost + won)))
    back = compare(second.grid, first.grid)
    assert back.p_value == found.p_value
    assert back.difference == pytest.approx(-found.difference)
