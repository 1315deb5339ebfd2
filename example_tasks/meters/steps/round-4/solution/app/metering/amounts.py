"""What meters consumed."""

import sqlite3
from bisect import bisect_left

from .calendar import beginning, month_of, next_month

ROUND = 100_000_000  # Where a meter begins again.
UNITS = {"water": "l", "power": "Wh"}
Points = list[tuple[int, int]]
"""Moments in their order, and what was consumed until then."""


def refresh(database: sqlite3.Connection) -> None:
    """Work out all months anew."""
    database.execute("DELETE FROM month")
    for meter, kind in database.execute("SELECT DISTINCT meter, kind FROM reading").fetchall():
        points = timeline(database, meter)
        month = month_of(points[0][0])
        while beginning(next_month(month)) <= points[-1][0]:
            first, last = (value_at(points, beginning(each)) for each in (month, next_month(month)))
            if first is not None and last is not None:
                estimated = first[1] or last[1]
                row = (meter, kind, month, last[0] - first[0], estimated)
                database.execute("INSERT INTO month VALUES (?, ?, ?, ?, ?)", row)
            month = next_month(month)


def timeline(database: sqlite3.Connection, meter: str) -> Points:
    events = database.execute(
        """
        SELECT at, value, value FROM reading WHERE meter = :meter
        UNION ALL SELECT at, old, new FROM exchange WHERE meter = :meter
        ORDER BY at
        """,
        {"meter": meter},
    )
    points = []
    total, shown = 0, None
    for at, value, next_value in events:
        if shown is not None:
            total += value - shown if value >= shown else value - shown + ROUND
        points.append((at, total))
        shown = next_value
    return points


def value_at(points: Points, at: int) -> tuple[int, bool] | None:
    """Return what was consumed until a moment, and whether that is estimated; None where nothing is known."""
    index = bisect_left(points, (at,))
    if index < len(points) and points[index][0] == at:
        return points[index][1], False
    if index in (0, len(points)):
        return None
    (before, low), (after, high) = points[index - 1 : index + 1]
    span = after - before
    return low + (2 * (high - low) * (at - before) + span) // (2 * span), True


def report(database: sqlite3.Connection, month: str) -> list[str]:
    """Return a line for each meter."""
    rows = database.execute(
        """
        SELECT known.meter, known.kind, amount, estimated
        FROM (SELECT DISTINCT meter, kind FROM reading) AS known
        LEFT JOIN month ON month.meter = known.meter AND month.month = ?
        ORDER BY known.meter
        """,
        (month,),
    )
    return [
        f"{meter} {kind} {'~' if estimated else ''}{'-' if amount is None else amount} {UNITS[kind]}"
        for meter, kind, amount, estimated in rows
    ]
