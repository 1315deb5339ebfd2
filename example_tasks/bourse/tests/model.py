"""What the contract says, edition by edition, in the plainest way: orders in sorted lists."""

from bisect import bisect_left, insort
from dataclasses import dataclass

BOOKS = [None, 1, 1, 2, 2, 3, 3, 3, 3, 4, 5]
"""The number in the first line of books, by edition."""
OTHER = {"BID": "ASK", "ASK": "BID"}


@dataclass(eq=False)
class Order:
    side: str
    id: str
    good: str
    price: int
    left: int
    came: int
    by: str = ""
    until: int = 0
    had: int = 0
    trigger: int = 0


class Model:
    """The exchange of one day. Requests are right, but for those that no case of a model's has."""

    def __init__(self, edition, book=""):
        self.edition = edition
        self.lines = []
        self.orders = {}
        self.sides = {}
        self.came = 0
        self.now = 0
        self.trades = []
        self.stops = {}
        self.woken = []
        self.used = set()
        for line in book.splitlines()[1:]:
            if line.startswith("CLOCK "):
                self.now = int(line.split()[1])
                continue
            if line.startswith("STOP "):
                self.wait(*line.split()[1:])
            elif line.startswith("USED "):
                self.used.add(line.split()[1])
            else:
                self.rest(self.new(*line.split()))

    def answers(self, requests):
        """Return the answers to requests."""
        self.lines = []
        for line in requests.splitlines():
            verb, *words = line.split()
            getattr(self, verb.lower())(*words)
            while self.woken:
                order = min(self.woken, key=lambda order: order.came)
                self.woken.remove(order)
                del self.stops[order.id]
                self.lines.append(f"WAKE {order.id}")
                self.came += 1
                order.came = self.came
                self.send(order)
        return "".join(f"{line}\n" for line in self.lines)

    def would_know(self, request):
        """Answer a request, where it is none of an order that does not rest, and tell whether."""
        verb, id, *_ = request.split()
        known = verb not in ("CANCEL", "CHANGE") or id in self.orders or (verb == "CANCEL" and id in self.stops)
        if known:
            self.answers(request)
        return known

    def book(self):
        lines = [f"bourse {BOOKS[self.edition]}"]
        if BOOKS[self.edition] >= 3:
            lines.append(f"CLOCK {self.now}")
        for order in sorted(self.orders.values(), key=lambda order: order.came):
            line = f"{order.side} {order.id} {order.good} {order.price} {order.left}"
            options = (("BY", order.by), ("UNTIL", order.until), ("HAD", order.had if self.edition >= 3 else 0))
            lines.append(line + "".join(f" {option} {value}" for option, value in options if value))
        for o in self.stops.values():
            by = f" BY {o.by}" if o.by else ""
            lines.append(f"STOP {o.side} {o.id} {o.good} {o.trigger} {o.price} {o.left}{by}")
        if self.edition >= 10:
            lines += [f"USED {id}" for id in sorted(self.used - {*self.orders} - {*self.stops})]
        return "".join(f"{line}\n" for line in lines)

    def bid(self, *words):
        self.send(self.new("BID", *words))

    def ask(self, *words):
        self.send(self.new("ASK", *words))

    def member(self, name):
        return sorted((o for o in self.orders.values() if o.by == name), key=lambda order: order.came)

    def open(self, member):
        self.lines += [f"ORDER {o.side} {o.id} {o.good} {o.price} {o.left}" for o in self.member(member)]
        self.lines.append("END")

    def clear(self, member):
        for order in self.member(member):
            self.cancel(order.id)
        self.lines.append("END")

    def cancel(self, id):
        if id in self.stops:
            self.lines.append(f"GONE {id} {self.stops.pop(id).left}")
            return
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

    def depth(self, good, most):
        for side in ("BID", "ASK"):
            levels = {}
            for order in map(self.orders.get, self.ids(side, good)):
                levels.setdefault(order.price, []).append(order.left)
            for price in list(levels)[: int(most)]:
                self.lines.append(f"LEVEL {side} {price} {sum(levels[price])} {len(levels[price])}")
        self.lines.append("END")

    def change(self, id, price, quantity):
        order, price, quantity = self.orders[id], int(price), int(quantity)
        if self.edition >= 3:
            quantity -= order.had
            if quantity <= 0:
                self.cancel(id)
                return
        if price == order.price and quantity <= order.left:
            self.lower(order, order.left - quantity)
            self.lines.append(f"REST {id} {quantity}")
        else:
            self.remove(order)
            self.came += 1
            order.price, order.left, order.came = price, quantity, self.came
            self.send(order)

    def clock(self, time):
        self.now = int(time)
        over = self.now if self.edition < 7 else self.now - 1
        ended = [order for order in self.orders.values() if 0 < order.until <= over]
        for order in sorted(ended, key=lambda order: (order.until, order.came)):
            self.lines.append(f"EXPIRED {order.id} {order.left}")
            self.remove(order)
        self.lines.append(f"CLOCK {self.now}")

    def bust(self, number):
        self.trades[int(number) - 1] = None
        self.lines.append(f"BUSTED {number}")

    def range(self, good):
        stand = [(price, quantity) for traded, price, quantity in filter(None, self.trades) if traded == good]
        prices = [price for price, _ in stand]
        ends = f"{min(prices)} {max(prices)}" if stand else "- -"
        self.lines.append(f"RANGE {good} {ends} {sum(quantity for _, quantity in stand)}")

    def volume(self, good, side, price):
        sign = 1 if side == "BID" else -1
        there = map(self.orders.get, self.ids(side, good))
        total = sum(o.left for o in there if o.price * sign >= int(price) * sign)
        self.lines.append(f"VOLUME {good} {side} {price} {total}")

    def stop(self, *words):
        self.wait(*words)
        self.lines.append(f"WAIT {words[1]}")

    def wait(self, side, id, good, trigger, *words):
        self.stops[id] = self.new(side, id, good, *words)
        self.stops[id].trigger = int(trigger)

    def traded(self, good, price, quantity):
        self.trades.append((good, price, quantity))
        for stop in self.stops.values():
            sign = 1 if stop.side == "BID" else -1
            if stop.good == good and price * sign >= stop.trigger * sign and stop not in self.woken:
                self.woken.append(stop)

    def show(self, id):
        if id in self.orders:
            o = self.orders[id]
            self.lines.append(f"SHOW {id} RESTS {o.side} {o.good} {o.price} {o.left}")
        else:
            self.lines.append(f"SHOW {id} {'WAITS' if id in self.stops else 'GONE'}")

    def new(self, side, id, good, price, quantity, *options):
        self.came += 1
        self.used.add(id)
        order = Order(side, id, good, int(price), int(quantity), self.came)
        for option, value in zip(options[::2], options[1::2], strict=True):
            setattr(order, option.lower(), value if option == "BY" else int(value))
        return order

    def send(self, order):
        there = self.sides.get((OTHER[order.side], order.good), [])
        while order.left and there:
            resting = self.orders[there[0][-1]]
            if (order.price - resting.price) * (1 if order.side == "BID" else -1) < 0:
                break
            if self.edition >= 8 and order.by and order.by == resting.by:
                self.lines.append(f"VOID {order.id} {order.left}")
                return
            if self.edition >= 6 and order.by and order.by == resting.by:
                self.lines.append(f"VOID {resting.id} {resting.left}")
                self.remove(resting)
                continue
            quantity = min(order.left, resting.left)
            self.lines.append(f"TRADE {order.good} {resting.price} {quantity} {order.id} {resting.id}")
            order.left -= quantity
            order.had += quantity
            resting.had += quantity
            self.lower(resting, quantity)
            self.traded(order.good, resting.price, quantity)
        if order.left:
            self.rest(order)
            self.lines.append(f"REST {order.id} {order.left}")
        else:
            self.lines.append(f"DONE {order.id}")

    def ids(self, side, good):
        return [ranked[-1] for ranked in self.sides.get((side, good), [])]

    def rank(self, order):
        """Return what orders are sorted by, the one that trades first in front, and the ID."""
        size = -order.left if self.edition >= 4 else 0
        return order.price * (-1 if order.side == "BID" else 1), size, order.came, order.id

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
