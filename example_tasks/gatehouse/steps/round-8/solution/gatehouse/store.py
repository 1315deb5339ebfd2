"""The database and the outbox."""

import hashlib
import os
import re
import sqlite3
import time
from datetime import datetime

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, full_name TEXT, role TEXT, password TEXT);
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, user TEXT);
CREATE TABLE IF NOT EXISTS resets (code TEXT PRIMARY KEY, user TEXT, asked INTEGER);
CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, place TEXT);
CREATE TABLE IF NOT EXISTS bookings (
    id INTEGER PRIMARY KEY, thing INTEGER, user TEXT, start TEXT, finish TEXT, note TEXT
);
"""


# No number of a booking is given twice.
NUMBERS_ONCE = """
BEGIN;
ALTER TABLE bookings RENAME TO old_bookings;
CREATE TABLE bookings (
    id INTEGER PRIMARY KEY AUTOINCREMENT, thing INTEGER, user TEXT, start TEXT, finish TEXT, note TEXT
);
INSERT INTO bookings SELECT * FROM old_bookings;
DROP TABLE old_bookings;
COMMIT;
"""


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status, text, **more):
        super().__init__(text)
        self.status = status
        self.value = {"error": text} | more


def connect(data):
    db = sqlite3.connect(os.path.join(data, "gatehouse.db"), timeout=30)
    db.row_factory = sqlite3.Row
    return db


def prepare(data):
    """Make the tables where there are none."""
    db = connect(data)
    db.executescript(SCHEMA)
    if db.execute("PRAGMA user_version").fetchone()[0] < 1:
        # What was handed out until then could be computed.
        db.executescript("DELETE FROM sessions; DELETE FROM resets; PRAGMA user_version = 1;")
    if db.execute("PRAGMA user_version").fetchone()[0] < 2:
        db.executescript(NUMBERS_ONCE)
        # Attachments tell of numbers that were given to bookings of which nothing else is left.
        given = [int(name) for name in directories(os.path.join(data, "files")) if name.isdigit()]
        last = max([*given, *(row[0] for row in db.execute("SELECT id FROM bookings"))], default=0)
        db.execute("DELETE FROM sqlite_sequence")
        db.execute("INSERT INTO sqlite_sequence VALUES ('bookings', ?)", (last,))
        db.execute("PRAGMA user_version = 2")
    if db.execute("PRAGMA user_version").fetchone()[0] < 3:
        for row in db.execute("SELECT id FROM sessions").fetchall():
            db.execute("UPDATE sessions SET id = ? WHERE id = ?", (digest(row["id"]), row["id"]))
        for row in db.execute("SELECT code FROM resets").fetchall():
            db.execute("UPDATE resets SET code = ? WHERE code = ?", (digest(row["code"]), row["code"]))
        db.execute("PRAGMA user_version = 3")
    db.commit()
    db.close()


def digest(secret):
    """Return what the database has of a session or a code, which are random enough for a plain digest."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def directories(path):
    return os.listdir(path) if os.path.isdir(path) else []


def mail(data, to, subject, text):
    """Leave a mail in the outbox; nothing in its head begins another line."""
    to, subject = (re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", each) for each in (to, subject))
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


def number(digits):
    """Return a number of any length; Python refuses to read thousands of digits."""
    return int(digits) if len(digits) < 20 else 10**20


def is_time(text):
    """Say whether this is a time that there is, in the form of ours."""
    if not isinstance(text, str) or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text, re.ASCII):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
