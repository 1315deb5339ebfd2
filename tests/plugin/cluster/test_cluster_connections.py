"""Limits of connections that attempts on several nodes share, as the broker keeps them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest

from pytest_evocode.errors import Cancelled
from pytest_evocode.plugin.cluster.attempt_process import ClusterConnections, Line
from pytest_evocode.plugin.cluster.node import Broker, BrokerAnswer

pytestmark = pytest.mark.every_python


def attempt(broker: Broker, name: str, number: int = 1) -> ClusterConnections:
    """What one try at an attempt has, whose node answers as the broker does."""
    ours, theirs = Pipe()

    def node(connection: Connection) -> None:
        with connection, contextlib.suppress(EOFError, OSError):
            while True:
                message = connection.recv()
                connection.send(asyncio.run(broker.exchange(name, number, "node", [message])))

    threading.Thread(target=node, args=(theirs,), daemon=True).start()
    line = Line(ours)
    line.begin(threading.Event())
    return ClusterConnections(line, 2)


def test_attempts_of_all_nodes_share_the_places_and_a_lost_one_gives_its_back() -> None:
    broker = Broker(0.0)
    first, other = attempt(broker, "a"), attempt(broker, "b")
    place = first.take("openai-x", 2)
    assert place is not None
    assert other.take("openai-x", 2) is not None
    assert first.take("openai-x", 2) is None
    assert other.take("openai-y", 2) is not None
    first.give_back("openai-x", place)
    assert first.take("openai-x", 2) is not None
    assert other.take("openai-x", 2) is None
    asyncio.run(broker.forget("b", 2))  # Another try.
    assert other.take("openai-x", 2) is None
    asyncio.run(broker.forget("a", 1))
    assert other.take("openai-x", 2) is not None


def test_attempts_of_all_nodes_slow_down_together() -> None:
    broker = Broker(0.0)
    first, other = attempt(broker, "a"), attempt(broker, "b")
    seconds, ticket = first.reserve("openai-x")
    assert seconds == 0
    first.answered("openai-x", ticket)
    first.refused("openai-x", ticket, 30.0)
    seconds, ticket = other.reserve("openai-x")
    assert 20 < seconds <= 30
    assert 20 < other.wait("openai-x", ticket) <= 30
    assert other.reserve("openai-y")[0] == 0


def test_an_attempt_that_is_to_stop_waits_for_no_answer() -> None:
    ours, theirs = Pipe()
    line = Line(ours)
    line.begin(threading.Event())
    theirs.send(BrokerAnswer(True))
    with pytest.raises(Cancelled):
        ClusterConnections(line, 2).reserve("openai-x")
    theirs.close()
