"""The benchmark's numbers against sums done by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_evocode.metrics.analyses import first_failures, pass_rates
from pytest_evocode.metrics.grid import Grid, suite_facts
from pytest_evocode.metrics.intervals import intervals
from pytest_evocode.metrics.over_attempts import over_attempts
from pytest_evocode.metrics.scores import (
    avg_rounds,
    case_score,
    dataset_score,
    mean_rewards,
    perfect_tasks,
    pinned_case_score,
    scores,
)
from pytest_evocode.results.records import Outcome, RoundRecord, Verdict

MakeRecord = Callable[..., RoundRecord]


def test_the_dataset_score_is_the_mean_over_tasks_of_the_share_of_rounds_passed(record: MakeRecord) -> None:
    one = [record("one", 1, of=2), record("one", 2, "failed", of=2)]
    two = [record("two", i, outcome, of=4) for i, outcome in enumerate(["passed", "passed", "passed", "failed"], 1)]
    # (1/2 + 3/4) / 2; over all rounds it would be 4/6.
    assert dataset_score(one + two) == pytest.approx(62.5)


@pytest.mark.parametrize("outcome", ["failed", "error", "not reached"])
def test_whatever_is_not_passed_counts_nothing(record: MakeRecord, outcome: Outcome) -> None:
    assert dataset_score([record("t", 1, of=2), record("t", 2, outcome, of=2)]) == 50.0


def test_rounds_without_a_record_count_as_not_passed(record: MakeRecord) -> None:
    assert dataset_score([record("t", 1, of=10)]) == 10.0
    assert case_score([record("t", 1, of=10, cases="pp")]) == 10.0
    assert perfect_tasks([record("t", 1, of=10)]) == 0


def test_attempts_are_averaged_inside_their_task(record: MakeRecord) -> None:
    once = [record("once", 1, of=1)]
    thrice = [record("thrice", 1, outcome, of=1, attempt=i) for i, outcome in enumerate(["passed", "failed", "error"])]
    # (1 + 1/3) / 2; by attempts it would be 2/4.
    assert dataset_score(once + thrice) == pytest.approx(200 / 3)


def test_the_case_score_is_the_mean_share_of_passed_cases_and_not_the_share_of_all_cases(record: MakeRecord) -> None:
    records = [
        record("one", 1, "failed", of=2, cases="ppfe"),
        record("one", 2, "passed", of=2, cases="p"),
        record("two", 1, "failed", of=1, cases="fffff"),
    ]
    # ((2/4 + 1/1) / 2 + 0) / 2
    assert case_score(records) == pytest.approx(37.5)


def test_a_skipped_case_is_one_that_did_not_pass(record: MakeRecord) -> None:
    assert case_score([record(cases="ps")]) == 50.0


def test_a_round_that_failed_without_cases_or_has_no_verdict_has_a_case_ratio_of_zero(record: MakeRecord) -> None:
    records = [
        record("t", 1, of=4, cases="p"),
        record("t", 2, "failed", of=4, cases=""),
        record("t", 3, "error", of=4),
        record("t", 4, "not reached", of=4),
    ]
    assert case_score(records) == 25.0


def test_a_round_that_passed_without_cases_is_left_out_of_the_case_score(record: MakeRecord) -> None:
    assert case_score([record("t", 1, of=2, cases="pf"), record("t", 2, of=2)]) == 50.0


def test_a_task_whose_suites_report_no_cases_is_left_out_of_the_case_score(record: MakeRecord) -> None:
    silent = [record("t", 1, of=3), record("t", 2, "failed", of=3), record("t", 3, "not reached", of=3)]
    row = scores([*silent, record("u", 1, cases="pf")])
    assert (row.case_score, row.case_tasks, row.tasks) == (50.0, 1, 2)
    row = scores(silent)
    assert (row.case_score, row.case_tasks, row.tasks) == (None, 0, 1)


def test_a_task_without_any_verdict_counts_zero_in_the_case_score(record: MakeRecord) -> None:
    assert case_score([record("t", 1, "error"), record("u", 1, cases="p")]) == 50.0


def test_a_suite_that_was_stopped_does_not_tell_that_it_reports_no_cases(record: MakeRecord) -> None:
    stopped = record("t", 1, "failed")
    assert stopped.verdict is not None
    verdict = stopped.verdict.model_copy(update={"timed_out": True})
    assert case_score([stopped.model_copy(update={"verdict": verdict})]) == 0.0


def test_a_round_that_broke_down_after_its_verdict_has_a_case_ratio_of_zero(record: MakeRecord) -> None:
    broken = record(cases="pp").model_copy(update={"outcome": "error"})
    assert case_score([broken]) == 0.0
    assert broken.verdict is not None
    pinned = broken.model_copy(update={"verdict": broken.verdict.model_copy(update={"pinned": (2, 2)})})
    assert pinned_case_score([pinned]) == 0.0


def test_avg_rounds_is_the_mean_of_tool_calls_over_rounds_and_then_over_tasks(record: MakeRecord) -> None:
    records = [
        record("one", 1, of=3, tool_calls=10),
        record("one", 2, of=3, tool_calls=0),
        record("one", 3, of=3, tool_calls=None),
        record("two", 1, of=1, tool_calls=25),
        record("three", 1, of=1, tool_calls=None),
    ]
    # (mean(10, 0) + 25) / 2: the round and the task without a trajectory are left out, the round without calls is not.
    assert avg_rounds(records) == 15.0


def test_avg_rounds_of_an_agent_without_trajectories_is_unknown_and_not_zero(record: MakeRecord) -> None:
    assert avg_rounds([record(), record("u")]) is None
    assert avg_rounds([record(tool_calls=0)]) == 0.0


def test_a_failed_round_counts_in_avg_rounds(record: MakeRecord) -> None:
    assert (
        avg_rounds([record("t", 1, "failed", of=2, tool_calls=4), record("t", 2, "error", of=2, tool_calls=2)]) == 3.0
    )


def test_a_perfect_task_has_all_its_rounds_passed_in_one_attempt(record: MakeRecord) -> None:
    halves = [
        record("halves", 1, "passed", of=2, attempt=1),
        record("halves", 2, "failed", of=2, attempt=1),
        record("halves", 1, "failed", of=2, attempt=2),
        record("halves", 2, "passed", of=2, attempt=2),
    ]
    assert perfect_tasks(halves) == 0
    second = [record("second", 1, "failed", attempt=1), record("second", 1, "passed", attempt=2)]
    assert perfect_tasks(halves + second) == 1


def test_the_row_of_an_agent_has_everything_at_once(record: MakeRecord) -> None:
    row = scores(
        [
            record("one", 1, of=1, cases="pp", tool_calls=3, agent_seconds=1.5, verifier_seconds=0.25),
            record("two", 1, "error", of=1, agent_seconds=2.0),
        ]
    )
    assert (row.dataset_score, row.case_score, row.avg_rounds) == (50.0, 50.0, 3.0)
    assert (row.perfect_tasks, row.tasks, row.seconds) == (1, 2, 3.75)


def test_time_of_single_rounds_beside_a_chain_is_not_the_chains(record: MakeRecord) -> None:
    chain, single = [record("t", 1, of=1, agent_seconds=4.0)], [record("t", 1, of=1, agent_seconds=1.5)]
    both = scores(chain, single)
    assert (both.seconds, both.sr, both.gap) == (4.0, 100.0, 0.0)
    assert scores([], single).seconds == 1.5


def test_time_that_nobody_measured_is_unknown_and_not_zero(record: MakeRecord) -> None:
    assert scores([record("t", 1, "error")]).seconds is None
    assert scores([record(agent_seconds=0.0)]).seconds == 0.0


def test_an_agent_gains_nothing_by_suites_that_report_no_cases(record: MakeRecord) -> None:
    silent = [record("t", 1, "failed", of=2), record("t", 2, of=2)]
    assert case_score(silent) is None, "nothing tells that there are any"
    oracle = [record("t", index, of=2, agent="oracle", cases="pp") for index in (1, 2)]
    known = suite_facts([*silent, *oracle])
    row = scores(Grid.of(silent, suites=known))
    assert (row.case_score, row.case_tasks) == (0.0, 1), "neither the round that failed nor the one that passed"
    half = suite_facts([*silent, oracle[0], record("t", 2, of=2, agent="oracle")])
    assert case_score(Grid.of(silent, suites=half)) == 0.0
    assert case_score(Grid.of(oracle, suites=known)) == 100.0


def test_silence_in_one_attempt_counts_nothing_where_another_reports_cases(record: MakeRecord) -> None:
    records = [record(cases="pp"), record(attempt=2)]
    assert case_score(records) == 50.0
    assert over_attempts(Grid.of(records))["case_score"].by_attempt == {1: 100.0, 2: 0.0}


def test_a_suite_without_the_reports_that_its_task_names_has_cases(record: MakeRecord) -> None:
    lost = record("t", 1, "failed")
    assert lost.verdict is not None
    verdict = lost.verdict.model_copy(update={"lacks_reports": True})
    assert case_score([lost.model_copy(update={"verdict": verdict})]) == 0.0


def undecided(record: MakeRecord, index: int, of: int, attempt: int = 1, **rewards: float) -> RoundRecord:
    verdict = Verdict(reward=None, rewards=rewards or {"tests": 1.0, "style": 0.5})
    made = record("t", index, of=of, attempt=attempt)
    return made.model_copy(update={"outcome": "undecided", "verdict": verdict})


def test_rounds_that_no_reward_decides_are_left_out_wherever_passes_count(record: MakeRecord) -> None:
    records = [record("t", 1, of=3), undecided(record, 2, 3), record("t", 3, "failed", of=3)]
    row = scores(records)
    assert (row.dataset_score, row.mt_at_k, row.final_round_completion) == (50.0, 50.0, 0.0)
    assert (row.perfect_tasks, row.undecided, row.decided_tasks, row.tasks) == (0, 1, 1, 1)
    assert mean_rewards(records) == pytest.approx({"reward": 100 / 3, "style": 50 / 3, "tests": 100 / 3})


def test_a_task_that_no_reward_decides_has_no_score_but_means_by_key(record: MakeRecord) -> None:
    records = [undecided(record, 1, 2), undecided(record, 2, 2, tests=0.0, style=0.5)]
    row = scores(records, records)
    numbers = (row.dataset_score, row.mt_at_k, row.hard_tasks, row.final_round_completion, row.mean_reward)
    assert numbers == (None,) * 5
    assert (row.sr, row.sr_macro, row.gap, row.reliability) == (None,) * 4
    assert (row.perfect_tasks, row.decided_tasks, row.tasks) == (None, 0, 1)
    assert mean_rewards(records) == {"style": 50.0, "tests": 50.0}
    assert intervals(records, records)["dataset_score"] is None
    assert (pass_rates(records), first_failures(records), over_attempts(Grid.of(records))) == ({}, [], {})
    both = [*records, *(each.model_copy(update={"task": "u", "outcome": "passed"}) for each in records)]
    assert scores(both).dataset_score == 100.0


def test_an_agent_gains_nothing_by_suites_that_leave_the_deciding_reward_out(record: MakeRecord) -> None:
    mine = [undecided(record, 1, 2), undecided(record, 2, 2)]
    oracle = [record("t", index, of=2, agent="oracle") for index in (1, 2)]
    known = suite_facts([*mine, *oracle])
    assert dataset_score(Grid.of(mine, suites=known)) == 0.0
    assert perfect_tasks(Grid.of(mine, suites=known)) == 0
    row = scores(Grid.of(mine, suites=known))
    assert (row.undecided, row.undecided_failed) == (2, 2)
    again = [*mine, record("t", 1, of=2, attempt=2), undecided(record, 2, 2, attempt=2)]
    assert dataset_score(again) == 50.0, "the first attempt at the round that the second decides"
    row = scores(again)
    assert (row.undecided, row.undecided_failed) == (3, 1)
