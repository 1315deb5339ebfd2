"""The trades of a day, and those of them that are busted."""

from heapq import heappop, heappush

from bourse.requests import Refused


class Good:
    """What was traded of one good and is not busted."""

    __slots__ = ("highs", "lows", "total")

    def __init__(self) -> None:
        self.total = 0
        self.lows: list[tuple[int, int]] = []  # Prices and numbers of trades, also of busted ones.
        self.highs: list[tuple[int, int]] = []  # With the negative price.


class Trades:
    """All trades of the day, numbered from 1."""

    def __init__(self) -> None:
        self._trades: list[tuple[str, int] | None] = []  # Good and quantity; None where it is busted.
        self._goods: dict[str, Good] = {}

    def add(self, good: str, price: int, quantity: int) -> None:
        there = self._goods.get(good)
        if there is None:
            there = self._goods[good] = Good()
        number = len(self._trades)
        self._trades.append((good, quantity))
        there.total += quantity
        heappush(there.lows, (price, number))
        heappush(there.highs, (-price, number))

    def bust(self, number: int) -> None:
        if number > len(self._trades) or self._trades[number - 1] is None:
            raise Refused("unknown")
        good, quantity = self._trades[number - 1]
        self._goods[good].total -= quantity
        self._trades[number - 1] = None

    def range(self, good: str) -> str:
        """Return the lowest and highest price and the quantity, as words."""
        there = self._goods.get(good)
        if there is None or not there.total:
            return "- - 0"
        return f"{self._first(there.lows)} {-self._first(there.highs)} {there.total}"

    def _first(self, heap: list[tuple[int, int]]) -> int:
        while self._trades[heap[0][1]] is None:
            heappop(heap)
        return heap[0][0]
