"""How long the shell agent waits for its model."""

from __future__ import annotations

import threading
import time

import pytest

from pytest_evocode.agents.shell import model_turn
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.errors import Cancelled
from pytest_evocode.llm.protocol import Reply
from pytest_evocode.llm.waiting import Waiting, counted_in, waiting_of_turn


def never(released: threading.Event) -> Reply:
    released.wait(30)
    return Reply("At last.")


def test_a_turn_ends_in_time_though_whoever_asks_the_model_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_turn, "_GRACE", 0.1)
    released = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        model_turn.wait_for_reply(threading.Event(), lambda: never(released), Deadline(0.1))
    released.set()
    assert time.monotonic() - began < 20


def test_a_session_that_is_stopped_waits_for_no_answer() -> None:
    released, cancelled = threading.Event(), threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    with pytest.raises(Cancelled):
        model_turn.wait_for_reply(cancelled, lambda: never(released), Deadline(None))
    released.set()


def test_what_a_client_waits_for_in_its_thread_is_the_turns() -> None:
    now = [0.0]
    waiting = Waiting(clock=lambda: now[0])
    deadline = Deadline(10.0, waiting)

    def ask() -> Reply:
        with waiting_of_turn().pausing(100.0, "rate limit"):
            now[0] += 100.0
            assert not deadline.over  # While it waits, too.
        return Reply("At last.")

    with counted_in(waiting):
        assert model_turn.wait_for_reply(threading.Event(), ask, deadline).text == "At last."
    assert waiting.seconds == 100.0
    assert deadline.left is not None
    assert deadline.left > 100.0


def test_a_request_that_fails_while_the_turn_waits_anyhow_is_not_waited_for_twice() -> None:
    now = [0.0]
    waiting = Waiting(clock=lambda: now[0])
    with waiting.pausing(0.0, "provider"):  # As for the simulated user's model.
        now[0] += 30.0
        waiting.retry("network", 30.0)
    assert waiting.seconds == 30.0
    assert waiting.waits is not None
    assert waiting.waits.retries == 1


def test_of_waits_that_overlap_the_whole_time_counts_once() -> None:
    now = [0.0]
    waiting = Waiting(clock=lambda: now[0])
    first, second = waiting.pausing(2, "rate limit"), waiting.pausing(5, "network")
    first.__enter__()
    now[0] = 1.0
    second.__enter__()
    now[0] = 2.0
    first.__exit__(None, None, None)
    now[0] = 6.0
    assert waiting.seconds == 6.0
    second.__exit__(None, None, None)
    now[0] = 9.0
    assert waiting.seconds == 6.0
    assert waiting.waits is not None
    assert waiting.waits.seconds == {"rate limit": 2.0, "network": 4.0}


def test_what_waits_beside_a_request_that_is_with_the_model_does_not_stop_the_clock() -> None:
    now = [0.0]
    waiting = Waiting(clock=lambda: now[0])
    with waiting.pausing(20, "rate limit"):
        now[0] = 1.0
        with waiting.working():
            now[0] = 8.0
        now[0] = 10.0
    waiting.retry("network", 10.0)  # Of its seconds another request's answer took all but the last two.
    assert waiting.seconds == 3.0


def test_the_time_of_requests_that_come_to_nothing_counts_once_and_not_beside_one_that_is_answered() -> None:
    now = [0.0]
    waiting = Waiting(clock=lambda: now[0])
    with waiting.working() as lose:
        now[0] = 4.0
        lose()
        waiting.retry("provider", 4.0)
    with waiting.working():
        with waiting.working() as lose:
            now[0] = 6.0
            lose()
        waiting.retry("network", 2.0)
        assert waiting.seconds == 4.0
    with waiting.working() as lose:
        now[0] = 9.0
        lose()
    waiting.retry("network", 5.0)
    assert waiting.seconds == 7.0
