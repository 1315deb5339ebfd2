"""The numbers of other benchmarks, worked out by hand from their published definitions."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.neighbours import published, summary
from pytest_evocode.metrics.neighbours.round_cases import TaskCases, task_cases
from pytest_evocode.metrics.neighbours.summary import agent_metrics
from pytest_evocode.results.records import Case, Verdict
from tests.metrics.conftest import make_record
from tests.metrics.neighbours.test_round_cases import Suites, rounds, words


def of(suites: Suites, **values: Any) -> Grid:
    return Grid.of(rounds(suites, **values), selected={"t": 3})


def cases(suites: Suites) -> list[TaskCases]:
    return task_cases(of(suites))[0]


#: Round 1 has a and b; 2 fails one of its two and loses b; 3 regains b, retires a and loses c.
CHAIN = {1: "pa pb", 2: "pa fb pc fd", 3: "pb fc fd pe"}


def test_evoclaw_takes_new_cases_for_its_target_and_all_older_failures_for_broken() -> None:
    found = [each for each in map(published.milestone_of_round, cases(CHAIN)[0].attempts[0]) if each is not None]
    assert [each.recall for each in found] == [100, 50, 100]
    assert [each.precision for each in found] == [100, pytest.approx(100 * 2 / 3), 50]  # 3/3, 2/(2+1), 2/(2+2)
    assert [each.f1 for each in found] == [100, pytest.approx(400 / 7), pytest.approx(200 / 3)]
    whole = published.milestones(cases(CHAIN))
    assert whole is not None
    assert whole.f1 == pytest.approx((100 + 400 / 7 + 200 / 3) / 3)


@pytest.mark.parametrize("third", [None, "", "sb"])
def test_evoclaw_gives_nothing_for_a_milestone_without_a_test_that_ran(third: str | None) -> None:
    assert published.milestone_of_round(cases({**CHAIN, 3: third})[0].attempts[0][2]) == published.Milestones(0, 0, 0)


def test_evoclaw_smooths_the_precision_by_one() -> None:
    assert published.milestone(target=2, fixed=0, broken=0) == published.Milestones(0, 100, 0)
    assert published.milestone(target=2, fixed=0, broken=3).precision == 25


def fix_rates(suites: Suites) -> list[float | None]:
    return [published.fix_rate_of_round(each) for each in cases(suites)[0].attempts[0]]


def test_fix_rate_is_nothing_where_anything_was_lost() -> None:
    assert fix_rates(CHAIN) == [100, 0, 0]
    # What failed before is not lost again.
    assert fix_rates({1: "pa fb", 2: "pa fb pc fd"}) == [50, 50, 0]
    assert published.fix_rate(cases({1: "pa fb", 2: "pa fb pc fd"})) == pytest.approx(100 / 3)


def test_a_round_that_asks_for_nothing_new_has_no_fix_rate() -> None:
    assert fix_rates({1: "pa", 2: "pa", 3: "fa"}) == [100, None, None]
    assert published.fix_rate(cases({1: "pa", 2: "pa", 3: "fa"})) == 100


def test_where_no_attempt_tells_what_a_round_requires_nothing_is_measured() -> None:
    # A suite that failed although none of its cases did broke off; so did one that has fewer than are pinned.
    verdict = Verdict(reward=0, rewards={}, cases=(Case(id="a", status="passed"),))
    few = Verdict(reward=0, rewards={}, cases=(Case(id="a", status="failed"),), pinned=(0, 3))
    stopped = Verdict(reward=0, rewards={}, cases=(Case(id="a", status="failed"),), timed_out=True)
    for each in (verdict, few, stopped):
        broken = make_record(index=2, of=2, outcome="failed", verdict=each)
        attempt = task_cases(Grid.of([*rounds({1: "pa pb"}, of=2), broken]))[0][0].attempts[0]
        assert (attempt[1].told, words(attempt[1].required)) == (False, ["a b"])
        assert published.milestone_of_round(attempt[1]) is None
        assert published.fix_rate_of_round(attempt[1]) is None
        assert published.change_of_round("t", attempt[1], {}) is None
        others = Grid.of(rounds({1: "pa pb", 2: "pa fb fc"}, of=2, agent="b")).tasks
        told = task_cases(Grid.of([*rounds({1: "pa pb"}, of=2), broken]), others=others)[0][0].attempts[0][1]
        assert (told.told, words(told.new, told.old)) == (True, ["c", "a b"])
        assert "b" in told.lost


def test_evo_score_is_relative_to_what_passes_untouched() -> None:
    untouched = of({1: "fa fb", 2: "fa fb fc pd", 3: "pb pc fd fe"}, agent="nop")
    base = published.base_of(untouched)
    # 2 of 2 from 0; 2 of 4 from 1, a third of the way; 2 of 4 from 2, no change.
    assert published.evo_score(cases(CHAIN), base) == pytest.approx(100 * (1 + 1 / 3 + 0) / 3)
    assert published.evo_score(cases(CHAIN), base, gamma=2) == pytest.approx(100 * (2 * 1 + 4 / 3) / 14)
    assert published.evo_score(task_cases(untouched)[0], base) == 0


def test_evo_score_falls_below_nothing_where_less_passes_than_untouched() -> None:
    base = published.base_of(of({1: "pa pb pc pd fe"}, agent="nop"))
    assert published.evo_score(cases({1: "fa pb pc fd fe"}), base) == pytest.approx(100 * -0.5 / 3)
    reference = of({1: "pa pb pc pd pe"}, agent="oracle")
    assert published.evo_score(task_cases(of({1: ""}), reference)[0], base) == pytest.approx(-100 / 3)
    assert published.evo_score(task_cases(of({1: None}), reference)[0], base) == 0


def test_without_what_passes_untouched_evo_score_is_the_case_score() -> None:
    assert published.evo_score(cases(CHAIN)) == pytest.approx(100 * (1 + 0.5 + 0.5) / 3)


def test_zero_regression_counts_attempts_that_lost_nothing() -> None:
    records = [*rounds(CHAIN, attempt=1), *rounds({1: "pa fb", 2: "pa pb"}, attempt=2)]
    found = published.zero_regression(task_cases(Grid.of(records, attempts=3))[0])
    assert found == published.ZeroRegression(without=1, of=2, percent=50)
    assert published.zero_regression(cases({1: None})) is None


def test_regressions_accumulate_until_they_are_recovered_or_retired() -> None:
    (attempt,) = cases({1: "pa pb pc", 2: "fa fb pc", 3: "pa pc"})[0].attempts
    found = [each for _, each, _ in summary.accumulation(attempt)]
    assert [(each.lost, each.recovered, each.standing, each.so_far) for each in found] == [
        (0, 0, 0, 0),
        (2, 0, 2, 2),
        (0, 1, 0, 2),  # b is retired.
    ]


def test_a_case_that_is_lost_twice_counts_twice() -> None:
    suites = {1: "pa pb", 2: "fa pb", 3: "pa pb", 4: "fa fb"}
    (attempt,) = task_cases(Grid.of(rounds(suites, of=4)))[0][0].attempts
    assert list(summary.accumulation(attempt))[-1] == (4, summary.RoundRegressions(2, 0, 2, 3), 2)
    found = summary.regressions(task_cases(Grid.of(rounds(suites, of=4)))[0])
    assert found == summary.Regressions(lost=3, recovered=1, standing=2, standing_share=100)


def test_means_are_taken_over_attempts_and_then_over_tasks() -> None:
    records = [
        *rounds({1: "pa"}, of=1, task="t", attempt=1),
        *rounds({1: "fa"}, of=1, task="t", attempt=2),
        *rounds({1: "pa"}, of=1, task="u"),
    ]
    found = agent_metrics(Grid.of(records))
    assert (found.whole.fix_rate, found.whole.evo_score) == (75, 75)
    assert found.by_round[1].fix_rate == 75
    assert found.without_reference == found.without_base == ("t", "u")


def test_no_number_depends_on_the_order_of_records() -> None:
    records = [*rounds(CHAIN), *rounds({1: "pa", 2: None}, attempt=2), *rounds({1: "fx", 2: "px"}, of=2, task="u")]
    assert agent_metrics(Grid.of(records)) == agent_metrics(Grid.of(records[::-1]))


def test_single_rounds_accumulate_nothing() -> None:
    found = agent_metrics(of(CHAIN), single=True)
    assert found.whole.regressions is None
    assert found.whole.zero_regression is None
    assert found.whole.milestones is not None


def test_where_nothing_was_recorded_scores_are_0_and_regressions_not_measured() -> None:
    found = agent_metrics(Grid.of([], selected={"t": 2})).whole
    assert (found.evo_score, found.fix_rate, found.regressions, found.zero_regression) == (0, 0, None, None)
    assert found.milestones == published.Milestones(0, 0, 0)
