"""What rests on one side of a good: levels of prices, the best one always at hand."""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator


class Order:
    """An order that has been sent."""

    __slots__ = ("good", "id", "left", "level", "price", "side")

    def __init__(self, side: str, id: str, good: str, price: int, left: int) -> None:
        self.side = side
        self.id = id
        self.good = good
        self.price = price
        self.left = left
        self.level: Level | None = None


class Level:
    """The orders of one price."""

    __slots__ = ("orders", "price", "total")

    def __init__(self, price: int) -> None:
        self.price = price
        self.total = 0
        self.orders: OrderedDict[str, Order] = OrderedDict()

    def first(self) -> Order:
        """Return the order that trades next; there is one."""
        return next(iter(self.orders.values()))


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
        level.orders[order.id] = order
        level.total += order.left

    def lower(self, order: Order, quantity: int) -> None:
        """Take a quantity of what is left of an order, and with the last of it the order."""
        level = order.level
        order.left -= quantity
        level.total -= quantity
        if not order.left:
            del level.orders[order.id]
            if not level.orders:
                key = order.price * self.sign
                del self.levels[key]
                del self.keys[bisect_left(self.keys, key)]
