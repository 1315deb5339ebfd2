"""The lines about running attempts and ended rounds, word for word."""

from __future__ import annotations

import pytest

from pytest_evocode.plugin.live import round_line, status_lines
from pytest_evocode.results.records import Case, RoundRecord, Usage, Verdict
from pytest_evocode.trial.context import Doing, Progress

pytestmark = pytest.mark.every_python

NOW = 1_000_000.0


def line(progress: Progress, *, columns: int = 200) -> str:
    """The one line about an attempt, without its name."""
    (only,) = status_lines({"ledger oracle": progress}, now=NOW, columns=columns, rows=24)
    return only.removeprefix("ledger oracle: ")


def many(number: int, *, rows: int) -> list[str]:
    """The lines about so many attempts, named from 1."""
    running = {str(index): Progress("working", 1, 2, NOW) for index in range(1, number + 1)}
    return status_lines(running, now=NOW, columns=80, rows=rows)


def record(**values: object) -> RoundRecord:
    """A round that passed."""
    known = {"task": "ledger", "agent": "oracle", "attempt": 1, "round": "round-3", "index": 3, "declared_rounds": 7}
    return RoundRecord.model_validate({**known, "outcome": "passed", **values})


def test_a_model_at_work() -> None:
    progress = Progress("working", 3, 7, NOW - 100, 600, turns=14, tokens=30_123, cost_usd=0.1234)
    assert line(progress) == "round 3/7, 14 turns, 30.1k tokens, $0.12, 8:20 left"


def test_what_is_not_known_is_left_out() -> None:
    assert line(Progress("working", 3, 7, NOW - 100, 600)) == "round 3/7, 8:20 left"
    assert line(Progress("working", 3, 7, NOW - 100, 600, turns=1)) == "round 3/7, 1 turn, 8:20 left"


def test_without_a_limit_the_time_is_what_has_gone_by() -> None:
    assert line(Progress("working", 1, 1, NOW - 4000)) == "round 1/1, 1:06:40"


def test_a_limit_that_is_over_leaves_nothing() -> None:
    assert line(Progress("working", 1, 1, NOW - 601.5, 600)) == "round 1/1, 0:00 left"


def test_a_clock_that_was_set_back_shows_no_less_than_nothing() -> None:
    assert line(Progress("working", 1, 1, NOW + 50)) == "round 1/1, 0:00"


@pytest.mark.parametrize("doing", ["preparing", "verifying"])
def test_what_is_not_the_agents_work_is_named(doing: Doing) -> None:
    assert line(Progress(doing, 2, 7, NOW - 5)) == f"round 2/7, {doing}, 0:05"


def test_before_the_first_round_the_environment_starts() -> None:
    assert line(Progress("starting", 0, 7, NOW - 65)) == "starting, 1:05"


def test_small_costs_are_not_rounded_away() -> None:
    assert "$0.0012" in line(Progress("working", 1, 1, NOW, cost_usd=0.0012))


def test_a_line_ends_before_the_last_column() -> None:
    (cut,) = status_lines({"ledger oracle": Progress("working", 3, 7, NOW)}, now=NOW, columns=20, rows=24)
    assert cut == "ledger oracle: r..."
    assert len(line(Progress("working", 3, 7, NOW), columns=1)) <= 3


def test_a_name_cannot_move_the_cursor() -> None:
    (shown,) = status_lines({"a\x1b[2J\n": Progress("working", 1, 1, NOW)}, now=NOW, columns=80, rows=24)
    assert shown == r"a\x1b[2J\n: round 1/1, 0:00"


def test_half_of_the_screen_stays_free() -> None:
    assert many(5, rows=10) == [f"{index}: round 1/2, 0:00" for index in range(1, 6)]
    assert many(7, rows=10) == [*(f"{index}: round 1/2, 0:00" for index in range(1, 5)), "and 3 more"]


def test_a_screen_with_room_for_one_line_counts_attempts() -> None:
    assert many(1, rows=2) == ["1: round 1/2, 0:00"]
    assert many(3, rows=2) == ["3 attempts"]


def test_nothing_runs() -> None:
    assert many(0, rows=24) == []


def test_a_round_that_has_ended() -> None:
    cases = (*(Case(id=f"case-{index}", status="passed") for index in range(35)), Case(id="last", status="failed"))
    ended = record(
        outcome="failed",
        verdict=Verdict(reward=0, rewards={"reward": 0}, cases=cases),
        usage=Usage(prompt_tokens=30_000, completion_tokens=123, cost_usd=0.12, requests=14),
        agent_seconds=40.0,
        verifier_seconds=5.25,
    )
    expected = "ledger oracle round-3 failed, 35/36 cases, 14 turns, 30.1k tokens, $0.12, 45.2 s"
    assert round_line("ledger oracle", ended) == expected


def test_of_a_round_what_is_not_known_is_left_out() -> None:
    assert round_line("ledger oracle", record()) == "ledger oracle round-3 passed"
    some = Usage(prompt_tokens=30_000, cost_usd=0.0, requests=2)
    assert round_line("ledger oracle", record(usage=some)) == "ledger oracle round-3 passed, 2 turns, $0.00"


def test_an_error_comes_with_the_first_line_of_its_cause() -> None:
    broken = record(outcome="error", cause="the engine is down\nstart it", agent_seconds=1.0)
    assert round_line("ledger oracle", broken) == "ledger oracle round-3 error: the engine is down"
