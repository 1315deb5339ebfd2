"""The pace of requests against providers that limit and fail them in several ways, played on a clock of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from pytest_evocode.llm.connection_limits import RequestPace
from tests.llm.paced_clients import (
    MINUTE,
    Fault,
    Played,
    Provider,
    bucket,
    clock_minutes,
    last_minute,
    play,
    silent,
    throughputs,
)

LIMIT = 60
CLIENTS, SECONDS, LATENCY = 8, 150.0, 1.0
NOW = Fault(429, retry_after=1.0)


def play_eight(provider: Provider, *, waits: bool = False, seconds: float = SECONDS) -> Played:
    return play(provider, clients=CLIENTS, seconds=seconds, latency=LATENCY, waits=waits)


def at_most(times: int, fault: Fault, *, since: float = 0.0, until: float = float("inf")) -> Provider:
    """So many faults in a row, in some seconds."""
    left = itertools.repeat(fault, times)
    return lambda now: next(left, None) if since <= now < until else None


@pytest.mark.parametrize("says_when", [True, False], ids=["retry-after", "silent"])
@pytest.mark.parametrize(
    "limiter", [clock_minutes, last_minute, lambda n: bucket(60, n), lambda n: bucket(5, n), lambda n: bucket(1, n)]
)
def test_eight_clients_waste_few_requests_and_little_time(limiter: Callable[[int], Provider], says_when: bool) -> None:
    provider = limiter(LIMIT)
    answered, refused, _ = play_eight(provider if says_when else silent(provider))
    assert refused < 0.1 * (answered + refused)
    assert answered > 0.75 * LIMIT * SECONDS / MINUTE


def test_eight_clients_who_could_ask_thirty_times_more_often_waste_as_few() -> None:
    seconds = 300.0
    answered, refused, _ = play(bucket(60, LIMIT), clients=8, seconds=seconds, latency=0.2, think=0.1)
    assert refused < 0.1 * (answered + refused)
    assert answered > 0.75 * (60 + LIMIT * seconds / MINUTE)


def test_nobody_waits_for_a_provider_that_refuses_nothing() -> None:
    answered, refused, _ = play_eight(lambda now: None)
    assert answered == pytest.approx(CLIENTS * SECONDS / (LATENCY + 0.05), rel=0.1)
    assert refused == 0


@pytest.mark.parametrize("latency", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("attempts", [8, 32, 128])
def test_single_faults_slow_nobody_down(attempts: int, latency: float) -> None:
    faults = NOW, Fault(503)
    assert min(throughputs(0.0, attempts, latency, faults, seeds=1)) >= 0.85
    assert min(throughputs(0.05, attempts, latency, faults, seeds=2)) >= 0.7


@pytest.mark.parametrize("since", [0.0, 5.0, 20.0])
def test_two_refusals_cost_eight_clients_no_more_than_four_seconds(since: float) -> None:
    seconds = 37.6
    undisturbed = play_eight(lambda now: None, waits=True, seconds=seconds).answered
    answered, refused, _ = play_eight(at_most(2, NOW, since=since), waits=True, seconds=seconds)
    assert refused == 2
    assert answered > undisturbed - 4.0 * CLIENTS / LATENCY


def test_when_all_are_refused_for_a_second_the_pace_is_back_within_ten() -> None:
    def answered(until: float) -> int:
        return play_eight(at_most(1000, NOW, since=5.0, until=6.0), waits=True, seconds=until).answered

    assert answered(26.0) - answered(16.0) > 0.85 * 10 * CLIENTS / (LATENCY + 0.05)


def test_a_slow_first_guess_is_soon_made_up_for() -> None:
    assert play_eight(clock_minutes(10_000)).refused == 0
    # One that has nothing to do with the pace.
    answered, refused, _ = play_eight(at_most(1, Fault(retry_after=20.0), since=3.0))
    guess = 24 / MINUTE
    assert refused == 1
    assert answered > 2 * guess * SECONDS
    assert answered > 0.7 * CLIENTS * (SECONDS - 20) / (LATENCY + 0.05)


def test_a_pace_is_never_below_half_of_what_was_just_answered() -> None:
    pace = RequestPace()
    for moment in range(40):  # Eight a second.
        pace.answered(1 + moment / 8, pace.reserve(moment / 8)[1])
    tickets = [pace.reserve(6.0)[1] for _ in range(8)]
    for moment, ticket in enumerate(tickets):
        pace.refused(6.1 + moment / 100, ticket, retry_after=10)
        assert pace.per_second is not None
        assert pace.per_second >= 3.5


def test_requests_that_were_under_way_together_slow_down_once() -> None:
    pace = RequestPace()
    tickets = [pace.reserve(0.0)[1] for _ in range(10)]
    for ticket in tickets[:7]:
        pace.answered(0.1, ticket)
    for ticket in tickets[7:]:
        pace.refused(0.1, ticket, retry_after=10)
    assert pace.per_second == pytest.approx(0.9 * 7, rel=0.1)
    assert pace.per_second is not None
    seconds, first = pace.reserve(2.0)
    assert seconds == pytest.approx(8.1)
    assert pace.reserve(2.0)[0] == pytest.approx(8.1 + 1 / pace.per_second)
    assert pace.wait(10.1, first) == 0
    before = pace.per_second
    pace.refused(12.0, first, retry_after=1)
    assert pace.per_second == before  # None was answered at it: a slower one would not help.
    assert pace.reserve(12.0)[0] >= 1.0


def test_who_waits_is_sent_in_order_and_as_soon_as_the_pace_allows_it() -> None:
    pace = RequestPace()
    pace.refused(0.0, pace.reserve(0.0)[1], retry_after=5)
    waiting = [pace.reserve(0.0) for _ in range(3)]
    assert [seconds for seconds, _ in waiting] == [5.0, 6.0, 6.0]
    assert [pace.wait(5.0, ticket) == 0 for _, ticket in waiting] == [True, False, False]
    assert pace.wait(5.5, waiting[2][1]) > pace.wait(5.5, waiting[1][1]) > 0
    later = 5.0 + 1.2 / (pace.per_second or 0)
    assert [pace.wait(later, ticket) == 0 for _, ticket in waiting[1:]] == [True, False]


def test_a_ticket_that_nobody_comes_back_with_holds_nobody_up() -> None:
    pace = RequestPace()
    pace.refused(0.0, pace.reserve(0.0)[1], retry_after=5)
    _, _lost = pace.reserve(0.0)
    _, own = pace.reserve(0.0)
    assert pace.wait(5.0 + 2.1 / (pace.per_second or 0), own) == 0


def test_a_pace_that_is_written_goes_on_where_it_was() -> None:
    pace = RequestPace()
    assert RequestPace.from_json(pace.as_json()).reserve(5.0) == (0.0, 1)
    pace.answered(1.0, pace.reserve(0.5)[1])
    pace.refused(2.0, pace.reserve(1.5)[1], retry_after=4)
    again = RequestPace.from_json(pace.as_json())
    assert again.as_json() == pace.as_json()
    assert [again.reserve(3.0), again.reserve(3.0)] == [pace.reserve(3.0), pace.reserve(3.0)]
