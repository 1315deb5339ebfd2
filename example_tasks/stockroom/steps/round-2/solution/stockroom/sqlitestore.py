"""The stock in stock.db."""

import sqlite3

from stockroom.records import Item, Move

VERSION = 1
SCHEMA = """
CREATE TABLE items(sku TEXT PRIMARY KEY, name TEXT, qty INTEGER, price_cents INTEGER, location TEXT);
CREATE TABLE moves(id INTEGER PRIMARY KEY, at TEXT, sku TEXT, delta INTEGER, note TEXT);
"""


def create(path):
    """An empty database."""
    connection = sqlite3.connect(path)
    connection.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    connection.close()


class SqliteStore:
    """Everything since the last save is one open transaction."""

    def __init__(self, path):
        self.connection = sqlite3.connect(path)

    def find(self, sku):
        row = self.connection.execute("SELECT * FROM items WHERE sku = ?", (sku,)).fetchone()
        return Item(*row) if row else None

    def all(self):
        return [Item(*row) for row in self.connection.execute("SELECT * FROM items ORDER BY sku")]

    def put(self, item):
        self.connection.execute("REPLACE INTO items VALUES (?, ?, ?, ?, ?)", item)

    def record(self, move):
        self.connection.execute("INSERT INTO moves(at, sku, delta, note) VALUES (?, ?, ?, ?)", move)

    def moves(self, sku):
        rows = self.connection.execute("SELECT at, sku, delta, note FROM moves WHERE sku = ? ORDER BY id", (sku,))
        return [Move(*row) for row in rows]

    def save(self):
        self.connection.commit()

    def close(self):
        self.connection.close()
