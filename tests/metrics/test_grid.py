"""Records in their places, and room for what left none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.metrics.analyses import first_failures, pass_rates
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.over_attempts import pass_at_k
from pytest_evocode.metrics.scores import (
    RunMode,
    dataset_score,
    final_round_completion,
    mean_reward,
    mean_rewards,
    mt_at_k,
    perfect_tasks,
    reliability,
    scores,
    sr,
)
from pytest_evocode.results.records import RoundRecord

MakeRecord = Callable[..., RoundRecord]


def test_a_round_that_was_brought_along_counts_nowhere() -> None:
    about: dict[str, Any] = {"task": "t", "agent": "a", "declared_rounds": 2, "outcome": "passed"}
    records = [
        RoundRecord(**about, attempt=number, round=f"r{index}", index=index, brought_along=(number, index) == (2, 1))
        for number in (1, 2)
        for index in (1, 2)
    ]
    (task,) = RunMode().grid(records).tasks
    assert [(task.passes(index), task.tries(index)) for index in (1, 2)] == [(1, 1), (2, 2)]


def test_a_selected_task_without_a_record_counts_zero(record: MakeRecord) -> None:
    grid = Grid.of([record("one", 1, of=1)], selected={"one": 1, "two": 3})
    assert dataset_score(grid) == 50.0
    assert sr(grid) == 25.0
    assert (scores(grid).tasks, scores(grid).rounds) == (2, 4)


def test_tasks_may_be_selected_by_an_agent_that_left_no_record_at_all() -> None:
    row = scores(Grid.of([], selected={"t": 2}))
    assert (row.dataset_score, row.perfect_tasks, row.tasks, row.avg_rounds, row.seconds) == (0.0, 0, 1, None, None)


def test_an_attempt_that_left_no_record_counts_zero_where_it_is_named(record: MakeRecord) -> None:
    records = [record("t", 1, of=1)]
    assert dataset_score(Grid.of(records)) == 100.0
    grid = Grid.of(records, attempts=4)
    assert (dataset_score(grid), mt_at_k(grid), reliability(grid)) == (25.0, 100.0, 0.0)


def test_attempts_may_be_named_by_task(record: MakeRecord) -> None:
    records = [record("once", 1, of=1), record("twice", 1, of=1)]
    assert dataset_score(Grid.of(records, attempts={"twice": 2})) == 75.0


def test_attempts_are_counted_whatever_their_numbers(record: MakeRecord) -> None:
    records = [record("t", 1, of=1, attempt=5), record("t", 1, "failed", of=1, attempt=9)]
    assert dataset_score(Grid.of(records, attempts=2)) == 50.0
    assert list(Grid.of(records, attempts=3).tasks[0].attempts) == [1, 5, 9]


def test_the_most_declared_rounds_that_any_record_or_the_caller_knows_hold(record: MakeRecord) -> None:
    records = [record("t", 1, of=2), record("t", 1, of=4, attempt=2)]
    assert dataset_score(records) == 25.0
    assert dataset_score(Grid.of(records, selected={"t": 10})) == 10.0


def test_rounds_before_the_begin_do_not_count(record: MakeRecord) -> None:
    records = [record("t", 1, "failed", of=4), record("t", 3, of=4), record("t", 4, "failed", of=4)]
    grid = Grid.of(records, begin={"t": 3})
    assert (dataset_score(grid), mt_at_k(grid), final_round_completion(grid)) == (50.0, 50.0, 0.0)
    assert perfect_tasks(Grid.of(records[:2], begin={"t": 3})) == 0
    assert perfect_tasks(Grid.of([*records[:2], record("t", 4, of=4)], begin={"t": 3})) == 1


def test_a_task_that_is_over_before_the_begin_was_not_selected(record: MakeRecord) -> None:
    assert dataset_score(Grid.of([record("t", 3, of=3)], selected={"short": 2}, begin={"short": 3, "t": 3})) == 100.0


def test_the_rewards_of_a_chain_that_began_later_are_those_of_its_rounds(record: MakeRecord) -> None:
    records = [
        record("t", 3, of=4, rewards={"reward": 0.5, "style": 1.0}),
        record("t", 4, of=4, rewards={"reward": 1.0, "style": 0.0}),
    ]
    grid = Grid.of(records, begin={"t": 3})
    assert mean_rewards(grid) == {"reward": 75.0, "style": 50.0}
    assert mean_rewards(grid, {"t": "final"}) == {"reward": 100.0, "style": 0.0}


def test_a_key_that_a_trial_lacks_counts_zero_in_the_mean_over_trials(record: MakeRecord) -> None:
    records = [record("one", 1, rewards={"reward": 1.0, "style": 1.0}), record("two", 1, rewards={"reward": 1.0})]
    assert mean_rewards(records) == {"reward": 100.0, "style": 50.0}


def test_the_mean_reward_is_of_the_reward_that_decides(record: MakeRecord) -> None:
    (first,) = [record("t", 1, "failed", rewards={"tests": 0.5, "style": 1.0})]
    assert first.verdict is not None
    decided = first.model_copy(update={"verdict": first.verdict.model_copy(update={"reward": 0.5})})
    assert mean_reward([decided]) == 50.0


def test_two_records_of_one_round_are_refused(record: MakeRecord) -> None:
    with pytest.raises(ValueError, match=r"two records of round-2 in attempt 3 of a at t: give the attempts"):
        Grid.of([record("t", 2, of=2, attempt=3), record("t", 2, "failed", of=2, attempt=3)])


def test_a_round_beyond_the_declared_ones_does_not_count(record: MakeRecord) -> None:
    assert dataset_score([record("t", 1, of=1), record("t", 2, of=1)]) == 100.0


def test_a_part_of_a_grid_keeps_the_chain(record: MakeRecord) -> None:
    records = [record("t", 1, "failed", of=2), record("t", 2, of=2), record("u", 1, of=1)]
    second = Grid.of(records).only(lambda task, index: index == 2)
    assert [(rounds.task, rounds.indices) for rounds in second.tasks] == [("t", (2,))]
    assert (dataset_score(second), mt_at_k(second)) == (100.0, 0.0)


def test_rounds_that_were_not_selected_do_not_count(record: MakeRecord) -> None:
    records = [record("t", 1, of=3), record("t", 2, "failed", of=3)]
    row = scores(Grid.of(records, partial={("t", 1): {1, 2}}))
    assert (row.dataset_score, row.mean_reward, row.rounds) == (50.0, 50.0, 2)


@pytest.mark.parametrize("selected", [{1}, {1, 2}])
def test_what_is_of_whole_tasks_does_not_count_those_of_which_no_attempt_was_to_make_all_rounds(
    record: MakeRecord, selected: set[int]
) -> None:
    part = [record("t", index, of=3) for index in sorted(selected)]
    alone = Grid.of(part, partial={("t", 1): selected})
    row = scores(alone)
    assert (row.perfect_tasks, row.whole_tasks, row.decided_tasks) == (None, 0, 1)
    # Nobody was asked for the last round.
    assert (row.mt_at_k, row.final_round_completion, mt_at_k(alone, fail_stop=False)) == (None, None, None)
    assert pass_at_k(alone, "task") == []
    assert [found.pass_at_k for found in pass_at_k(alone, "round")] == [100.0]
    both = Grid.of([*part, record("u", 1, of=2), record("u", 2, "failed", of=2)], partial={("t", 1): selected})
    row = scores(both)
    assert (row.perfect_tasks, row.whole_tasks, row.tasks, row.mt_at_k) == (0, 1, 2, 50.0)
    assert scores(both, both).gap is None


def test_two_attempts_that_were_to_make_a_part_each_are_no_whole_task(record: MakeRecord) -> None:
    records = [record("t", 1, of=2), record("t", 2, of=2, attempt=2)]
    row = scores(Grid.of(records, partial={("t", 1): {1}, ("t", 2): {2}}))
    assert (row.dataset_score, row.perfect_tasks, row.mt_at_k) == (100.0, None, None)


def test_a_selected_round_without_a_record_was_not_reached(record: MakeRecord) -> None:
    assert dataset_score(Grid.of([record("t", 1, of=4)], partial={("t", 1): {1, 2}})) == 50.0


def test_attempts_of_which_other_rounds_were_selected_count_each_over_its_own(record: MakeRecord) -> None:
    records = [record("t", index, of=3) for index in (1, 2, 3)] + [record("t", 1, "failed", of=3, attempt=2)]
    grid = Grid.of(records, partial={("t", 2): {1}})
    assert (dataset_score(grid), perfect_tasks(grid)) == (75.0, 1)
    assert reliability(grid) == 0.0  # Only the first round has two attempts.
    assert {index: share.percent for index, share in pass_rates(grid).items()} == {1: 50.0, 2: 100.0, 3: 100.0}
    assert [(found.attempt, found.index, found.declared) for found in first_failures(grid)] == [(2, 1, 3)]
