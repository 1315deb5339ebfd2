"""The limits of connections to models' providers over all nodes: attempts ask the run's broker, which keeps them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from pytest_evocode.llm.connection_limits import LocalConnections
from pytest_evocode.plugin.cluster.orders import LIMIT, Message

_LOOK = 0.5
"""Seconds between two looks for a place: each goes through the network."""


class _Line(Protocol):
    def ask_limits(self, message: Message) -> Any: ...


class ClusterConnections:
    """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`; for the process of one attempt."""

    look = _LOOK

    def __init__(self, line: _Line, most: int) -> None:
        self.most = most
        self._line = line
        self._numbers = itertools.count(1)

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        place = next(self._numbers)
        return place if self._ask("take", account, most, place) else None

    def give_back(self, account: str, place: Hashable) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        self._ask("give_back", account, place)

    def reserve(self, account: str) -> tuple[float, float]:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        seconds, reserved_at = self._ask("reserve", account)
        return seconds, reserved_at

    def confirm(self, account: str, reserved_at: float) -> bool:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        return bool(self._ask("confirm", account, reserved_at))

    def answered(self, account: str, reserved_at: float) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        self._ask("answered", account, reserved_at)

    def refused(self, account: str, reserved_at: float, retry_after: float | None) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        self._ask("refused", account, reserved_at, retry_after)

    def _ask(self, operation: str, account: str, *arguments: Any) -> Any:
        return self._line.ask_limits((LIMIT, next(self._numbers), operation, account, *arguments))


class BrokerConnections:
    """The limits as the broker keeps them; a place is known by the attempt, the try at it, and its number there."""

    def __init__(self) -> None:
        self._limits = LocalConnections()

    def answer(self, attempt: str, number: int, messages: Sequence[Message]) -> Mapping[int, Any]:
        """Return the answers to those of some messages that ask for something, by the numbers of the questions."""
        return {message[1]: self._do(attempt, number, *message[2:]) for message in messages if message[0] == LIMIT}

    def _do(self, attempt: str, number: int, operation: str, account: str, *arguments: Any) -> Any:
        if operation == "take":
            most, place = arguments
            return self._limits.take_for(account, most, (attempt, number, place))
        if operation == "give_back":
            return self._limits.give_back(account, (attempt, number, arguments[0]))
        return getattr(self._limits, operation)(account, *arguments)

    def forget(self, attempt: str, number: int) -> None:
        """Give back the places of a try at an attempt that is over."""
        self._limits.give_back_all(lambda place: isinstance(place, tuple) and place[:2] == (attempt, number))
