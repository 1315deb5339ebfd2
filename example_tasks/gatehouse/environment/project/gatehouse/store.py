"""The database and the outbox."""

import os
import re
import sqlite3
import time

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, full_name TEXT, role TEXT, password TEXT);
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, user TEXT);
CREATE TABLE IF NOT EXISTS resets (code TEXT PRIMARY KEY, user TEXT, asked INTEGER);
CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, place TEXT);
CREATE TABLE IF NOT EXISTS bookings (
    id INTEGER PRIMARY KEY, thing INTEGER, user TEXT, start TEXT, finish TEXT, note TEXT
);
"""


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def connect(data):
    db = sqlite3.connect(os.path.join(data, "gatehouse.db"), timeout=30)
    db.row_factory = sqlite3.Row
    return db


def prepare(data):
    """Make the tables where there are none."""
    db = connect(data)
    db.executescript(SCHEMA)
    db.commit()
    db.close()


def mail(data, to, subject, text):
    """Leave a mail in the outbox."""
    outbox = os.path.join(data, "outbox")
    os.makedirs(outbox, exist_ok=True)
    path = os.path.join(outbox, f"{time.time_ns()}.eml")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"To: {to}\nSubject: {subject}\n\n{text}\n")


def shown(moment):
    """Return a time as answers have it, also one from the list on paper."""
    old = re.fullmatch(r"(\d+)\.(\d+)\.(\d+) (\d+):(\d+)", moment)
    if old:
        day, month, year, hour, minute = map(int, old.groups())
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"
    return moment


def is_time(text):
    return isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text) is not None
