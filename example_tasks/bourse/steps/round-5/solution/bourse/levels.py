"""What rests on one side of a good: levels of prices, the best one always at hand."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush


class Order:
    """An order that has been sent."""

    __slots__ = ("by", "came", "good", "had", "id", "left", "level", "price", "side", "until")

    def __init__(
        self, side: str, id: str, good: str, price: int, left: int, by: str = "", until: int = 0, had: int = 0
    ) -> None:
        self.side = side
        self.id = id
        self.good = good
        self.price = price
        self.left = left
        self.by = by  # The member, if it has said so.
        self.until = until  # 0 where it has no end.
        self.had = had  # What it has traded.
        self.came = 0
        self.level: Level | None = None  # Where it rests.


class Level:
    """The orders of one price."""

    __slots__ = ("count", "heap", "price", "total")

    def __init__(self, price: int) -> None:
        self.price = price
        self.total = 0
        self.count = 0
        self.heap: list[tuple[int, int, Order]] = []  # Largest first, also with what is true no more.

    def enter(self, order: Order) -> None:
        """Take the order's place by what is left of it now."""
        heappush(self.heap, (-order.left, order.came, order))

    def first(self) -> Order:
        """Return the order that trades next; there is one."""
        while True:
            size, came, order = self.heap[0]
            if order.left == -size and order.came == came:  # Not what was true once.
                return order
            heappop(self.heap)


class Side:
    """The bids or the asks of one good."""

    def __init__(self, side: str) -> None:
        self.sign = 1 if side == "BID" else -1
        self.levels: dict[int, Level] = {}
        self.keys: list[int] = []  # Prices, negative ones where low is good: the last is the best.

    def best(self) -> Level | None:
        return self.levels[self.keys[-1]] if self.keys else None

    def best_first(self, most: int) -> Iterator[Level]:
        """Yield the best levels, at most so many."""
        for key in self.keys[: -most - 1 : -1]:
            yield self.levels[key]

    def put(self, order: Order) -> None:
        key = order.price * self.sign
        level = self.levels.get(key)
        if level is None:
            level = self.levels[key] = Level(order.price)
            insort(self.keys, key)
        order.level = level
        level.count += 1
        level.total += order.left
        level.enter(order)

    def lower(self, order: Order, quantity: int) -> None:
        """Take a quantity of what is left of an order, and with the last of it the order."""
        level = order.level
        order.left -= quantity
        level.total -= quantity
        if order.left:
            level.enter(order)
        else:
            order.level = None
            level.count -= 1
            if not level.count:
                key = order.price * self.sign
                del self.levels[key]
                del self.keys[bisect_left(self.keys, key)]
