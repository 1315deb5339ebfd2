"""From the CSV files of old to the database."""

import os

from stockroom import csvfile, sqlitestore
from stockroom.errors import StockError
from stockroom.records import Item, Move


def run(directory):
    """Migrates the directory and says so. The database appears complete or not at all."""
    if not os.path.isdir(directory):
        raise StockError(f"no such directory: {directory}")
    database = os.path.join(directory, "stock.db")
    if os.path.exists(database):
        return "already migrated"
    stock_path = os.path.join(directory, "stock.csv")
    moves_path = os.path.join(directory, "moves.csv")
    if not os.path.exists(stock_path):
        raise StockError("nothing to migrate")
    items = csvfile.read(stock_path, Item, csvfile.to_item)
    moves = csvfile.read(moves_path, Move, csvfile.to_move)
    write(database, items, moves)
    for path in (stock_path, moves_path):
        if os.path.exists(path):
            os.replace(path, path + ".bak")
    return f"migrated {len(items)} items, {len(moves)} moves"


def write(database, items, moves):
    unfinished = database + ".new"
    if os.path.exists(unfinished):
        os.remove(unfinished)
    sqlitestore.create(unfinished)
    store = sqlitestore.SqliteStore(unfinished)
    for item in items:
        store.put(item)
    for move in moves:
        store.record(move, None)
    store.count_back()
    store.save()
    store.close()
    os.replace(unfinished, database)
