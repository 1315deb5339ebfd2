"""What rounds took, and what nobody knows of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_evocode.metrics.spending import Amount, overall_token_ratio, spending, spending_by, token_ratios
from pytest_evocode.results.records import NO_USAGE, Outcome, RoundRecord, Usage

MakeRecord = Callable[..., RoundRecord]


def tokens(prompt: int | None, completion: int | None = 0) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def test_all_amounts_are_added_up(record: MakeRecord) -> None:
    usage = Usage(prompt_tokens=100, cached_tokens=80, completion_tokens=10, cost_usd=0.25, requests=3)
    records = [
        record("t", index, of=2, usage=usage, tool_calls=4, agent_seconds=1.5, verifier_seconds=0.5) for index in (1, 2)
    ]
    found = spending(records)
    assert found.rounds == 2
    assert found.prompt_tokens == Amount(200, 2, 2)
    assert found.cached_tokens == Amount(160, 2, 2)
    assert found.completion_tokens == Amount(20, 2, 2)
    assert found.requests == Amount(6, 2, 2)
    assert found.cost_usd == Amount(0.5, 2, 2)
    assert found.tool_calls == Amount(8, 2, 2)
    assert found.agent_seconds == Amount(3.0, 2, 2)
    assert found.verifier_seconds == Amount(1.0, 2, 2)


def test_what_is_known_of_no_round_is_not_zero(record: MakeRecord) -> None:
    found = spending([record(), record("u")])
    assert found.rounds == 2
    assert {found.prompt_tokens, found.cost_usd, found.tool_calls, found.agent_seconds} == {None}
    assert spending([]).prompt_tokens is None
    assert spending([record(usage=tokens(0))]).prompt_tokens == Amount(0, 1, 1)


def test_rounds_that_used_nothing_are_known_and_tell_nothing_of_others(record: MakeRecord) -> None:
    unpriced = record("t", 1, of=2, usage=tokens(10))
    nothing = record("t", 2, of=2, usage=NO_USAGE)
    found = spending([unpriced, nothing])
    assert (found.prompt_tokens, found.cost_usd) == (Amount(10, 2, 2), None)
    assert spending([record("t", 1, of=2), nothing]).requests is None
    assert spending([nothing]).cost_usd == Amount(0, 1, 1)
    priced = record("t", 1, of=2, usage=Usage(prompt_tokens=10, completion_tokens=1, cost_usd=0.5))
    assert spending([priced, nothing]).cost_usd == Amount(0.5, 2, 2)


def test_a_sum_over_partly_unknown_rounds_says_so(record: MakeRecord) -> None:
    amount = spending([record("t", 1, of=2, usage=tokens(10)), record("t", 2, of=2)]).prompt_tokens
    assert amount == Amount(10, known=1, of=2)
    assert not amount.complete
    assert amount.mean == 10.0


def test_a_round_that_was_not_reached_took_nothing_and_is_not_unknown(record: MakeRecord) -> None:
    amount = spending(
        [record("t", 1, "failed", of=2, usage=tokens(10)), record("t", 2, "not reached", of=2)]
    ).prompt_tokens
    assert amount == Amount(10, known=1, of=1)


def test_a_round_that_broke_down_took_what_nobody_knows(record: MakeRecord) -> None:
    amount = spending([record("t", 1, of=2, usage=tokens(10)), record("t", 2, "error", of=2)]).prompt_tokens
    assert amount == Amount(10, known=1, of=2)


def test_a_turn_that_ended_before_the_session_was_stopped_counts(record: MakeRecord) -> None:
    stopped = record("t", 1, "not reached", usage=tokens(7), agent_seconds=2.0)
    assert spending([stopped]).prompt_tokens == Amount(7, 1, 1)


def test_amounts_are_had_by_round_attempt_task_and_agent(record: MakeRecord) -> None:
    records = [
        record(task, index, of=2, attempt=attempt, agent=agent, usage=tokens(1))
        for agent in ("b", "a")
        for task in ("t", "u")
        for attempt in (1, 2)
        for index in (1, 2)
    ]
    by_agent = spending_by(records, "agent")
    assert list(by_agent) == [("a",), ("b",)]
    assert by_agent["a",].prompt_tokens == Amount(8, 8, 8)
    assert spending_by(records, "task")["a", "t"].prompt_tokens == Amount(4, 4, 4)
    assert spending_by(records, "attempt")["a", "t", 2].prompt_tokens == Amount(2, 2, 2)
    by_round = spending_by(records, "round")
    assert (len(by_round), by_round["b", "u", 1, 2].prompt_tokens) == (16, Amount(1, 1, 1))


def test_tokens_of_failing_and_passing_rounds_are_compared_at_the_same_index(record: MakeRecord) -> None:
    rows: list[tuple[int, int, Outcome, Usage | None]] = [
        (1, 1, "passed", tokens(80, 20)),
        (1, 2, "passed", tokens(100, 100)),
        (1, 3, "failed", tokens(400, 50)),
        (2, 1, "passed", tokens(1000)),
        (2, 2, "failed", tokens(None, 7)),
        (2, 3, "error", tokens(9999)),
        (3, 1, "failed", tokens(5)),
        (4, 1, "failed", None),
    ]
    records = [
        record("t", index, outcome, of=4, attempt=attempt, usage=usage) for index, attempt, outcome, usage in rows
    ]
    found = token_ratios(records, "total")
    assert list(found) == [1, 2, 3]
    assert (found[1].failing, found[1].passing, found[1].ratio) == (450.0, 150.0, 3.0)
    assert (found[2].failing, found[2].passing, found[2].ratio) == (None, 1000.0, None)
    assert (found[3].failing, found[3].passing, found[3].ratio) == (5.0, None, None)
    assert overall_token_ratio(found) == 3.0
    # What the paper compares is what models wrote, which may be known where the prompts' tokens are not.
    found = token_ratios(records)
    assert [found[1].failing, found[1].passing, found[2].failing, found[2].passing] == [50.0, 60.0, 7.0, 0.0]


def test_late_rounds_that_take_more_and_fail_more_do_not_make_the_overall_ratio(record: MakeRecord) -> None:
    passed: Outcome = "passed"
    failed: Outcome = "failed"
    rows = [(1, passed)] * 9 + [(1, failed)] + [(2, passed)] + [(2, failed)] * 9
    records = [
        record("t", index, outcome, of=2, attempt=attempt, usage=tokens(100 if index == 1 else 1000))
        for attempt, (index, outcome) in enumerate(rows)
    ]
    assert overall_token_ratio(token_ratios(records, "total")) == pytest.approx(1.0)
    assert overall_token_ratio({}) is None
