"""The database, almanac.db in the working directory: every file that was ever imported, as it was.

What is read from the files stands beside them for others to look at, and is made anew whenever it may be another one.
"""

import os
import sqlite3

from .errors import Refused
from .files import Reader

NAME = "almanac.db"
# What brings a database from one version to the next.
MIGRATIONS = [
    """
    CREATE TABLE file (name TEXT, version INTEGER, place INTEGER, content BLOB, PRIMARY KEY (name, version))
    """,
    """
    CREATE TABLE observation (
        night TEXT, ut TEXT, object TEXT, observer TEXT, magnitude TEXT, seconds INTEGER, number TEXT,
        file TEXT, line INTEGER, note TEXT
    );
    CREATE VIEW observations AS
        SELECT night, ut, object, observer, magnitude, seconds, number, file, line, note FROM observation
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
        refresh(database)
        database.execute("COMMIT")
        database.execute("BEGIN IMMEDIATE")
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
    """Return (name, what is in it) of all files as they are now, in the order in which they first came."""
    return [(name, Reader(name, data)) for name, data in contents(database)]


def contents(database):
    """Return (name, content) of all files as they are now, in the order in which they first came."""
    rows = database.execute("SELECT name, content, max(version) FROM file GROUP BY name ORDER BY place")
    return [row[:2] for row in rows]


def refresh(database):
    """Make the observations anew that others look at."""
    database.execute("DELETE FROM observation")
    for name, file in files(database):
        for each in file.observations:
            row = (each.night, f"{each.date}T{each.time}", *each[4:9], name, each.line, each.note)
            database.execute("INSERT INTO observation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
