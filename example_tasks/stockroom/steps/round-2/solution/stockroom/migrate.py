"""From the CSV files to the database."""

import os

from stockroom import sqlitestore
from stockroom.csvstore import CsvStore
from stockroom.errors import StockError


def run(directory):
    """Migrates the directory and says so. The database appears complete or not at all."""
    if not os.path.isdir(directory):
        raise StockError(f"no such directory: {directory}")
    database = os.path.join(directory, "stock.db")
    if os.path.exists(database):
        return "already migrated"
    old = CsvStore(directory)
    if not os.path.exists(old.stock_path):
        raise StockError("nothing to migrate")
    unfinished = database + ".new"
    if os.path.exists(unfinished):
        os.remove(unfinished)
    sqlitestore.create(unfinished)
    new = sqlitestore.SqliteStore(unfinished)
    for item in old.all():
        new.put(item)
    for move in old.booked:
        new.record(move)
    new.save()
    new.close()
    os.replace(unfinished, database)
    for path in (old.stock_path, old.moves_path):
        if os.path.exists(path):
            os.replace(path, path + ".bak")
    return f"migrated {len(old.items)} items, {len(old.booked)} moves"
