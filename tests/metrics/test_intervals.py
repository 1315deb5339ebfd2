"""Intervals over tasks: which there are, of what, by which method, and why there is none."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.intervals import (
    BOUNDED,
    Interval,
    interval_of_differences,
    intervals,
    intervals_or_reasons,
)
from pytest_evocode.metrics.scores import gap, scores
from pytest_evocode.metrics.statistics.intervals import bounded_interval
from pytest_evocode.results.records import RoundRecord, Verdict
from tests.metrics.matrices import Matrix, matrices

MakeRecord = Callable[..., RoundRecord]


def test_every_metric_has_an_interval_around_it_that_depends_on_no_order(record: MakeRecord) -> None:
    chain = [
        record(f"t{number}", index, "passed" if (number + index + attempt) % 3 else "failed", of=4, attempt=attempt,
               cases="ppff"[: 1 + number % 4], tool_calls=number * index, rewards={"reward": (number % 3) / 2})
        for number in range(12) for index in range(1, 5) for attempt in (1, 2)
    ]  # fmt: skip
    single = [record(f"t{number}", index, "passed" if number % 4 else "failed", of=4)
              for number in range(12) for index in range(1, 5)]  # fmt: skip
    row, found = scores(chain, single), intervals(chain, single)
    assert found == intervals(list(reversed(chain)), list(reversed(single)))
    for name, interval in found.items():
        score = getattr(row, name)
        assert (interval is None) == (score is None) == (name == "pinned_case_score"), name
        if interval is not None:
            assert interval.low <= score <= interval.high, name
    unsure = ["dataset_score", "case_score", "avg_rounds", "mean_reward", "mt_at_k", "reliability", "sr", "gap"]
    for name in unsure:
        interval = found[name]
        assert interval is not None
        assert interval.low < interval.high, name


def test_of_seven_tasks_it_holds_the_true_score_as_often_as_it_says(record: MakeRecord) -> None:
    # What EvoCode-Bench published of DeepSeek-V4-Pro, where percentiles of a bootstrap hold the mean 82 times in 100.
    passed = [0, 0, 0, 0, 2 / 7, 4 / 13, 0, 4 / 8, 0, 1 / 7, 0, 0, 0, 1 / 8, 4 / 9, 0, 2 / 8, 1 / 7, *[0] * 7, 9 / 15]
    held = 0
    for seed in range(100):
        found = bounded_interval(Random(seed).choices(passed, k=7), 0, 1)
        held += found[0] <= sum(passed) / 26 <= found[1]
    assert held >= 93


def test_perfect_tasks_and_avg_rounds_keep_their_units(record: MakeRecord) -> None:
    records = [
        record(f"t{number}", 1, "passed" if number < 5 else "failed", tool_calls=30 + number) for number in range(10)
    ]
    found = intervals(records)
    calls, perfect = found["avg_rounds"], found["perfect_tasks"]
    assert calls is not None
    assert [calls.low, calls.high] == pytest.approx([34.5 - 2.166, 34.5 + 2.166], abs=0.001)
    assert calls.method == "Student's t"
    assert perfect is not None
    assert [perfect.low, perfect.high] == pytest.approx([1.9875, 8.0125], abs=1e-4)
    assert perfect.method == BOUNDED


@pytest.mark.parametrize("tasks", [0, 1, 4])
def test_below_five_tasks_there_is_no_interval_and_a_reason(record: MakeRecord, tasks: int) -> None:
    chain = [record(f"t{number}", 1, "failed" if number else "passed", tool_calls=number) for number in range(tasks)]
    assert set(intervals(chain, chain).values()) == {None}
    found = intervals_or_reasons(chain, chain)
    assert found["dataset_score"] == found["gap"] == ("no interval below 5 tasks" if tasks else "")
    assert found["pinned_case_score"] == ""
    assert interval_of_differences([1.0, 2.0, 3.0, 4.0]) is None


def test_equal_scores_leave_an_interval_and_equal_tool_calls_none(record: MakeRecord) -> None:
    records = [record(f"t{number}", 1, "failed", tool_calls=30) for number in range(26)]
    found = intervals_or_reasons(records)
    for name in ("dataset_score", "final_round_completion", "mt_at_k"):
        interval = found[name]
        assert isinstance(interval, Interval)
        assert [interval.low, interval.high] == pytest.approx([0, 9.2933], abs=1e-4), name
    assert found["avg_rounds"] == "no interval of equal values that nothing bounds"


def test_rewards_beyond_one_are_not_bounded_by_it(record: MakeRecord) -> None:
    records = [record(f"t{number}", 1, verdict=Verdict(reward=number, rewards={})) for number in range(5)]
    found = intervals(records)["mean_reward"]
    assert found is not None
    assert found.method == "Student's t"
    assert (found.low, found.high) == pytest.approx((200 - 196.33, 200 + 196.33), abs=0.1)


def test_sr_weighs_tasks_by_their_rounds(record: MakeRecord) -> None:
    tasks = {"long": (9, 9), "short": (0, 1), "t": (2, 5), "u": (5, 5), "v": (1, 4), "w": (0, 3)}
    single = [
        record(task, index, "passed" if index <= passed else "failed", of=of)
        for task, (passed, of) in tasks.items()
        for index in range(1, of + 1)
    ]
    found = intervals((), single)
    passed, of = ([float(each[place]) for each in tasks.values()] for place in (0, 1))
    expected = bounded_interval(passed, 0, 1, sizes=of)
    sr = found["sr"]
    assert sr is not None
    assert (sr.low, sr.high) == pytest.approx([100 * each for each in expected])
    assert found["dataset_score"] is None
    assert found["gap"] is None


def test_a_gap_of_other_tasks_has_no_interval(record: MakeRecord) -> None:
    chain = [record(task, 1) for task in "tuvwx"]
    assert intervals(chain, [record(task, 1) for task in "tuvwy"])["gap"] is None
    found = intervals(chain, [record(task, 1, "failed") for task in "tuvwx"])["gap"]
    assert found is not None
    assert -100 == found.low < found.high < 0


def test_a_gap_of_equal_tasks_is_the_interval_of_their_differences(record: MakeRecord) -> None:
    single_passes, chain_passes = [2, 2, 1, 2, 0, 2], [2, 1, 1, 0, 0, 1]
    single, chain = (
        [
            record(f"t{place}", index, "passed" if index <= passes else "failed", of=2)
            for place, passes in enumerate(sides)
            for index in (1, 2)
        ]
        for sides in (single_passes, chain_passes)
    )
    differences = [50.0 * (one - other) for one, other in zip(single_passes, chain_passes, strict=True)]
    found, expected = intervals(chain, single)["gap"], interval_of_differences(differences)
    assert found is not None
    assert expected is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_differences_that_nothing_bounds_are_students_or_none() -> None:
    found = interval_of_differences([1.0, 2.0, 3.0, 4.0, 5.0], bound=None)
    assert found is not None
    assert [found.low, found.high] == pytest.approx([1.0368, 4.9632], abs=1e-4)
    assert found.method == "Student's t"
    assert interval_of_differences([2.0] * 5, bound=None) is None


def test_where_most_tasks_are_tied_their_number_tells_how_much_the_others_can_differ() -> None:
    tied = interval_of_differences([0.0] * 26)
    assert tied is not None
    assert [tied.low, tied.high] == pytest.approx([-9.2933, 9.2933], abs=1e-4)
    few = interval_of_differences([0.0, 20.0, 0.0, 10.0, 0.0, 0.0, 0.0])
    assert few is not None
    expected = bounded_interval([0.0] * 5 + [10.0, 20.0], -100, 100)
    assert ((few.low, few.high), few.method) == (expected, BOUNDED)
    several = interval_of_differences([0.0, 20.0, 0.0, 10.0, 30.0, -5.0, 0.0])
    assert several is not None
    assert several.method == "Student's t"


def test_a_gap_of_other_rounds_is_none(record: MakeRecord) -> None:
    chain = [record(task, index, of=2) for task in ("t", "u") for index in (1, 2)]
    parts = Grid.of([each for each in chain if each.index == 2], partial={("t", 1): (2,), ("u", 1): (2,)})
    assert [gap(chain, chain), gap(chain, parts), gap(parts, parts)] == [0.0, None, None]
    assert intervals(chain, parts)["gap"] is None


@settings(max_examples=5)
@given(matrices(tasks=7))
def test_no_results_break_the_intervals(matrix: Matrix) -> None:
    for interval in intervals(matrix.grid, matrix.grid).values():
        assert interval is None or interval.low <= interval.high
