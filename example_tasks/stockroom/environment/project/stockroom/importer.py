"""Supplier files."""
import os

from stockroom import items, storage
from stockroom.errors import StockError


def run(name):
    path = os.path.join(storage.DIRECTORY, "inbox", name)
    if not os.path.exists(path):
        raise StockError("no such import: %s" % name)
    count = 0
    for line in open(path).read().split("\n")[1:]:
        try:
            sku, title, qty, price, location = line.split(",")
            item = items.find(sku)
            if item is None:
                items.add_item(sku, title, qty, price, location)
            else:
                items.change(sku, items.number(qty), "import " + name)
                item["price"] = float(price)
            storage.save()
            count = count + 1
        except (ValueError, StockError):
            continue
    return count
