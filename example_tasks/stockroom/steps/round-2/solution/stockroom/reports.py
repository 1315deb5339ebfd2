"""Lists and sums over a whole stock."""

from stockroom import csvstore, money
from stockroom.records import Item


def one_line(text):
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def show_lines(stock, sku):
    fields = csvstore.item_fields(stock.known(sku))
    return [f"{name}: {one_line(str(field))}" for name, field in zip(Item._fields, fields, strict=True)]


def list_lines(stock):
    return ["\t".join(one_line(str(field)) for field in csvstore.item_fields(item)) for item in stock.store.all()]


def csv_lines(stock):
    return [csvstore.line(row) for row in [Item._fields, *map(csvstore.item_fields, stock.store.all())]]


def history_lines(stock, sku):
    stock.known(sku)
    return [f"{move.at}\t{move.delta:+d}\t{one_line(move.note)}" for move in stock.store.moves(sku)]


def low_lines(stock):
    return [f"{one_line(item.sku)}\t{item.qty}" for item in stock.store.all() if item.qty < stock.settings["low"]]


def location_lines(stock):
    lines = []
    for place in sorted({item.location for item in stock.store.all()}):
        here = [item for item in stock.store.all() if item.location == place]
        units = sum(item.qty for item in here)
        value = sum(item.qty * item.price for item in here)
        lines.append(f"{one_line(place)}\t{len(here)}\t{units}\t{money.render(value)}")
    return lines
