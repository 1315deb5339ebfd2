"""The database, almanac.db in the working directory: every file that was ever imported, as it was."""

import os
import sqlite3

from .errors import Refused

NAME = "almanac.db"
# What brings a database from one version to the next.
MIGRATIONS = [
    """
    CREATE TABLE file (name TEXT, version INTEGER, place INTEGER, content BLOB, PRIMARY KEY (name, version))
    """,
]


def connect(*, make=False):
    """Open the database, and make it or bring it up to date; nothing is kept before a commit."""
    if not make and not os.path.exists(NAME):
        raise Refused(f"no {NAME}")
    database = sqlite3.connect(NAME, isolation_level=None, timeout=10)
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version < len(MIGRATIONS):
        for script in MIGRATIONS[version:]:
            for statement in script.split(";\n"):
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    return database


def content(database, name):
    """Return what there is of a file now, or None."""
    row = database.execute("SELECT content FROM file WHERE name = ? ORDER BY version DESC", (name,)).fetchone()
    return row and row[0]


def store(database, name, data):
    """Keep a file in place of what there was of its name, which is kept as well."""
    database.execute(
        "INSERT INTO file SELECT ?1, 1 + count(*), coalesce(min(place), (SELECT 1 + count(*) FROM file)), ?2"
        " FROM file WHERE name = ?1",
        (name, data),
    )


def files(database):
    """Return (name, content) of all files as they are now, in the order in which they first came."""
    return database.execute("SELECT name, content, max(version) FROM file GROUP BY name ORDER BY place").fetchall()
