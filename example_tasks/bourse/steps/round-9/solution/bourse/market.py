"""The engine: orders come, trade, rest and go."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from bourse.levels import Order, Side
from bourse.requests import Refused
from bourse.stops import Stop, Stops
from bourse.trades import Trades

OTHER = {"BID": "ASK", "ASK": "BID"}


class Market:
    """All orders that rest. Answers go to `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.clock_stands = 0
        self._orders: dict[str, Order] = {}  # In the order in which they came.
        self._sides: dict[tuple[str, str], Side] = {}
        self._trades = Trades()
        self.stops = Stops()
        self._came = 0
        self._ends: list[tuple[int, int, Order]] = []  # Also of orders that are gone.
        self._members: dict[str, OrderedDict[str, Order]] = {}

    def resting(self) -> Iterator[Order]:
        return iter(self._orders.values())

    def restore(self, side: str, id: str, *arguments, **options) -> None:
        """Put an order of a book where it was."""
        self._take(id)
        self._rest(Order(side, id, *arguments, **options))

    def bid(self, *arguments, **options) -> None:
        self._send("BID", *arguments, **options)

    def ask(self, *arguments, **options) -> None:
        self._send("ASK", *arguments, **options)

    def cancel(self, id: str) -> None:
        if id in self.stops:
            self._say(f"GONE {id} {self.stops.remove(id).quantity}")
            return
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
            self._wake()

    def open(self, member: str) -> None:
        for order in self._members.get(member, {}).values():
            self._say(f"ORDER {order.side} {order.id} {order.good} {order.price} {order.left}")
        self._say("END")

    def clear(self, member: str) -> None:
        for id in list(self._members.get(member, ())):
            self.cancel(id)
        self._say("END")

    def clock(self, time: int) -> None:
        if time < self.clock_stands:
            raise Refused("late")
        self.clock_stands = time
        while self._ends and self._ends[0][0] < time:
            _, came, order = heappop(self._ends)
            if order.level is not None and order.came == came:
                self._say(f"EXPIRED {order.id} {order.left}")
                self._lower(order, order.left)
        self._say(f"CLOCK {time}")

    def bust(self, number: int) -> None:
        self._trades.bust(number)
        self._say(f"BUSTED {number}")

    def range(self, good: str) -> None:
        self._say(f"RANGE {good} {self._trades.range(good)}")

    def volume(self, good: str, side: str, price: int) -> None:
        self._say(f"VOLUME {good} {side} {price} {self._side(side, good).volume(price)}")

    def stop(self, side: str, id: str, *arguments, **options) -> None:
        self.restore_stop(side, id, *arguments, **options)
        self._say(f"WAIT {id}")

    def restore_stop(self, side: str, id: str, *arguments, **options) -> None:
        self._take(id)
        self.stops.add(Stop(side, id, *arguments, **options))

    def _send(self, side: str, id: str, *arguments, **options) -> None:
        if options.get("until", self.clock_stands) < self.clock_stands:
            raise Refused("late")
        self._take(id)
        self._enter(Order(side, id, *arguments, **options))
        self._wake()

    def _take(self, id: str) -> None:
        """Refuse an ID that is taken."""
        if id in self._orders or id in self.stops:
            raise Refused("duplicate")

    def _wake(self) -> None:
        """Have the stops become orders that the trades have woken."""
        while stop := self.stops.next_woken():
            self._say(f"WAKE {stop.id}")
            self._enter(Order(stop.side, stop.id, stop.good, stop.price, stop.quantity, stop.by))

    def _enter(self, order: Order) -> None:
        """Trade what meets, and rest with what is left."""
        if not self._trade(order):
            return
        if order.left:
            self._rest(order)
            self._say(f"REST {order.id} {order.left}")
        else:
            self._say(f"DONE {order.id}")

    def _trade(self, order: Order) -> bool:
        """Trade what meets, and tell whether what is left may rest."""
        other = self._side(OTHER[order.side], order.good)
        limit = order.price * other.sign
        while order.left and other.keys and other.keys[-1] >= limit:
            resting = other.best().first()
            if order.by and order.by == resting.by:
                self._say(f"VOID {order.id} {order.left}")
                return False
            quantity = min(order.left, resting.left)
            order.left -= quantity
            order.had += quantity
            resting.had += quantity
            self._lower(resting, quantity)
            self._trades.add(order.good, resting.price, quantity)
            self.stops.traded(order.good, resting.price)
            self._say(f"TRADE {order.good} {resting.price} {quantity} {order.id} {resting.id}")
        return True

    def _rest(self, order: Order) -> None:
        self._came += 1
        order.came = self._came
        self._orders[order.id] = order
        if order.until:
            heappush(self._ends, (order.until, order.came, order))
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
