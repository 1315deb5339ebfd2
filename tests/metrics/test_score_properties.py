"""What must hold of the scores whatever the records."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_evocode.metrics.grid import Grid, Rounds
from pytest_evocode.metrics.scores import (
    avg_rounds,
    case_score,
    dataset_score,
    final_round_completion,
    hard_tasks,
    mean_reward,
    mt_at_k,
    perfect_tasks,
    pinned_case_score,
    reliability,
    scores,
    sr,
)
from pytest_evocode.results.records import RoundRecord, Verdict
from tests.metrics.matrices import Matrix, matrices

GOOD: tuple[Callable[[Rounds], float | None], ...] = (
    dataset_score,
    case_score,
    mean_reward,
    perfect_tasks,
    mt_at_k,
    final_round_completion,
    sr,
)
"""Those that are the higher the more is passed."""


@given(matrices())
def test_the_order_of_records_does_not_matter_to_the_last_bit(matrix: Matrix) -> None:
    turned = sorted(matrix.records, key=lambda record: (record.index, record.attempt, record.task), reverse=True)
    again = Grid.of(turned, selected=dict(reversed(matrix.declared.items())), attempts=matrix.made)
    assert scores(again) == scores(matrix.grid)


@given(matrices())
def test_a_round_counts_the_same_whether_its_record_is_missing_or_says_that_it_was_not_reached(matrix: Matrix) -> None:
    there = {(record.task, record.attempt, record.index) for record in matrix.records}
    filled = list(matrix.records)
    for task, declared in matrix.declared.items():
        for attempt in range(1, matrix.made + 1):
            filled += [
                RoundRecord(
                    task=task,
                    agent="a",
                    attempt=attempt,
                    round=f"round-{index}",
                    index=index,
                    declared_rounds=declared,
                    outcome="not reached",
                )
                for index in range(1, declared + 1)
                if (task, attempt, index) not in there
            ]
    # Records that are all there need nobody to say what was selected, but for whose they are.
    found, expected = scores(filled), scores(matrix.grid)
    assert found == expected


@given(matrices(), st.data())
def test_no_score_rises_when_a_round_fails_breaks_or_goes_missing(matrix: Matrix, data: st.DataObject) -> None:
    if not matrix.records:
        return
    # Whether its suites report cases is a property of a task: without them its Case Score is n/a.
    verdicts = [(record.task, record.verdict) for record in matrix.records if record.verdict is not None]
    kinds = {(task, bool(verdict.cases or (verdict.pinned and verdict.pinned[1]))) for task, verdict in verdicts}
    assume(len(kinds) == len({task for task, _ in kinds}))
    number = data.draw(st.integers(0, len(matrix.records) - 1))
    chosen = matrix.records[number]
    worse = data.draw(st.sampled_from(("failed", "error", "not reached", "missing")))
    changed = list(matrix.records)
    if worse == "missing":
        del changed[number]
    elif worse == "failed":
        verdict = None
        if chosen.verdict is not None:
            cases = tuple(case.model_copy(update={"status": "failed"}) for case in chosen.verdict.cases)
            pinned = chosen.verdict.pinned and (0, chosen.verdict.pinned[1])
            verdict = Verdict(reward=0.0, rewards={"reward": 0.0}, cases=cases, pinned=pinned)
        changed[number] = chosen.model_copy(update={"outcome": "failed", "verdict": verdict})
    else:
        changed[number] = chosen.model_copy(update={"outcome": worse, "verdict": None})
    after = Grid.of(changed, selected=matrix.declared, attempts=matrix.made)
    for score in GOOD:
        before, now = score(matrix.grid), score(after)
        if before is not None:
            assert now is not None
            assert now <= before + 1e-9, score
    assert (hard_tasks(after) or 0.0) >= (hard_tasks(matrix.grid) or 0.0) - 1e-9
    if (pinned_after := pinned_case_score(after)) is not None:
        assert pinned_after <= (pinned_case_score(matrix.grid) or 0.0) + 1e-9


@given(matrices())
def test_scores_stay_between_zero_and_a_hundred(matrix: Matrix) -> None:
    for score in (*GOOD, hard_tasks, pinned_case_score, reliability):
        found = score(matrix.grid)
        assert found is None or 0 <= found <= 100 + 1e-9
    assert perfect_tasks(matrix.grid) <= len(matrix.declared)
    assert (avg_rounds(matrix.grid) or 0) >= 0


@given(matrices())
def test_what_a_chain_is_worth_by_its_rounds_bounds_what_it_is_worth_to_its_first_failure(matrix: Matrix) -> None:
    assert (mt_at_k(matrix.grid) or 0.0) <= (mt_at_k(matrix.grid, fail_stop=False) or 0.0) + 1e-9
    if matrix.made == 1:
        assert mt_at_k(matrix.grid, fail_stop=False) == pytest.approx(dataset_score(matrix.grid))
        assert reliability(matrix.grid) is None
