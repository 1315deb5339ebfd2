"""What meters owe."""

import sqlite3

from .calendar import beginning
from .errors import Refused

UNIT = 1000 * 10_000  # A price is in ten-thousandths of a cent, for a thousand of what is stored.


def issue(database: sqlite3.Connection, month: str) -> list[str]:
    """Issue the bills of a month that were not issued before, and return a line for each."""
    rows = database.execute(
        """
        SELECT meter, kind, amount FROM month
        WHERE month = ? AND meter NOT IN (SELECT meter FROM bill WHERE bill.month = month.month)
        ORDER BY meter
        """,
        (month,),
    ).fetchall()
    lines = []
    for meter, kind, amount in rows:
        cents = (2 * amount * _price(database, kind, month) + UNIT) // (2 * UNIT)
        database.execute("INSERT INTO bill VALUES (?, ?, ?, ?)", (meter, month, amount, cents))
        lines.append(f"{meter} {cents} cents")
    return lines


def _price(database: sqlite3.Connection, kind: str, month: str) -> int:
    """Return the price on the first day of a month."""
    row = database.execute(
        "SELECT price FROM price WHERE kind = ? AND start <= ? ORDER BY start DESC LIMIT 1", (kind, beginning(month))
    ).fetchone()
    if row is None:
        raise Refused(f"no price for {kind} in {month}")
    return row[0]
