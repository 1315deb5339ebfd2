"""The pace of requests against providers that limit them in several ways, played on a clock of its own."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable

import pytest

from pytest_evocode.llm.connection_limits import RequestPace

Limiter = Callable[[float], float | None]
"""Returns None where a request at a time is allowed, else the seconds until the next one is."""
LIMIT, MINUTE = 60, 60.0
CLIENTS, SECONDS, LATENCY = 8, 150.0, 1.0


def clock_minutes(limit: int = LIMIT) -> Limiter:
    """So many requests in each minute of the clock."""
    counted: dict[int, int] = {}

    def ask(now: float) -> float | None:
        minute = int(now // MINUTE)
        counted[minute] = counted.get(minute, 0) + 1
        return None if counted[minute] <= limit else (minute + 1) * MINUTE - now

    return ask


def last_minute(limit: int = LIMIT) -> Limiter:
    """So many requests in any minute."""
    allowed: deque[float] = deque()

    def ask(now: float) -> float | None:
        while allowed and allowed[0] <= now - MINUTE:
            allowed.popleft()
        if len(allowed) < limit:
            allowed.append(now)
            return None
        return allowed[0] + MINUTE - now

    return ask


def bucket(size: int, limit: int = LIMIT) -> Limiter:
    """So many requests at once, which come back evenly over a minute."""
    left, since = float(size), 0.0

    def ask(now: float) -> float | None:
        nonlocal left, since
        left, since = min(size, left + (now - since) * limit / MINUTE), now
        if left >= 1:
            left -= 1
            return None
        return (1 - left) * MINUTE / limit

    return ask


def play(limiter: Limiter, *, says_when: bool = True) -> tuple[int, int]:
    """How many requests of clients that always want one are answered, and how many are refused."""
    pace, chance, order = RequestPace(), random.Random(1), itertools.count()
    answered = refused = 0
    events: list[tuple[float, int, str, float, float | None]] = []

    def at(moment: float, what: str, reserved_at: float = 0.0, after: float | None = None) -> None:
        heapq.heappush(events, (moment, next(order), what, reserved_at, after))

    for _ in range(CLIENTS):
        at(chance.random() / 10, "want")
    while events[0][0] < SECONDS:
        now, _, what, reserved_at, after = heapq.heappop(events)
        if what == "want":
            at(pace.reserve(now), "send", now)
        elif what == "send" and pace.is_outdated(reserved_at):
            at(now, "want")
        elif what == "send":
            after = limiter(now)
            late = LATENCY * (0.5 + chance.random()) if after is None else 0.1
            at(now + late, "answer" if after is None else "refusal", reserved_at, after)
        else:
            if what == "answer":
                answered += 1
                pace.answered(now, since=reserved_at)
            else:
                refused += 1
                pace.refused(now, since=reserved_at, retry_after=after if says_when else None)
            at(now + 0.05, "want")
    return answered, refused


@pytest.mark.parametrize("says_when", [True, False], ids=["retry-after", "silent"])
@pytest.mark.parametrize(
    "limiter", [clock_minutes, last_minute, lambda: bucket(60), lambda: bucket(5), lambda: bucket(1)]
)
def test_eight_clients_waste_few_requests_and_little_time(limiter: Callable[[], Limiter], says_when: bool) -> None:
    answered, refused = play(limiter(), says_when=says_when)
    assert refused < 0.1 * (answered + refused)
    assert answered > 0.75 * LIMIT * SECONDS / MINUTE


def test_nobody_waits_for_a_provider_that_refuses_nothing() -> None:
    answered, refused = play(lambda now: None)
    assert answered == pytest.approx(CLIENTS * SECONDS / (LATENCY + 0.05), rel=0.1)
    assert refused == 0


def test_a_slow_first_guess_is_soon_made_up_for() -> None:
    assert play(clock_minutes(10_000))[1] == 0
    refusals = iter([20.0])  # One that has nothing to do with the pace.
    answered, refused = play(lambda now: next(refusals, None) if now > 3 else None)
    guess = 24 / MINUTE
    assert refused == 1
    assert answered > 2 * guess * SECONDS


def test_requests_that_were_under_way_together_slow_down_once() -> None:
    pace = RequestPace()
    for _ in range(60):
        pace.answered(0.5, since=0.4)
    for moment in (1.0, 1.1, 1.2):
        pace.refused(moment, since=0.9, retry_after=10)
    assert pace.per_second == pytest.approx(0.9)
    assert pace.reserve(2.0) == pytest.approx(11.2)
    assert pace.is_outdated(0.9)
    assert not pace.is_outdated(2.0)
    pace.answered(13.0, since=12.0)
    pace.refused(20.0, since=19.0, retry_after=1)
    assert pace.per_second == pytest.approx(0.9 * 0.7)


def test_a_pace_that_is_written_goes_on_where_it_was() -> None:
    pace = RequestPace()
    assert RequestPace.from_json(pace.as_json()).reserve(5.0) == 5.0
    pace.answered(1.0, since=0.5)
    pace.refused(2.0, since=1.5, retry_after=4)
    again = RequestPace.from_json(pace.as_json())
    assert again.as_json() == pace.as_json()
    assert [again.reserve(3.0), again.reserve(3.0)] == [pace.reserve(3.0), pace.reserve(3.0)]
