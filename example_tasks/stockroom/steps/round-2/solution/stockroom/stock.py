"""The stock of one directory, whichever way it is stored."""

import datetime
import os

from stockroom import config, money
from stockroom.csvstore import CsvStore
from stockroom.errors import StockError
from stockroom.records import Item, Move
from stockroom.sqlitestore import SqliteStore


def open_stock(directory):
    """The stock of the directory: from stock.db if there is one, else from the CSV files."""
    if not os.path.isdir(directory):
        raise StockError(f"no such directory: {directory}")
    settings = config.read(directory)
    database = os.path.join(directory, "stock.db")
    store = SqliteStore(database) if os.path.exists(database) else CsvStore(directory)
    return Stock(directory, settings, store)


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
        if self.store.find(sku) is not None:
            raise StockError(f"duplicate sku: {sku}")
        self.store.put(Item(sku, name, quantity(qty), amount(price), location))

    def change(self, sku, delta, note=""):
        check_text(sku, note)
        item = self.known(sku)
        if item.qty + delta < 0:
            raise StockError(f"not enough stock: {sku} has {item.qty}")
        self.store.put(item._replace(qty=item.qty + delta))
        at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.store.record(Move(at, sku, delta, note))
        return item.qty + delta

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
