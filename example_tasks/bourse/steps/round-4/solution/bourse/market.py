"""The engine: orders come, trade, rest and go."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from bourse.levels import Order, Side
from bourse.requests import Refused

OTHER = {"BID": "ASK", "ASK": "BID"}


class Market:
    """All orders that rest. Answers go to `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._orders: dict[str, Order] = {}  # In the order in which they came.
        self._sides: dict[tuple[str, str], Side] = {}
        self._came = 0
        self._members: dict[str, OrderedDict[str, Order]] = {}

    def resting(self) -> Iterator[Order]:
        return iter(self._orders.values())

    def restore(self, side: str, id: str, *arguments, **options) -> None:
        """Put an order of a book where it was."""
        if id in self._orders:
            raise Refused("duplicate")
        self._rest(Order(side, id, *arguments, **options))

    def bid(self, *arguments, **options) -> None:
        self._send("BID", *arguments, **options)

    def ask(self, *arguments, **options) -> None:
        self._send("ASK", *arguments, **options)

    def cancel(self, id: str) -> None:
        order = self._known(id)
        self._say(f"GONE {id} {order.left}")
        self._lower(order, order.left)

    def best(self, good: str) -> None:
        words = []
        for side in ("BID", "ASK"):
            level = self._side(side, good).best()
            words += ["-", "-"] if level is None else [str(level.price), str(level.total)]
        self._say(f"BEST {good} {' '.join(words)}")

    def depth(self, good: str, most: int) -> None:
        for side in ("BID", "ASK"):
            for level in self._side(side, good).best_first(most):
                self._say(f"LEVEL {side} {level.price} {level.total} {level.count}")
        self._say("END")

    def change(self, id: str, price: int, quantity: int) -> None:
        order = self._known(id)
        left = quantity - order.had
        if left <= 0:
            self.cancel(id)
        elif price == order.price and left <= order.left:
            self._lower(order, order.left - left)
            self._say(f"REST {id} {left}")
        else:
            self._lower(order, order.left)
            order.price, order.left = price, left
            self._enter(order)

    def open(self, member: str) -> None:
        for order in self._members.get(member, {}).values():
            self._say(f"ORDER {order.side} {order.id} {order.good} {order.price} {order.left}")
        self._say("END")

    def clear(self, member: str) -> None:
        for id in list(self._members.get(member, ())):
            self.cancel(id)
        self._say("END")

    def _send(self, side: str, id: str, *arguments, **options) -> None:
        if id in self._orders:
            raise Refused("duplicate")
        self._enter(Order(side, id, *arguments, **options))

    def _enter(self, order: Order) -> None:
        """Trade what meets, and rest with what is left."""
        self._trade(order)
        if order.left:
            self._rest(order)
            self._say(f"REST {order.id} {order.left}")
        else:
            self._say(f"DONE {order.id}")

    def _trade(self, order: Order) -> None:
        other = self._side(OTHER[order.side], order.good)
        limit = order.price * other.sign
        while order.left and other.keys and other.keys[-1] >= limit:
            resting = other.best().first()
            quantity = min(order.left, resting.left)
            order.left -= quantity
            order.had += quantity
            resting.had += quantity
            self._lower(resting, quantity)
            self._say(f"TRADE {order.good} {resting.price} {quantity} {order.id} {resting.id}")

    def _rest(self, order: Order) -> None:
        self._came += 1
        order.came = self._came
        self._orders[order.id] = order
        if order.by:
            self._members.setdefault(order.by, OrderedDict())[order.id] = order
        self._side(order.side, order.good).put(order)

    def _lower(self, order: Order, quantity: int) -> None:
        self._side(order.side, order.good).lower(order, quantity)
        if not order.left:
            del self._orders[order.id]
            if order.by:
                del self._members[order.by][order.id]

    def _side(self, side: str, good: str) -> Side:
        try:
            return self._sides[side, good]
        except KeyError:
            return self._sides.setdefault((side, good), Side(side))

    def _known(self, id: str) -> Order:
        if id not in self._orders:
            raise Refused("unknown")
        return self._orders[id]
