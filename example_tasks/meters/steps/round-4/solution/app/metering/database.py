"""The database, meters.db in the working directory."""

import os
import sqlite3
from collections.abc import Iterable

from . import amounts
from .suppliers import Exchange, Record

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


def store(database: sqlite3.Connection, records: Iterable[Record]) -> tuple[int, int]:
    """Keep what a file has, and return how much of it is new and how much is another now."""
    new = changed = 0
    for each in {(record.meter, record.at): record for record in records}.values():
        table = "exchange" if isinstance(each, Exchange) else "reading"
        known = database.execute(f"SELECT * FROM {table} WHERE meter = ? AND at = ?", (each.meter, each.at)).fetchone()
        new += known is None
        changed += known is not None and known != each
        database.execute(f"REPLACE INTO {table} VALUES (?, ?, ?, ?)", each)
    return new, changed
