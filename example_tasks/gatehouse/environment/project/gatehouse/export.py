"""The export for the office."""

from gatehouse import store


def table(db):
    """Return all bookings as CSV."""
    lines = ["id,thing,from,to,note,name"]
    rows = db.execute(
        "SELECT bookings.id, things.name AS thing, start, finish, note, users.* FROM bookings"
        " JOIN things ON things.id = bookings.thing JOIN users ON users.name = bookings.user ORDER BY bookings.id"
    )
    for row in rows:
        values = list(row)
        values[2:4] = [store.shown(row["start"]), store.shown(row["finish"])]
        lines.append(",".join(str(value) for value in values))
    return "".join(f"{line}\r\n" for line in lines)
