"""The stock of one directory."""

import datetime
import os

from stockroom import config, money, sqlitestore
from stockroom.errors import RetiredError, StockError
from stockroom.records import Item, Move, Reservation
from stockroom.sqlitestore import SqliteStore


def open_stock(directory):
    """The stock of the directory: from stock.db, which a new directory gets."""
    if not os.path.isdir(directory):
        raise StockError(f"no such directory: {directory}")
    database = os.path.join(directory, "stock.db")
    if not os.path.exists(database) and os.path.exists(os.path.join(directory, "stock.csv")):
        raise RetiredError("CSV storage is retired, run migrate first")
    settings = config.read(directory)
    if not os.path.exists(database):
        sqlitestore.create(database)
    return Stock(directory, settings, SqliteStore(database))


class Stock:
    """Changes are kept back until `save`; as a context manager it saves unless the block raises."""

    def __init__(self, directory, settings, store):
        self.directory = directory
        self.settings = settings
        self.store = store

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.save()
        finally:
            self.close()

    def add_item(self, sku, name, qty, price, location=None):
        if location is None:
            location = self.settings["location"]
        check_text(sku, name, location)
        self.store.begin()
        if self.store.find(sku) is not None:
            raise StockError(f"duplicate sku: {sku}")
        self.store.put(Item(sku, name, quantity(qty), amount(price), location))

    def change(self, sku, delta, note=""):
        check_text(sku, note)
        self.store.begin()
        item = self.known(sku)
        reserved = self.store.reserved(sku)
        if item.qty + delta < 0 or (delta < 0 and item.qty + delta < reserved):
            raise not_enough(item, reserved)
        return self.book(item, delta, note)

    def book(self, item, delta, note):
        """The new quantity."""
        after = item.qty + delta
        self.store.put(item._replace(qty=after))
        at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.store.record(Move(at, item.sku, delta, note), after)
        return after

    def reserve(self, sku, n, ref):
        """Sets n aside for the order; what is free then."""
        check_text(sku, ref)
        if (more := quantity(n)) == 0:
            raise StockError(f"bad quantity: {n}")
        self.store.begin()
        item = self.known(sku)
        reserved = self.store.reserved(sku)
        if reserved + more > item.qty:
            raise not_enough(item, reserved)
        self.store.reserve(Reservation(ref, sku, more))
        return item.qty - reserved - more

    def release(self, ref):
        for reservation in self.order(ref):
            self.store.release(ref, reservation.sku)

    def ship(self, ref):
        """Books all that the order has; each item's SKU with the quantities before and after."""
        shipped = []
        for reservation in self.order(ref):
            item = self.known(reservation.sku)
            shipped.append((item.sku, item.qty, self.book(item, -reservation.qty, f"ship {ref}")))
            self.store.release(ref, item.sku)
        return shipped

    def order(self, ref):
        """What the order has, by SKU, and nobody else can change any more."""
        check_text(ref)
        self.store.begin()
        found = [reservation for reservation in self.store.reservations() if reservation.ref == ref]
        if not found:
            raise StockError(f"unknown order: {ref}")
        return found

    def reservations(self):
        return [reservation._asdict() for reservation in self.store.reservations()]

    def known(self, sku):
        check_text(sku)
        item = self.store.find(sku)
        if item is None:
            raise StockError(f"unknown sku: {sku}")
        return item

    def find(self, sku):
        item = self.store.find(sku)
        return None if item is None else as_dict(item)

    def all_items(self):
        return [as_dict(item) for item in self.store.all()]

    def total_value(self):
        return self.total() / money.UNIT

    def total(self):
        """In units of money."""
        return sum(item.qty * item.price for item in self.store.all())

    def save(self):
        self.store.save()

    def close(self):
        self.store.close()


def not_enough(item, reserved):
    told = f", {reserved} reserved" if reserved else ""
    return StockError(f"not enough stock: {item.sku} has {item.qty}{told}")


def as_dict(item):
    return {**item._asdict(), "price": item.price / money.UNIT}


def check_text(*texts):
    try:
        "".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        raise StockError("not valid UTF-8") from None


def quantity(text):
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise StockError(f"bad quantity: {text}")
    return value


def amount(price):
    try:
        return money.parse(str(price))
    except ValueError:
        raise StockError(f"bad price: {price}") from None
