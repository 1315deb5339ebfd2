"""Lists and sums over a whole stock."""

import json

from stockroom import csvfile, money
from stockroom.records import Item


def one_line(text):
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def item_fields(item):
    return item._replace(price=money.render(item.price))


def show_lines(stock, sku):
    fields = item_fields(stock.known(sku))
    return [f"{name}: {one_line(str(field))}" for name, field in zip(Item._fields, fields, strict=True)]


def list_lines(stock):
    return ["\t".join(one_line(str(field)) for field in item_fields(item)) for item in stock.store.all()]


def csv_lines(stock):
    rows = [[harmless(field) for field in item_fields(item)] for item in stock.store.all()]
    return [csvfile.line(row) for row in [Item._fields, *rows]]


def harmless(field):
    """A text that no spreadsheet takes for a formula."""
    if isinstance(field, str) and field.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + field
    return field


def json_lines(stock):
    return [json.dumps([item_fields(item)._asdict() for item in stock.store.all()], ensure_ascii=False)]


LISTS = {"text": list_lines, "csv": csv_lines, "json": json_lines}


def history_lines(stock, sku):
    stock.known(sku)
    return [f"{move.at}\t{move.delta:+d}\t{one_line(move.note)}" for move in stock.store.moves(sku)]


def reservation_lines(stock):
    return [f"{one_line(ref)}\t{one_line(sku)}\t{qty}\t{ready}" for ref, sku, qty, ready in stock.store.reservations()]


def low_lines(stock):
    reserved = stock.store.all_reserved()
    free = [(item.sku, max(0, item.qty - reserved.get(item.sku, 0))) for item in stock.store.all()]
    return [f"{one_line(sku)}\t{number}" for sku, number in free if number < stock.settings["low"]]


def location_lines(stock):
    sums = {}
    for item in stock.store.all():
        count, units, value = sums.get(item.location, (0, 0, 0))
        sums[item.location] = (count + 1, units + item.qty, value + item.qty * item.price)
    return [
        f"{one_line(place)}\t{count}\t{units}\t{money.render(value)}"
        for place, (count, units, value) in sorted(sums.items())
    ]
