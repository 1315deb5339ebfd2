"""What attempts on all nodes share: messages to the driver, the run's cost, the word to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from pytest_evocode.plugin.cluster import node as broker_module
from pytest_evocode.plugin.cluster.node import Broker, BrokerAnswer
from pytest_evocode.plugin.cluster.orders import ASK, FILE, NOTE, SPENT

pytestmark = pytest.mark.every_python

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def test_messages_come_in_order_and_once() -> None:
    async def work() -> None:
        broker = Broker(0.0)
        await broker.exchange("a", 1, "node", [(NOTE, "1"), (NOTE, "2")])
        await broker.exchange("b", 1, "node", [(NOTE, "3")])
        assert [sent[3][1] for sent in await broker.take(1.0)] == ["1", "2", "3"]
        assert await broker.take(0.01) == []

    run(work())


def test_the_driver_is_woken_by_the_first_message() -> None:
    async def work() -> None:
        broker = Broker(0.0)
        waiting = asyncio.create_task(broker.take(60.0))
        await asyncio.sleep(0)
        await broker.exchange("a", 1, "node", [(NOTE, "1")])
        assert len(await waiting) == 1

    run(work())


def test_what_one_attempt_spends_the_others_are_told() -> None:
    async def work() -> BrokerAnswer:
        broker = Broker(1.0)
        await broker.exchange("a", 1, "node", [(SPENT, 0.5), (SPENT, 0.25)])
        return await broker.exchange("b", 1, "other", [(ASK, 1, "spent")])

    assert run(work()) == BrokerAnswer(stop=False, answers={1: 1.75})


def test_one_try_stops_and_no_other() -> None:
    async def work() -> list[bool]:
        broker = Broker(0.0)
        await broker.stop("a", 1)
        tries = [("a", 1), ("a", 2), ("b", 1)]
        found = [(await broker.exchange(name, number, "node", [])).stop for name, number in tries]
        await broker.stop_all()
        return [*found, (await broker.exchange("b", 1, "node", [])).stop]

    assert run(work()) == [True, False, False, True]


def test_attempts_stop_when_the_driver_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "_DRIVER_GONE", -1.0)
    assert run(Broker(0.0).exchange("a", 1, "node", [])).stop


def test_attempts_wait_where_the_driver_does_not_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "_MOST", 10)

    async def work() -> None:
        broker = Broker(0.0)
        await broker.exchange("a", 1, "node", [(FILE, "x", b"0123456789a", True)])
        second = asyncio.create_task(broker.exchange("a", 1, "node", [(FILE, "y", b"b", True)]))
        await asyncio.sleep(0.01)
        assert not second.done()
        assert [sent[3][1] for sent in await broker.take(1.0)] == ["x"]
        await second
        assert [sent[3][1] for sent in await broker.take(1.0)] == ["y"]

    run(work())
