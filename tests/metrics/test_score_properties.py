"""What must hold of the scores whatever the records, and the scores against a slow computation of another shape."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.metrics.scores import avg_rounds, case_score, dataset_score, perfect_tasks, trial_rewards
from pytest_evocode.results.models import Case, CaseStatus, Outcome, RoundRecord, Verdict

OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "not reached")
STATUSES: tuple[CaseStatus, ...] = ("passed", "failed", "skipped", "error")


class Matrix(NamedTuple):
    """The rounds of some tasks as plain data, and the same as records in any order."""

    declared: dict[str, int]
    rounds: dict[tuple[str, int, int], tuple[Outcome, tuple[CaseStatus, ...], float, int | None]]
    """Outcome, cases, reward and tool calls by task, attempt and index; a round that is missing has no entry."""
    records: list[RoundRecord]


def to_record(
    key: tuple[str, int, int],
    row: tuple[Outcome, tuple[CaseStatus, ...], float, int | None],
    declared: int,
) -> RoundRecord:
    task, attempt, index = key
    outcome, statuses, reward, tool_calls = row
    verdict = None
    if outcome in ("passed", "failed"):
        cases = tuple(Case(id=f"c{number}", status=status) for number, status in enumerate(statuses))
        verdict = Verdict(reward=reward, rewards={"reward": reward}, cases=cases)
    return RoundRecord(
        task=task,
        agent="a",
        attempt=attempt,
        round=f"round-{index}",
        index=index,
        declared_rounds=declared,
        outcome=outcome,
        verdict=verdict,
        tool_calls=tool_calls,
    )


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    declared = {
        f"task-{number}": draw(st.integers(1, 5), label="rounds")
        for number in range(draw(st.integers(1, 4), label="tasks"))
    }
    row = st.tuples(
        st.sampled_from(OUTCOMES),
        st.lists(st.sampled_from(STATUSES), max_size=4).map(tuple),
        st.sampled_from((0.0, 0.25, 0.5, 1.0)),
        st.none() | st.integers(0, 50),
    )
    rounds: dict[tuple[str, int, int], tuple[Outcome, tuple[CaseStatus, ...], float, int | None]] = {}
    for task, last in declared.items():
        for attempt in range(1, draw(st.integers(1, 3), label="attempts") + 1):
            # An attempt is known by its records, so it has at least one; any others may be missing.
            present = draw(st.sets(st.integers(1, last), min_size=1), label="present")
            rounds |= {(task, attempt, index): draw(row) for index in present}
    records = [to_record(key, row, declared[key[0]]) for key, row in rounds.items()]
    return Matrix(declared, rounds, draw(st.permutations(records)))


def naive_mean(matrix: Matrix, value: dict[tuple[str, int, int], Fraction]) -> Fraction:
    """Mean over tasks, attempts and *declared* rounds, one explicit cell each; a missing cell is zero."""
    total = Fraction(0)
    for task, declared in matrix.declared.items():
        attempts = {attempt for name, attempt, _ in matrix.rounds if name == task}
        cells = [value.get((task, a, i), Fraction(0)) for a in attempts for i in range(1, declared + 1)]
        total += sum(cells, Fraction(0)) / len(cells)
    return 100 * total / len(matrix.declared)


@given(matrices())
def test_dataset_score_is_what_a_naive_computation_gives(matrix: Matrix) -> None:
    value = {key: Fraction(row[0] == "passed") for key, row in matrix.rounds.items()}
    assert dataset_score(matrix.records) == pytest.approx(float(naive_mean(matrix, value)))


@given(matrices())
def test_case_score_is_what_a_naive_computation_gives(matrix: Matrix) -> None:
    value = {
        key: Fraction(statuses.count("passed"), len(statuses))
        for key, (outcome, statuses, *_) in matrix.rounds.items()
        if statuses and outcome in ("passed", "failed")
    }
    assert case_score(matrix.records) == pytest.approx(float(naive_mean(matrix, value)))


@given(matrices())
def test_perfect_tasks_is_what_a_naive_computation_gives(matrix: Matrix) -> None:
    perfect = 0
    for task, declared in matrix.declared.items():
        for attempt in (1, 2, 3):
            rows = [matrix.rounds.get((task, attempt, index)) for index in range(1, declared + 1)]
            if all(row is not None and row[0] == "passed" for row in rows):
                perfect += 1
                break
    assert perfect_tasks(matrix.records) == perfect


@given(matrices())
def test_avg_rounds_is_what_a_naive_computation_gives(matrix: Matrix) -> None:
    means = []
    for task in matrix.declared:
        calls = [row[3] for key, row in matrix.rounds.items() if key[0] == task and row[3] is not None]
        means += [Fraction(sum(calls), len(calls))] if calls else []
    found = avg_rounds(matrix.records)
    assert (found is None) == (not means)
    assert found is None or found == pytest.approx(float(sum(means) / len(means)))


@given(matrices())
def test_the_mean_reward_is_what_a_naive_computation_gives(matrix: Matrix) -> None:
    for task, declared in matrix.declared.items():
        mine = [record for record in matrix.records if (record.task, record.attempt) == (task, 1)]
        rewards = [
            row[2]
            for (name, attempt, _), row in matrix.rounds.items()
            if (name, attempt) == (task, 1) and row[0] in ("passed", "failed")
        ]
        expected = {"reward": pytest.approx(sum(rewards) / declared)} if rewards else {}
        assert trial_rewards(mine, declared, "mean") == expected


@given(matrices())
def test_the_order_of_records_does_not_matter(matrix: Matrix) -> None:
    turned = sorted(matrix.records, key=lambda record: (record.index, record.attempt, record.task), reverse=True)
    for score in (dataset_score, case_score, avg_rounds, perfect_tasks):
        found, again = score(matrix.records), score(turned)
        assert found == (again if again is None else pytest.approx(again))


@given(matrices(), st.data())
def test_no_score_rises_when_a_round_fails_breaks_or_goes_missing(matrix: Matrix, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(matrix.records) - 1))
    chosen = matrix.records[number]
    worse = data.draw(st.sampled_from(("failed", "error", "not reached", "missing")))
    changed = list(matrix.records)
    if worse == "missing":
        del changed[number]
        if not any((other.task, other.attempt) == (chosen.task, chosen.attempt) for other in changed):
            return  # Nothing is left that tells of the attempt.
    elif worse == "failed":
        verdict = None
        if chosen.verdict is not None:
            cases = tuple(case.model_copy(update={"status": "failed"}) for case in chosen.verdict.cases)
            verdict = Verdict(reward=0.0, rewards={"reward": 0.0}, cases=cases)
        changed[number] = chosen.model_copy(update={"outcome": "failed", "verdict": verdict})
    else:
        changed[number] = chosen.model_copy(update={"outcome": worse, "verdict": None})
    assert dataset_score(changed) <= dataset_score(matrix.records) + 1e-9
    assert case_score(changed) <= case_score(matrix.records) + 1e-9
    assert perfect_tasks(changed) <= perfect_tasks(matrix.records)
    rewards = trial_rewards(matrix.records, 5, "mean")
    assert trial_rewards(changed, 5, "mean").get("reward", 0.0) <= rewards.get("reward", 0.0) + 1e-9


@given(matrices())
def test_scores_stay_between_zero_and_a_hundred(matrix: Matrix) -> None:
    for score in (dataset_score(matrix.records), case_score(matrix.records)):
        assert 0 <= score <= 100 + 1e-9
    assert 0 <= perfect_tasks(matrix.records) <= len(matrix.declared)
