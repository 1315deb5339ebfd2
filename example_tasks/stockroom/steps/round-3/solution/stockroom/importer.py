"""Supplier files: read as a whole, then booked in one go."""

import os

from stockroom import csvstore
from stockroom.errors import StockError
from stockroom.records import Item


def run(stock, name, dry_run):
    """Books the file and says what it did. The caller saves, or does not."""
    path = os.path.join(stock.directory, "inbox", name)
    if not os.path.exists(path):
        raise StockError(f"no such import: {name}")
    rows = csvstore.read(path, Item, to_row, check_header=True)
    stock.store.begin()
    new = sum(book(stock, row, f"import {name}") for row in rows)
    done = "would import" if dry_run else "imported"
    return f"{done} {len(rows)}: {new} new, {len(rows) - new} known"


def to_row(*fields):
    item = csvstore.to_item(*fields)
    if item.qty < 0:
        raise ValueError(fields)
    return item


def book(stock, row, note):
    """Whether the item is a new one."""
    if stock.store.find(row.sku) is None:
        stock.store.put(row)
        return True
    stock.change(row.sku, row.qty, note)
    stock.store.put(stock.known(row.sku)._replace(price=row.price))
    return False
