"""What one can do with items."""
import datetime

from stockroom import config, storage
from stockroom.errors import StockError


def number(text):
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise StockError("bad quantity: %s" % text)
    return value


def find(sku):
    for item in storage.ITEMS:
        if item["sku"] == sku:
            return item
    return None


def known(sku):
    item = find(sku)
    if item is None:
        raise StockError("unknown sku: %s" % sku)
    return item


def all_items():
    return sorted(storage.ITEMS, key=lambda i: i["sku"])


def add_item(sku, name, qty, price, location=None):
    if find(sku) is not None:
        raise StockError("duplicate sku: %s" % sku)
    qty = number(qty)
    try:
        amount = float(price)
    except ValueError:
        amount = -1
    if amount < 0:
        raise StockError("bad price: %s" % price)
    if location is None:
        location = config.settings["location"]
    storage.ITEMS.append({"sku": sku, "name": name, "qty": qty, "price": amount, "location": location})


def change(sku, delta, note=""):
    item = known(sku)
    if item["qty"] + delta < 0:
        raise StockError("not enough stock: %s has %d" % (sku, item["qty"]))
    item["qty"] = item["qty"] + delta
    at = datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
    storage.MOVES.append({"at": at, "sku": sku, "delta": delta, "note": note})
    return item["qty"]
