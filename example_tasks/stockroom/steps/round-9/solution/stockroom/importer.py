"""Supplier files: good rows are booked in one go, all others put aside."""

import os
from collections import Counter
from typing import NamedTuple

from stockroom import csvfile, files
from stockroom.errors import DataError, ImportRefusedError, RejectedError, StockError
from stockroom.records import Item

LARGEST = 5_000_000
UNREADABLE = "cannot read record"


class Row(NamedTuple):
    """A row as it stands in the file, and the item that it is, if it can be read."""

    line: int
    text: str
    item: Item | None


def run(stock, name, *, dry_run, strict):
    """Books the file, saves unless it is only tried, and says what was done; RejectedError if not with every row."""
    inbox = os.path.join(stock.directory, "inbox")
    header, rows = read(allowed(inbox, name), name)
    times = Counter(row.item.sku for row in rows if row.item)
    if strict:
        refuse_faults(rows, name)
    good = [row for row in rows if row.item and times[row.item.sku] == 1]
    bad = [row for row in rows if not row.item or times[row.item.sku] > 1]
    stock.store.begin()
    new = sum(book(stock, row.item, f"import {name}") for row in good)
    done = f"{'would import' if dry_run else 'imported'} {len(good)}: {new} new, {len(good) - new} known"
    if not dry_run:
        if bad:
            text = header + "".join(row.text if row.text.endswith("\n") else row.text + "\n" for row in bad)
            aside = name + ".rejected"
            files.replace(os.path.join(inbox, aside), text.encode("utf-8", "surrogateescape"), aside)
        stock.save()
    if bad:
        rejected = [f"rejected: {name} line {row.line}: {fault(row)}" for row in bad]
        raise RejectedError(f"{name}: {len(bad)} rows rejected", [done], rejected)
    return done


def read(path, name):
    """The first line and the rows of a file; DataError if that is not the header."""
    records = csvfile.records(path)
    _, header, fields = next(records, (1, "", []))
    if fields != list(Item._fields):
        raise DataError(f"{name} line 1: bad header")
    return header, [Row(line, text, to_item(text, fields)) for line, text, fields in records if fields != []]


def to_item(text, fields):
    try:
        text.encode("utf-8")
        item = csvfile.to_item(*fields)
        return None if item.qty < 0 else item
    except (TypeError, ValueError):  # The number of fields, or what is in them.
        return None


def refuse_faults(rows, name):
    """DataError for the first row that cannot be read or repeats a SKU."""
    seen = set()
    for row in rows:
        if row.item is None or row.item.sku in seen:
            raise DataError(f"{name} line {row.line}: {fault(row)}")
        seen.add(row.item.sku)


def fault(row):
    return f"duplicate sku: {row.item.sku}" if row.item else UNREADABLE


def allowed(inbox, name):
    """The real path of a file that may be imported."""
    inbox = os.path.realpath(inbox)
    path = os.path.realpath(os.path.join(inbox, name))
    if os.path.commonpath([inbox, path]) != inbox:
        raise ImportRefusedError(f"import outside inbox: {name}")
    if not os.path.isfile(path):
        raise StockError(f"no such import: {name}")
    if os.path.getsize(path) > LARGEST:
        raise ImportRefusedError(f"import too large: {name}")
    return path


def book(stock, row, note):
    """Whether the item is a new one."""
    if stock.store.find(row.sku) is None:
        stock.store.put(row)
        return True
    stock.change(row.sku, row.qty, note)
    stock.store.put(stock.known(row.sku)._replace(price=row.price))
    return False
