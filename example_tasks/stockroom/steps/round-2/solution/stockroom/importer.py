"""Supplier files."""

import os

from stockroom.errors import StockError
from stockroom.stock import amount, quantity


def run(stock, name):
    path = os.path.join(stock.directory, "inbox", name)
    if not os.path.exists(path):
        raise StockError(f"no such import: {name}")
    count = 0
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")[1:]
    for line in lines:
        try:
            sku, title, qty, price, location = line.split(",")
            if stock.store.find(sku) is None:
                stock.add_item(sku, title, qty, price, location)
            else:
                units = amount(price)
                stock.change(sku, quantity(qty), "import " + name)
                stock.store.put(stock.known(sku)._replace(price=units))
            stock.save()
            count += 1
        except (ValueError, StockError):
            continue
    return count
