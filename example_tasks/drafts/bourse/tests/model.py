"""What the contract says, edition by edition, in the plainest way: orders in sorted lists."""

from bisect import bisect_left, insort
from dataclasses import dataclass

OTHER = {"BID": "ASK", "ASK": "BID"}


@dataclass(eq=False)
class Order:
    side: str
    id: str
    good: str
    price: int
    left: int
    came: int


class Model:
    """The exchange of one day. Requests are right, but for those that no case of a model's has."""

    def __init__(self, edition, book=""):
        self.edition = edition
        self.lines = []
        self.orders = {}
        self.sides = {}
        self.came = 0
        for line in book.splitlines()[1:]:
            side, id, good, price, left, *_rest = line.split()
            self.rest(self.new(side, id, good, price, left))

    def answers(self, requests):
        """Return the answers to requests."""
        self.lines = []
        for line in requests.splitlines():
            verb, *words = line.split()
            getattr(self, verb.lower())(*words)
        return "".join(f"{line}\n" for line in self.lines)

    def book(self):
        lines = ["bourse 1", *(f"{o.side} {o.id} {o.good} {o.price} {o.left}" for o in self.orders.values())]
        return "".join(f"{line}\n" for line in lines)

    def bid(self, id, good, price, quantity):
        self.send(self.new("BID", id, good, price, quantity))

    def ask(self, id, good, price, quantity):
        self.send(self.new("ASK", id, good, price, quantity))

    def cancel(self, id):
        order = self.orders[id]
        self.lines.append(f"GONE {id} {order.left}")
        self.remove(order)

    def best(self, good):
        words = []
        for side in ("BID", "ASK"):
            there = self.sides.get((side, good))
            if there:
                price = self.orders[there[0][-1]].price
                words += [price, sum(o.left for o in map(self.orders.get, self.ids(side, good)) if o.price == price)]
            else:
                words += ["-", "-"]
        self.lines.append(f"BEST {good} {' '.join(map(str, words))}")

    def new(self, side, id, good, price, quantity):
        self.came += 1
        return Order(side, id, good, int(price), int(quantity), self.came)

    def send(self, order):
        there = self.sides.get((OTHER[order.side], order.good), [])
        while order.left and there:
            resting = self.orders[there[0][-1]]
            if (order.price - resting.price) * (1 if order.side == "BID" else -1) < 0:
                break
            quantity = min(order.left, resting.left)
            self.lines.append(f"TRADE {order.good} {resting.price} {quantity} {order.id} {resting.id}")
            order.left -= quantity
            self.lower(resting, quantity)
        if order.left:
            self.rest(order)
            self.lines.append(f"REST {order.id} {order.left}")
        else:
            self.lines.append(f"DONE {order.id}")

    def ids(self, side, good):
        return [ranked[-1] for ranked in self.sides.get((side, good), [])]

    def rank(self, order):
        """Return what orders are sorted by, the one that trades first in front, and the ID."""
        return order.price * (-1 if order.side == "BID" else 1), order.came, order.id

    def rest(self, order):
        self.orders[order.id] = order
        insort(self.sides.setdefault((order.side, order.good), []), self.rank(order))

    def lower(self, order, quantity):
        there = self.sides[order.side, order.good]
        del there[bisect_left(there, self.rank(order))]
        order.left -= quantity
        if order.left:
            insort(there, self.rank(order))
        else:
            del self.orders[order.id]

    def remove(self, order):
        self.lower(order, order.left)
