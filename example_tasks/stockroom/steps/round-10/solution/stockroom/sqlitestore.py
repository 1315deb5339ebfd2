"""The stock in stock.db."""

import sqlite3

from stockroom.errors import BusyError, DataError
from stockroom.records import Item, Move, Reservation

VERSION = 3
WAIT = 5000
"""Milliseconds that a connection waits for others, unless it is to begin a booking."""
SCHEMA = (
    "CREATE TABLE items(sku TEXT PRIMARY KEY, name TEXT, qty INTEGER, price_mills INTEGER, location TEXT)",
    "CREATE TABLE moves(id INTEGER PRIMARY KEY, at TEXT, sku TEXT, delta INTEGER, note TEXT, qty_after INTEGER)",
)
RESERVATIONS = (
    "CREATE TABLE reservations(id INTEGER PRIMARY KEY, ref TEXT, sku TEXT, qty INTEGER)",
    "CREATE INDEX reservations_by_sku ON reservations(sku)",
)


def connect(path):
    # Without the module's own, deferred transactions: a writer must be alone before it reads.
    return sqlite3.connect(path, timeout=WAIT / 1000, isolation_level=None)


def begin(connection, wait=WAIT):
    """Waits for other writers, up to `wait` ms; what is read from here on stays true until save."""
    connection.execute(f"PRAGMA busy_timeout = {wait}")
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        raise BusyError("stock is busy") from None
    finally:
        connection.execute(f"PRAGMA busy_timeout = {WAIT}")


def create(path):
    """An empty database, unless another process was faster."""
    connection = connect(path)
    begin(connection)
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
    begin(connection)
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

    def __init__(self, path, wait=WAIT):
        self.wait = wait
        self.connection = connect(path)
        upgrade(self.connection)

    def begin(self):
        if not self.connection.in_transaction:
            begin(self.connection, self.wait)

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
        """By order and SKU. What is on the shelf is there for those who came first."""
        query = (
            "SELECT ref, sku, reservations.qty, items.qty FROM reservations JOIN items USING (sku)"
            " ORDER BY reservations.id"
        )
        rest = {}
        found = []
        for ref, sku, qty, on_shelf in self.connection.execute(query):
            left = rest.get(sku, on_shelf)
            ready = max(0, min(qty, left))
            rest[sku] = left - ready
            found.append(Reservation(ref, sku, qty, ready))
        return sorted(found)

    def reserve(self, ref, sku, qty):
        """Adds to what the order has of the item."""
        self.begin()
        more = "UPDATE reservations SET qty = qty + ? WHERE ref = ? AND sku = ?"
        if not self.connection.execute(more, (qty, ref, sku)).rowcount:
            self.connection.execute("INSERT INTO reservations(ref, sku, qty) VALUES (?, ?, ?)", (ref, sku, qty))

    def release(self, ref, sku):
        self.begin()
        self.connection.execute("DELETE FROM reservations WHERE ref = ? AND sku = ?", (ref, sku))

    def shipped(self, ref, sku, qty):
        """Takes from what the order is to have."""
        self.begin()
        less = "UPDATE reservations SET qty = qty - ? WHERE ref = ? AND sku = ?"
        self.connection.execute(less, (qty, ref, sku))
        self.connection.execute("DELETE FROM reservations WHERE qty = 0")

    def save(self):
        self.connection.commit()

    def close(self):
        self.connection.close()
