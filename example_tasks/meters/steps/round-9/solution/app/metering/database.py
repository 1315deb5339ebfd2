"""The database, meters.db in the working directory."""

import os
import sqlite3

from . import amounts
from .errors import Refused
from .suppliers import NEVER, Exchange, File, Price

NAME = "meters.db"
# What brings a database from one version to the next.
MIGRATIONS = [
    """
    CREATE TABLE reading (meter TEXT, at INTEGER, kind TEXT, value INTEGER, PRIMARY KEY (meter, at));
    CREATE VIEW readings AS
        SELECT meter, kind, strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch') AS at, value FROM reading;
    """,
    """
    CREATE TABLE month (
        meter TEXT, kind TEXT, month TEXT, amount INTEGER, estimated INTEGER, PRIMARY KEY (meter, month)
    );
    CREATE VIEW monthly AS SELECT meter, kind, month, amount, estimated FROM month;
    """,
    """
    CREATE TABLE exchange (meter TEXT, at INTEGER, old INTEGER, new INTEGER, PRIMARY KEY (meter, at));
    """,
    f"""
    ALTER TABLE reading ADD COLUMN issued INTEGER DEFAULT {NEVER};
    """,
    """
    CREATE TABLE suspect (meter TEXT, at INTEGER, PRIMARY KEY (meter, at));
    CREATE VIEW suspects AS
        SELECT meter, kind, strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch') AS at, value
        FROM suspect JOIN reading USING (meter, at);
    CREATE TABLE rejects (file TEXT, line INTEGER, text TEXT, PRIMARY KEY (file, line));
    """,
    """
    CREATE TABLE price (kind TEXT, start INTEGER, price INTEGER, PRIMARY KEY (kind, start));
    CREATE TABLE bill (meter TEXT, month TEXT, amount INTEGER, cents INTEGER, PRIMARY KEY (meter, month));
    CREATE VIEW bills AS SELECT meter, month, amount, cents FROM bill;
    """,
    """
    DROP VIEW bills;
    ALTER TABLE bill RENAME TO first_bill;
    CREATE TABLE bill (
        meter TEXT, month TEXT, number INTEGER, amount INTEGER, cents INTEGER, PRIMARY KEY (meter, month, number)
    );
    INSERT INTO bill SELECT meter, month, 1, amount, cents FROM first_bill;
    DROP TABLE first_bill;
    CREATE VIEW bills AS SELECT meter, month, number, amount, cents FROM bill;
    """,
]


def exists() -> bool:
    return os.path.exists(NAME)


def connect() -> sqlite3.Connection:
    """Open the database, and make it or bring it up to date; nothing is kept before a commit."""
    database = sqlite3.connect(NAME, isolation_level=None, timeout=10)
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version < len(MIGRATIONS):
        for script in MIGRATIONS[version:]:
            for statement in script.split(";\n"):
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        amounts.refresh(database)
    return database


def store(database: sqlite3.Connection, name: str, file: File) -> tuple[int, int]:
    """Keep what a file has, and return how much of it is new and how much is another now."""
    new = changed = 0
    for price in file.records:
        if isinstance(price, Price):
            new += _store_price(database, name, price)
    records = [record for record in file.records if not isinstance(record, Price)]
    for each in {(record.meter, record.at): record for record in records}.values():
        table, row = ("exchange", each) if isinstance(each, Exchange) else ("reading", (*each, file.issued))
        known = database.execute(f"SELECT * FROM {table} WHERE meter = ? AND at = ?", (each.meter, each.at)).fetchone()
        new += known is None
        if known is not None and table == "reading" and _rank(known) > _rank(row):
            continue
        changed += known is not None and known[:4] != each
        database.execute(f"REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return new, changed


def _store_price(database: sqlite3.Connection, name: str, price: Price) -> bool:
    """Keep a price, and return whether it is new."""
    known = database.execute("SELECT price FROM price WHERE kind = ? AND start = ?", price[:2]).fetchone()
    if known is None:
        database.execute("INSERT INTO price VALUES (?, ?, ?)", price[:3])
    elif known[0] != price.price:
        raise Refused(f"{name}:{price.line}: another price")
    return known is None


def store_rejects(database: sqlite3.Connection, name: str, file: File) -> None:
    """Keep the lines of a file that cannot be read, in place of what was kept of a file of that name."""
    name = os.path.basename(name)
    database.execute("DELETE FROM rejects WHERE file = ?", (name,))
    for line, text in file.rejects:
        database.execute("INSERT INTO rejects VALUES (?, ?, ?)", (name, line, text))


def _rank(row: tuple) -> tuple[int, int]:
    """Return by what one of two readings of the same moment counts: when it was issued, and then its value."""
    *_, value, issued = row
    return issued, value
