"""The stock in stock.db."""

import sqlite3

from stockroom.errors import DataError
from stockroom.records import Item, Move, Reservation

VERSION = 3
SCHEMA = (
    "CREATE TABLE items(sku TEXT PRIMARY KEY, name TEXT, qty INTEGER, price_mills INTEGER, location TEXT)",
    "CREATE TABLE moves(id INTEGER PRIMARY KEY, at TEXT, sku TEXT, delta INTEGER, note TEXT, qty_after INTEGER)",
)
RESERVATIONS = (
    "CREATE TABLE reservations(id INTEGER PRIMARY KEY, ref TEXT, sku TEXT, qty INTEGER)",
    "CREATE INDEX reservations_by_sku ON reservations(sku)",
)


def create(path):
    """An empty database, unless another process was faster."""
    connection = sqlite3.connect(path, timeout=5, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    if version(connection) == 0:
        for statement in SCHEMA + RESERVATIONS:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    connection.close()


def upgrade(connection):
    """Brings an earlier version to this one, in one transaction; what is newer is refused."""
    if version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    found = version(connection)  # again: another process may have been here first
    if found == 1:
        connection.execute("ALTER TABLE items RENAME COLUMN price_cents TO price_mills")
        connection.execute("UPDATE items SET price_mills = price_mills * 10")
    if found in (1, 2):
        connection.execute("ALTER TABLE moves ADD COLUMN qty_after INTEGER")
        count_back(connection)
        for statement in RESERVATIONS:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    if found not in (1, 2, VERSION):
        connection.close()
        raise DataError(f"stock.db has version {found}, expected {VERSION}")


def count_back(connection):
    """Gives each booking the quantity after it, from today's back to the first; none where the item is gone."""
    today = dict(connection.execute("SELECT sku, qty FROM items"))
    counted = []
    for number, sku, delta in connection.execute("SELECT id, sku, delta FROM moves ORDER BY id DESC"):
        counted.append((today.get(sku), number))
        if sku in today:
            today[sku] -= delta
    connection.executemany("UPDATE moves SET qty_after = ? WHERE id = ?", counted)


def version(connection):
    return connection.execute("PRAGMA user_version").fetchone()[0]


class SqliteStore:
    """Everything since the last save is one open transaction."""

    def __init__(self, path):
        # Without the module's own, deferred transactions: a writer must be alone before it reads.
        self.connection = sqlite3.connect(path, timeout=5, isolation_level=None)
        upgrade(self.connection)

    def begin(self):
        """Waits for other writers, up to 5 s; what is read from here on stays true until save."""
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def find(self, sku):
        row = self.connection.execute("SELECT * FROM items WHERE sku = ?", (sku,)).fetchone()
        return Item(*row) if row else None

    def all(self):
        return [Item(*row) for row in self.connection.execute("SELECT * FROM items ORDER BY sku")]

    def put(self, item):
        self.begin()
        self.connection.execute("REPLACE INTO items VALUES (?, ?, ?, ?, ?)", item)

    def record(self, move, qty_after):
        self.begin()
        self.connection.execute(
            "INSERT INTO moves(at, sku, delta, note, qty_after) VALUES (?, ?, ?, ?, ?)", (*move, qty_after)
        )

    def moves(self, sku):
        rows = self.connection.execute("SELECT at, sku, delta, note FROM moves WHERE sku = ? ORDER BY id", (sku,))
        return [Move(*row) for row in rows]

    def count_back(self):
        count_back(self.connection)

    def reserved(self, sku):
        """What all orders together have of an item."""
        query = "SELECT COALESCE(SUM(qty), 0) FROM reservations WHERE sku = ?"
        return self.connection.execute(query, (sku,)).fetchone()[0]

    def all_reserved(self):
        """The same by SKU, of all items that have something reserved."""
        return dict(self.connection.execute("SELECT sku, SUM(qty) FROM reservations GROUP BY sku"))

    def reservations(self):
        return [
            Reservation(*row)
            for row in self.connection.execute("SELECT ref, sku, qty FROM reservations ORDER BY ref, sku")
        ]

    def reserve(self, reservation):
        """Adds to what the order has of the item."""
        self.begin()
        ref, sku, qty = reservation
        more = "UPDATE reservations SET qty = qty + ? WHERE ref = ? AND sku = ?"
        if not self.connection.execute(more, (qty, ref, sku)).rowcount:
            self.connection.execute("INSERT INTO reservations(ref, sku, qty) VALUES (?, ?, ?)", reservation)

    def release(self, ref, sku):
        self.begin()
        self.connection.execute("DELETE FROM reservations WHERE ref = ? AND sku = ?", (ref, sku))

    def save(self):
        self.connection.commit()

    def close(self):
        self.connection.close()
