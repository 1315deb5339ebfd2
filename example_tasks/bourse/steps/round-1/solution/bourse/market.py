"""The engine: orders come, trade, rest and go."""

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

    def resting(self) -> Iterator[Order]:
        return iter(self._orders.values())

    def restore(self, side: str, id: str, good: str, price: int, left: int) -> None:
        """Put an order of a book where it was."""
        if id in self._orders:
            raise Refused("duplicate")
        self._rest(Order(side, id, good, price, left))

    def bid(self, *arguments) -> None:
        self._send("BID", *arguments)

    def ask(self, *arguments) -> None:
        self._send("ASK", *arguments)

    def cancel(self, id: str) -> None:
        order = self._known(id)
        left = order.left
        self._lower(order, left)
        self._say(f"GONE {id} {left}")

    def best(self, good: str) -> None:
        words = []
        for side in ("BID", "ASK"):
            level = self._side(side, good).best()
            words += ["-", "-"] if level is None else [str(level.price), str(level.total)]
        self._say(f"BEST {good} {' '.join(words)}")

    def _send(self, side: str, id: str, good: str, price: int, quantity: int) -> None:
        if id in self._orders:
            raise Refused("duplicate")
        order = Order(side, id, good, price, quantity)
        self._trade(order)
        if order.left:
            self._rest(order)
            self._say(f"REST {id} {order.left}")
        else:
            self._say(f"DONE {id}")

    def _trade(self, order: Order) -> None:
        other = self._side(OTHER[order.side], order.good)
        limit = order.price * other.sign
        while order.left and other.keys and other.keys[-1] >= limit:
            resting = other.best().first()
            quantity = min(order.left, resting.left)
            order.left -= quantity
            self._lower(resting, quantity)
            self._say(f"TRADE {order.good} {resting.price} {quantity} {order.id} {resting.id}")

    def _rest(self, order: Order) -> None:
        self._orders[order.id] = order
        self._side(order.side, order.good).put(order)

    def _lower(self, order: Order, quantity: int) -> None:
        self._side(order.side, order.good).lower(order, quantity)
        if not order.left:
            del self._orders[order.id]

    def _side(self, side: str, good: str) -> Side:
        try:
            return self._sides[side, good]
        except KeyError:
            return self._sides.setdefault((side, good), Side(side))

    def _known(self, id: str) -> Order:
        if id not in self._orders:
            raise Refused("unknown")
        return self._orders[id]
