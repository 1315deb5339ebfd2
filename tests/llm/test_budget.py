"""Budgets, and what counts against them."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_evocode.errors import RunLimitReached, UsageError
from pytest_evocode.llm.budget import AttemptSpending, Budget, RunSpending, parse_budget
from pytest_evocode.llm.waiting import Waiting
from pytest_evocode.results.records import Spent, Usage

REPLY = Usage(prompt_tokens=900, completion_tokens=100, cost_usd=0.25, requests=1)


def test_rigorbenchs_budget_can_be_said() -> None:
    assert parse_budget("tokens=200000,minutes=60") == Budget(tokens=200_000, minutes=60)


def test_nothing_is_no_limit() -> None:
    assert parse_budget("") == Budget()
    spending = AttemptSpending()
    spending.charge(REPLY, turns=1_000_000)
    assert (spending.exhausted, spending.seconds_left) == ("", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("token=5", "'token=5' is not a limit; known are tokens, cost, turns, minutes, total-cost"),
        ("total-cost=5/round", "'total-cost=5/round': total-cost is a limit of the whole run; write total-cost=5"),
        ("turns=3/task", "'turns=3/task': the limit has to be a number, 0 or more, such as turns=100"),
        ("turns=3,turns=4", "'turns=4': this limit is given twice; leave one out"),
        ("tokens", "'tokens': the limit has to be a number"),
        ("cost=-1", "'cost=-1': the limit has to be a number, 0 or more"),
        ("cost=nan", "'cost=nan': the limit has to be a number"),
        ("turns=many", "'turns=many': the limit has to be a number"),
    ],
)
def test_what_is_no_budget_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_budget(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("budget", "cause"),
    [
        (Budget(tokens=2000), "budget: tokens 2,000 of 2,000 used"),
        (Budget(cost=0.5), "budget: cost $0.5 of $0.5 used"),
        (Budget(turns=2), "budget: turns 2 of 2 used"),
    ],
)
def test_a_limit_is_reached_when_all_of_it_is_used(budget: Budget, cause: str) -> None:
    spending = AttemptSpending(budget)
    spending.charge(REPLY)
    assert spending.exhausted == ""
    spending.charge(REPLY)
    assert spending.exhausted == cause


def test_minutes_run_only_during_turns() -> None:
    spending = AttemptSpending(Budget(minutes=2), spent=Spent(seconds=60))
    assert spending.seconds_left == 60
    spending.begin_turn()
    during = spending.seconds_left
    assert during is not None
    assert during < 60
    spending.end_turn()
    assert spending.seconds_left == spending.seconds_left


def test_an_attempt_goes_on_with_what_an_earlier_session_left_of_its_budget() -> None:
    spending = AttemptSpending(Budget(turns=3))
    spending.resume(Spent(turns=2))
    spending.charge(REPLY)
    assert spending.exhausted


def test_what_a_reply_does_not_say_is_not_charged() -> None:
    spending = AttemptSpending(Budget(tokens=1))
    spending.charge(Usage(cost_usd=0.5))
    assert spending.spent.tokens == 0
    assert spending.spent.cost_usd == 0.5


def test_all_attempts_of_a_run_pay_into_one_sum(tmp_path: Path) -> None:
    path = tmp_path / "runs/now.spent"

    def pay() -> None:
        spending = AttemptSpending(Budget(), run=RunSpending(path))
        for _ in range(4):
            spending.charge(REPLY)

    threads = [threading.Thread(target=pay) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = AttemptSpending(Budget(total_cost=2.0), run=RunSpending(path))
    with pytest.raises(RunLimitReached, match=r"^budget: total-cost \$2 of \$2 used by the run$"):
        _ = other.exhausted


def test_limits_of_a_round_begin_anew_with_each_turn() -> None:
    spending = AttemptSpending(parse_budget("turns=2/round,tokens=10000"))
    for _ in range(2):
        spending.begin_turn()
        assert spending.exhausted == ""
        spending.charge(REPLY)
        spending.charge(REPLY)
        assert spending.exhausted == "budget: turns 2 of 2 used in the round"
        spending.end_turn()
        assert spending.exhausted == "budget: turns 2 of 2 used in the round"


def test_the_shortest_of_the_minutes_holds() -> None:
    spending = AttemptSpending(parse_budget("minutes=1,minutes=2/round"), spent=Spent(seconds=30))
    spending.begin_turn()
    assert spending.seconds_left == pytest.approx(30, abs=5)
    spending = AttemptSpending(parse_budget("minutes=10,minutes=1/round"), spent=Spent(seconds=300))
    spending.begin_turn()
    assert spending.seconds_left == pytest.approx(60, abs=5)


def test_a_reply_that_was_paid_for_before_counts_for_its_attempt_and_not_again_for_the_run(tmp_path: Path) -> None:
    run = RunSpending(tmp_path / "now.spent")
    spending = AttemptSpending(Budget(), run=run)
    spending.charge(REPLY)
    spending.charge(REPLY, paid_before=True)
    assert spending.spent.cost_usd == 0.5
    assert run.cost_usd == 0.25


@pytest.mark.parametrize("cost", [-100.0, math.nan, math.inf])
def test_nobody_gets_back_what_the_run_has_spent_or_ends_it_by_what_is_no_number(tmp_path: Path, cost: float) -> None:
    spending = AttemptSpending(Budget(tokens=5000, total_cost=1.0), run=RunSpending(tmp_path / "now.spent"))
    spending.charge(REPLY)
    spending.charge(Usage(prompt_tokens=-9000, completion_tokens=0, cost_usd=cost))
    spending.correct(REPLY, Usage(prompt_tokens=900, completion_tokens=100, cost_usd=0.5))
    assert (spending.spent.tokens, spending.spent.cost_usd) == (1000, 0.5)
    assert RunSpending(tmp_path / "now.spent").cost_usd == 0.5


def test_minutes_do_not_pass_while_a_turn_waits_for_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("pytest_evocode.llm.budget.time", clock)
    waiting = Waiting(clock=clock.monotonic)
    spending = AttemptSpending(Budget(minutes=1))
    spending.begin_turn(waiting)
    now[0] += 30.0
    waiting.retry("provider", 10.0)  # A try of these 30 seconds.
    assert spending.seconds_left == 40.0
    with waiting.pausing(500.0, "connections"):
        now[0] += 500.0
        assert spending.seconds_left == 40.0
    assert spending.end_turn() == 20.0
    assert spending.exhausted == ""
