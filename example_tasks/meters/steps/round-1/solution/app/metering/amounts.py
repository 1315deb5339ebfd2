"""What meters consumed."""

import sqlite3

from .calendar import beginning, end

UNITS = {"water": "l", "power": "Wh"}


def report(database: sqlite3.Connection, month: str) -> list[str]:
    """Return a line for each meter."""
    lines = []
    for meter, kind in database.execute("SELECT DISTINCT meter, kind FROM reading ORDER BY meter"):
        first, last = (_last_value(database, meter, at) for at in (beginning(month), end(month)))
        amount = "-" if first is None or last is None else last - first
        lines.append(f"{meter} {kind} {amount} {UNITS[kind]}")
    return lines


def _last_value(database: sqlite3.Connection, meter: str, at: int) -> int | None:
    row = database.execute(
        "SELECT value FROM reading WHERE meter = ? AND at <= ? ORDER BY at DESC LIMIT 1", (meter, at)
    ).fetchone()
    return row and row[0]
