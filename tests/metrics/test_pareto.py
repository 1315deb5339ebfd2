"""The Pareto front of score against what it takes, and the score per US dollar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.metrics.efficiency import Efficiency, Taken, efficiency, front
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.results.records import Usage
from tests.metrics.conftest import make_record


def taken(value: float | None) -> Taken:
    return Taken(value, known=int(value is not None), of=1)


def row(score: float, cost: float | None, tokens: float | None = 0, seconds: float | None = 0) -> Efficiency:
    return Efficiency(score, taken(cost), taken(tokens), taken(seconds), passed_rounds=1)


def usage(cost: float | None, tokens: int = 10) -> Usage:
    return Usage(prompt_tokens=tokens, completion_tokens=0, cost_usd=cost)


def test_equal_rows_are_all_on_the_front_and_a_dearer_equal_score_is_not() -> None:
    found = front({"x": row(50, 1), "y": row(50, 1), "z": row(50, 2)}, ["cost"])
    assert found.front == ("x", "y")
    assert found.dominated == {"z": ("x", "y")}


def test_a_row_that_is_worse_in_one_amount_and_better_in_another_is_on_the_front_of_both() -> None:
    rows = {"cheap": row(50, 1, seconds=9), "fast": row(50, 2, seconds=1)}
    assert front(rows, ["cost"]).front == ("cheap",)
    assert front(rows).front == ("cheap", "fast")


def test_what_is_not_known_is_left_out_and_named_and_never_cheap() -> None:
    found = front({"x": row(10, 1), "y": row(90, None, tokens=None)}, ["cost", "tokens"])
    assert found.front == ("x",)
    assert found.left_out == {"y": "cost, tokens: known of 0 of 1 rounds"}
    assert front({"y": row(90, None)}, ["cost"]).front == ()


small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, small, small), min_size=1, max_size=6))
def test_the_front_is_what_a_comparison_of_all_pairs_finds(points: list[tuple[int, int, int, int]]) -> None:
    rows = {str(place): row(*point) for place, point in enumerate(points)}
    best = set()
    for place, (score, *amounts) in enumerate(points):
        beaten = False
        for other_score, *others in points:
            no_worse = other_score >= score and all(a <= b for a, b in zip(others, amounts, strict=True))
            better = other_score > score or any(a < b for a, b in zip(others, amounts, strict=True))
            beaten |= no_worse and better
        if not beaten:
            best.add(str(place))
    found = front(rows)
    assert set(found.front) == best
    assert set(found.front) | set(found.dominated) == set(rows)
    assert all(found.dominated.values())


def test_what_a_score_takes_is_that_of_one_attempt_at_each_task() -> None:
    records = [
        make_record("t", 1, of=2, attempt=1, usage=usage(1.0), agent_seconds=4),
        make_record("t", 2, "failed", of=2, attempt=1, usage=usage(1.0), agent_seconds=4),
        make_record("t", 1, "failed", of=2, attempt=2, usage=usage(2.0), agent_seconds=2),
        make_record("t", 2, "not reached", of=2, attempt=2),
        make_record("u", 1, attempt=1, usage=usage(3.0), agent_seconds=1),
    ]
    found = efficiency(Grid.of(records))
    assert found.score == pytest.approx(62.5)
    assert (found.cost_usd.value, found.agent_seconds.value, found.tokens.value) == (5.0, 6.0, 25.0)
    assert found.score_per_usd == pytest.approx(62.5 / 5)
    assert found.usd_per_passed_round == pytest.approx(5 / 1.5)


def test_a_cost_that_is_not_known_of_every_round_is_no_cost() -> None:
    found = efficiency(Grid.of([make_record(of=2, usage=usage(1.0)), make_record(index=2, of=2, usage=usage(None))]))
    assert (found.cost_usd.value, found.cost_usd.why_not) == (None, "known of 1 of 2 rounds")
    assert found.score_per_usd is found.usd_per_passed_round is None
    assert found.tokens.value == 20


def test_where_no_round_was_begun_nothing_is_known() -> None:
    found = efficiency(Grid.of([], selected={"t": 2}))
    assert (found.score, found.agent_seconds.value, found.agent_seconds.why_not) == (0, None, "no round was begun")


def test_what_costs_nothing_has_no_score_per_dollar() -> None:
    found = efficiency(Grid.of([make_record(usage=usage(0.0))]))
    assert (found.cost_usd.value, found.score_per_usd, found.usd_per_passed_round) == (0, None, 0)
