"""The stock in memory and in its files."""

import os

from stockroom import config, csvfile
from stockroom.errors import StockError

STOCK_HEADER = ["sku", "name", "qty", "price", "location"]
MOVES_HEADER = ["at", "sku", "delta", "note"]
ITEMS = []
MOVES = []
DIRECTORY = "."


def load(directory):
    global DIRECTORY
    if not os.path.isdir(directory):
        raise StockError(f"no such directory: {directory}")
    config.read(directory)
    found = csvfile.read(os.path.join(directory, "stock.csv"), 5, to_item)
    moves = csvfile.read(os.path.join(directory, "moves.csv"), 4, to_move)
    DIRECTORY = directory
    ITEMS[:] = found
    MOVES[:] = moves
    return len(ITEMS)


def to_item(sku, name, qty, price, location):
    return {"sku": sku, "name": name, "qty": int(qty), "price": float(price), "location": location}


def to_move(at, sku, delta, note):
    return {"at": at, "sku": sku, "delta": int(delta), "note": note}


def item_fields(item):
    return [item["sku"], item["name"], item["qty"], f"{item['price']:.2f}", item["location"]]


def save():
    rows = [item_fields(item) for item in sorted(ITEMS, key=lambda i: i["sku"])]
    csvfile.write(os.path.join(DIRECTORY, "stock.csv"), STOCK_HEADER, rows)
    if MOVES:
        rows = [[move[column] for column in MOVES_HEADER] for move in MOVES]
        csvfile.write(os.path.join(DIRECTORY, "moves.csv"), MOVES_HEADER, rows)
