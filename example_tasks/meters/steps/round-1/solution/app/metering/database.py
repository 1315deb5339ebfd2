"""The database, meters.db in the working directory."""

import os
import sqlite3
from collections.abc import Iterable

from .suppliers import Reading

NAME = "meters.db"
# What brings a database from one version to the next.
MIGRATIONS = [
    """
    CREATE TABLE reading (meter TEXT, at INTEGER, kind TEXT, value INTEGER, PRIMARY KEY (meter, at));
    CREATE VIEW readings AS
        SELECT meter, kind, strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch') AS at, value FROM reading;
    """,
]


def exists() -> bool:
    return os.path.exists(NAME)


def connect() -> sqlite3.Connection:
    """Open the database, and make it or bring it up to date; nothing is kept before a commit."""
    database = sqlite3.connect(NAME, isolation_level=None, timeout=10)
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    for script in MIGRATIONS[version:]:
        for statement in script.split(";\n"):
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    return database


def store(database: sqlite3.Connection, readings: Iterable[Reading]) -> tuple[int, int]:
    """Keep readings, and return how many are new and how many have another value now."""
    new = changed = 0
    for each in {(reading.meter, reading.at): reading for reading in readings}.values():
        known = database.execute(
            "SELECT value FROM reading WHERE meter = ? AND at = ?", (each.meter, each.at)
        ).fetchone()
        new += known is None
        changed += known is not None and known[0] != each.value
        database.execute("REPLACE INTO reading VALUES (?, ?, ?, ?)", each)
    return new, changed
