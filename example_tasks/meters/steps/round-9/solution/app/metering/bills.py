"""What meters owe."""

import sqlite3

from . import amounts
from .calendar import beginning, next_month
from .errors import Refused

UNIT = 1000 * 10_000  # A price is in ten-thousandths of a cent, for a thousand of what is stored.


def issue(database: sqlite3.Connection, month: str) -> list[str]:
    """Issue the bills of a month that are missing, and corrections of those that have become wrong; a line for each."""
    rows = database.execute(
        """
        SELECT meter, month.kind, month.amount, count(number), total(bill.amount), total(cents)
        FROM month LEFT JOIN bill USING (meter, month)
        WHERE month = ?
        GROUP BY meter
        HAVING count(number) = 0 OR month.amount <> total(bill.amount)
        ORDER BY meter
        """,
        (month,),
    ).fetchall()
    lines = []
    for meter, kind, amount, issued, billed, billed_cents in rows:
        cents = _cents(database, meter, kind, month) - int(billed_cents)
        row = (meter, month, issued + 1, amount - int(billed), cents)
        database.execute("INSERT INTO bill VALUES (?, ?, ?, ?, ?)", row)
        lines.append(f"{meter} {cents} cents")
    return lines


def _cents(database: sqlite3.Connection, meter: str, kind: str, month: str) -> int:
    """Return what a meter owes for a month: each part at its price, rounded once, halves to the even cent."""
    points, _ = amounts.timeline(database, meter)
    begin, end = beginning(month), beginning(next_month(month))
    prices = database.execute("SELECT start, price FROM price WHERE kind = ? ORDER BY start DESC", (kind,)).fetchall()
    total, until = 0, end
    for start, price in prices:
        if start < end:
            since = max(start, begin)
            total += (_shown(points, until) - _shown(points, since)) * price
            until = since
        if until == begin:
            break
    else:
        raise Refused(f"no price for {kind} in {month}")
    cents, rest = divmod(total, UNIT)
    return cents + (2 * rest + cents % 2 > UNIT)


def _shown(points: amounts.Points, at: int) -> int:
    found = amounts.value_at(points, at)
    assert found is not None, "a month with an amount is known from its beginning to its end"
    return found[0]
