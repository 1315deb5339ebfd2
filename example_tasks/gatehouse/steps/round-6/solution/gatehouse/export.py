"""Tables for the office and for everybody."""

import csv
import io
import re

from gatehouse import store
from gatehouse.bookings import full_name
from gatehouse.store import Refused

COLUMNS = ("id", "thing", "from", "to", "name", "note")


def table(db, start, finish, user=None):
    """Return the bookings that begin in a range as CSV: all, or those of one person, without names."""
    for time in (start, finish):
        if time is not None and not store.is_time(time):
            raise Refused(400, "this is no time")
    rows = []
    for row in db.execute("SELECT * FROM bookings").fetchall():
        begins = store.shown(row["start"])
        fits = (start is None or begins >= start) and (finish is None or begins < finish)
        if fits and (user is None or row["user"] == user["name"]):
            thing = db.execute("SELECT name FROM things WHERE id = ?", (row["thing"],)).fetchone()
            name = thing["name"] if thing else row["thing"]
            rows.append((row["id"], name, begins, store.shown(row["finish"]), full_name(db, row), row["note"]))
    rows.sort(key=lambda row: (row[2], row[0]))
    columns = [number for number, column in enumerate(COLUMNS) if user is None or column != "name"]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    for row in (COLUMNS, *rows):
        writer.writerow([cell(row[number]) for number in columns])
    return text.getvalue()


def cell(value):
    """Return a value as no spreadsheet takes it for a formula."""
    text = str(value)
    return f"'{text}" if re.match(r" *[=+\-@\t\r]", text) else text
