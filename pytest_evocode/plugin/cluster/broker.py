"""The one Ray actor of a run: messages from attempts to the driver, what the run has spent, which attempts stop.

It keeps the limits of connections to models' providers over all nodes, too: attempts ask it for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.llm.connection_limits import LocalConnections
from pytest_evocode.plugin.cluster.orders import ASK, SPENT, Message

Sent = tuple[str, int, str, Message]
"""An attempt's name, which try at it, the node's id, and a message."""

_MOST = 64 * 2**20
"""Bytes of files for the driver at once; attempts wait with more, so that nobody's memory fills up."""
_DRIVER_GONE = 30.0
"""Seconds after which a driver that takes no messages counts as lost."""


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """What an attempt learns whenever it has sent something."""

    stop: bool
    answers: Mapping[int, Any] = field(default_factory=dict)
    """The answers to questions, by the questions' numbers."""


class Broker:
    """What attempts on all nodes share; Ray calls its methods in one event loop."""

    def __init__(self, spent: float) -> None:
        self._spent = spent
        self._waiting: list[Sent] = []
        self._size = 0
        self._changed = asyncio.Condition()
        self._stops_all = False
        self._stopped: set[tuple[str, int]] = set()
        self._taken_at = time.monotonic()
        self._limits = LocalConnections()
        """A place is known by the attempt, the try at it, and its number there."""

    async def exchange(self, attempt: str, number: int, node: str, messages: Sequence[Message]) -> BrokerAnswer:
        """Take messages of one try at an attempt, in order, and say what it has to know."""
        told = [message for message in messages if message[0] != ASK]
        async with self._changed:
            while self._size > _MOST and not self._is_to_stop(attempt, number):
                await self._changed.wait()
            self._waiting += [(attempt, number, node, message) for message in told]
            self._size += sum(_size(message) for message in told)
            self._spent += sum(message[1] for message in told if message[0] == SPENT)
            if told:
                self._changed.notify_all()
        asked = (message[1:] for message in messages if message[0] == ASK)
        answers = {question: self._answer((attempt, number), *what) for question, *what in asked}
        return BrokerAnswer(self._is_to_stop(attempt, number), answers)

    def _answer(self, attempt: tuple[str, int], operation: str, *arguments: Any) -> Any:
        if operation == "spent":
            return self._spent
        account, *rest = arguments
        if operation == "take":
            most, place = rest
            return self._limits.take_for(account, most, (*attempt, place))
        if operation == "give_back":
            return self._limits.give_back(account, (*attempt, *rest))
        return getattr(self._limits, operation)(account, *rest)

    async def take(self, seconds: float) -> list[Sent]:
        """Return the messages that there are, or wait for some; for the driver."""
        self._taken_at = time.monotonic()
        async with self._changed:
            if not self._waiting:
                try:
                    await asyncio.wait_for(self._changed.wait(), seconds)
                except TimeoutError:
                    return []
            taken, self._waiting, self._size = self._waiting, [], 0
            self._changed.notify_all()
        return taken

    async def stop(self, attempt: str, number: int) -> None:
        """Have one try at an attempt stop."""
        self._stopped.add((attempt, number))

    async def forget(self, attempt: str, number: int) -> None:
        """Give back what a try at an attempt holds that is over, whether it ended or was lost."""
        self._limits.give_back_all(lambda place: isinstance(place, tuple) and place[:2] == (attempt, number))

    async def stop_all(self) -> None:
        """Have all attempts stop, later ones too."""
        self._stops_all = True
        async with self._changed:
            self._changed.notify_all()

    def _is_to_stop(self, attempt: str, number: int) -> bool:
        gone = time.monotonic() - self._taken_at > _DRIVER_GONE
        return self._stops_all or gone or (attempt, number) in self._stopped


def _size(message: Message) -> int:
    return sum(len(part) for part in message if isinstance(part, bytes))
