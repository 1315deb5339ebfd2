"""pass@k and pass^k: against all subsets of attempts that there are, and where attempts are unequal."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.over_attempts import Unit, all_of, any_of, pass_at_k
from pytest_evocode.metrics.scores import dataset_score, mt_at_k, perfect_tasks, reliability, scores
from pytest_evocode.results.records import RoundRecord
from tests.metrics.matrices import Matrix, matrices

MakeRecord = Callable[..., RoundRecord]


@pytest.mark.parametrize("n", range(1, 7))
def test_the_estimators_are_the_share_of_all_subsets_of_k_attempts(n: int) -> None:
    for c in range(n + 1):
        attempts = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(combinations(attempts, k))
            assert any_of(n, c, k) == pytest.approx(fmean(map(any, subsets)))
            assert all_of(n, c, k) == pytest.approx(fmean(map(all, subsets)))


def test_they_are_exact_for_many_attempts() -> None:
    # 1 - C(n-1,k) / C(n,k) is k / n, and C(n-1,k) / C(n,k) is 1 - k / n; the numbers of ways have 1,500 digits.
    assert any_of(5000, 1, 2500) == all_of(5000, 4999, 2500) == 0.5
    assert any_of(5000, 1, 7) == float(Fraction(7, 5000))
    assert (any_of(5000, 4999, 2), all_of(5000, 1, 2)) == (1.0, 0.0)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 0), (4, 1, 5), (4, 5, 1), (4, -1, 1), (0, 0, 1)])
def test_what_cannot_be_estimated_is_refused(n: int, c: int, k: int) -> None:
    for estimator in (any_of, all_of):
        with pytest.raises(ValueError, match=f"k={k} of n={n} attempts of which c={c} passed"):
            estimator(n, c, k)


@pytest.mark.parametrize("unit", ["round", "task"])
@given(matrix=matrices())
def test_over_rounds_and_tasks_they_are_means_over_tasks_of_all_subsets(unit: Unit, matrix: Matrix) -> None:
    found = pass_at_k(matrix.grid, unit)
    assert [each.k for each in found] == list(range(1, matrix.made + 1))
    for each in found:
        expected_any, expected_all = [], []
        for task, declared in matrix.declared.items():
            rounds = range(1, declared + 1)
            units = [[index] for index in rounds] if unit == "round" else [list(rounds)]
            shares = []
            for indices in units:
                ways = [all(matrix.passed(task, a, index) for index in indices) for a in matrix.attempts(task)]
                subsets = list(combinations(ways, each.k))
                shares.append((fmean(map(any, subsets)), fmean(map(all, subsets))))
            expected_any.append(fmean(share for share, _ in shares))
            expected_all.append(fmean(share for _, share in shares))
        assert each.pass_at_k == pytest.approx(100 * fmean(expected_any))
        assert each.pass_hat_k == pytest.approx(100 * fmean(expected_all))
        assert each.tasks == len(matrix.declared)


@given(matrices())
def test_at_the_ends_they_are_scores_with_other_names(matrix: Matrix) -> None:
    rounds, tasks = pass_at_k(matrix.grid, "round"), pass_at_k(matrix.grid, "task")
    assert rounds[0].pass_at_k == rounds[0].pass_hat_k == pytest.approx(dataset_score(matrix.grid))
    assert rounds[-1].pass_at_k == pytest.approx(mt_at_k(matrix.grid, fail_stop=False))
    assert tasks[-1].pass_at_k == pytest.approx(100 * perfect_tasks(matrix.grid) / len(matrix.declared))


def test_of_fail_stop_attempts_it_is_the_mean_of_mt_at_k_over_all_choices_of_k(record: MakeRecord) -> None:
    passed = {"t": (2, 1, 3), "u": (0, 2, 1)}  # So many of its three rounds, and then it fails.
    attempts = [
        [record(task, index, attempt=number, of=3) for task in passed for index in range(1, passed[task][number] + 1)]
        for number in range(3)
    ]
    declared = dict.fromkeys(passed, 3)
    everything = Grid.of([each for attempt in attempts for each in attempt], selected=declared, attempts=3)
    for found in pass_at_k(everything, "round"):
        chosen = combinations(attempts, found.k)
        grids = (Grid.of([r for part in parts for r in part], selected=declared, attempts=found.k) for parts in chosen)
        assert found.pass_at_k == pytest.approx(fmean(mt_at_k(grid) or 0.0 for grid in grids))


def test_tasks_with_fewer_attempts_have_no_estimate_for_a_larger_k(record: MakeRecord) -> None:
    records = [record("t", 1, outcome, attempt=i) for i, outcome in enumerate(("passed", "failed", "passed"))]
    one, two, three = pass_at_k([*records, record("u", 1, "failed")], "round")
    assert [one.tasks, two.tasks, three.tasks] == [2, 1, 1]
    assert [one.pass_at_k, two.pass_at_k, three.pass_at_k] == pytest.approx([100 / 3, 100, 100])
    assert [one.pass_hat_k, two.pass_hat_k, three.pass_hat_k] == pytest.approx([100 / 3, 100 / 3, 0])


def test_a_partial_attempt_counts_at_its_own_rounds_and_at_no_whole_task(record: MakeRecord) -> None:
    records = [record("t", index, of=2) for index in (1, 2)] + [record("t", 1, "failed", of=2, attempt=2)]
    grid = Grid.of(records, partial={("t", 2): {1}})
    one, two = pass_at_k(grid, "round")
    assert (one.pass_at_k, two.pass_at_k, two.pass_hat_k) == (75.0, 100.0, 0.0)
    assert [(found.k, found.pass_at_k) for found in pass_at_k(grid, "task")] == [(1, 100.0)]
    # Nor are the same rounds of two attempts.
    both = Grid.of([record("t", 1, of=2), record("t", 1, of=2, attempt=2)], partial={("t", 1): {1}, ("t", 2): {1}})
    assert pass_at_k(both, "task") == []


def test_nothing_has_no_estimate() -> None:
    assert pass_at_k([], "round") == []


# Reliability.


def test_of_one_attempt_nobody_knows_how_reliable_it_is(record: MakeRecord) -> None:
    assert reliability([record("t"), record("u")]) is None
    assert scores([record("t")]).reliability_tasks == 0


def test_reliability_is_over_the_tasks_with_several_attempts(record: MakeRecord) -> None:
    records = [record("t"), record("t", attempt=2), record("u", of=2), record("u", 2, of=2)]
    records += [record("v"), record("v", 1, "failed", attempt=2)]
    row = scores(records)
    assert (row.reliability, row.reliability_tasks, row.tasks) == (50.0, 2, 3)
