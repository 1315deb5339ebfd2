"""Stops: orders that wait for a price."""

from collections.abc import Iterator
from heapq import heappop, heappush


class Stop:
    """A stop that waits, or has waited."""

    __slots__ = ("by", "came", "good", "id", "price", "quantity", "side", "trigger", "waits")

    def __init__(self, side: str, id: str, good: str, trigger: int, price: int, quantity: int, by: str = "") -> None:
        self.side = side
        self.id = id
        self.good = good
        self.trigger = trigger
        self.price = price
        self.quantity = quantity
        self.by = by
        self.came = 0
        self.waits = True


class Stops:
    """All stops that wait, and those that are woken and next."""

    def __init__(self) -> None:
        self._stops: dict[str, Stop] = {}  # In the order in which they came.
        self._came = 0
        # By side and good the nearest first, with the number by which it came; also those that wait no more.
        self._triggers: dict[tuple[str, str], list[tuple[int, int, Stop]]] = {}
        self._woken: list[tuple[int, Stop]] = []

    def __contains__(self, id: str) -> bool:
        return id in self._stops

    def __iter__(self) -> Iterator[Stop]:
        return iter(self._stops.values())

    def add(self, stop: Stop) -> None:
        self._came += 1
        stop.came = self._came
        self._stops[stop.id] = stop
        distance = stop.trigger if stop.side == "BID" else -stop.trigger
        heappush(self._triggers.setdefault((stop.side, stop.good), []), (distance, stop.came, stop))

    def remove(self, id: str) -> Stop:
        stop = self._stops.pop(id)
        stop.waits = False
        return stop

    def traded(self, good: str, price: int) -> None:
        """Wake those that wait for a trade of a good at this price."""
        for side, distance in (("BID", price), ("ASK", -price)):
            triggers = self._triggers.get((side, good))
            while triggers and triggers[0][0] <= distance:
                _, came, stop = heappop(triggers)
                if stop.waits:
                    heappush(self._woken, (came, stop))

    def next_woken(self) -> Stop | None:
        """Take the woken stop that came first."""
        return self.remove(heappop(self._woken)[1].id) if self._woken else None
