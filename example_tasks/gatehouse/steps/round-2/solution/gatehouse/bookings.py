"""Things, and who has them when."""

import re
from datetime import datetime

from gatehouse import store
from gatehouse.store import Refused

THING_COLUMNS = ("id", "kind", "name", "place")
BOOKING_COLUMNS = ("id", "thing", "from", "to")
LARGEST = 2**63 - 1  # More is no number of the database.


def public(booking):
    return {
        "id": booking["id"],
        "thing": booking["thing"],
        "user": booking["user"],
        "from": store.shown(booking["start"]),
        "to": store.shown(booking["finish"]),
        "note": booking["note"],
    }


def add_thing(db, kind, name, place):
    if kind not in ("key", "room") or not name:
        raise Refused(400, "a thing is a key or a room, and has a name")
    return db.execute("INSERT INTO things (kind, name, place) VALUES (?, ?, ?)", (kind, name, place)).lastrowid


def things(db, text, kind, sort):
    """Return the things that have a text in their names or places, of one kind where it is given."""
    if kind not in (None, "key", "room"):
        raise Refused(400, "there is no such kind")
    text = text.casefold()
    found = []
    for thing in db.execute("SELECT * FROM things").fetchall():
        fits = text in thing["name"].casefold() or text in thing["place"].casefold()
        if fits and kind in (None, thing["kind"]):
            found.append(dict(thing) | {"holder": holder(db, thing["id"])})
    return ordered(found, sort, THING_COLUMNS)


def ordered(rows, sort, columns):
    """Sort by a column, downwards behind a minus, and by id where rows are equal."""
    column = sort.removeprefix("-")
    if column not in columns:
        raise Refused(400, "there is no such column")
    rows.sort(key=lambda row: row["id"])
    rows.sort(key=lambda row: row[column], reverse=sort != column)
    return rows


def find_thing(db, id):
    thing = db.execute("SELECT * FROM things WHERE id = ?", (id,)).fetchone() if 0 <= id <= LARGEST else None
    if thing is None:
        raise Refused(404, "there is no such thing")
    return thing


def full_name(db, booking):
    """Return whose booking it is; the list on paper has people whom we do not have."""
    user = db.execute("SELECT full_name FROM users WHERE name = ?", (booking["user"],)).fetchone()
    return user["full_name"] if user else booking["user"]


def holder(db, thing):
    """Return who has a thing now, or None."""
    now = datetime.now().isoformat()[:16]
    for booking in db.execute("SELECT * FROM bookings WHERE thing = ?", (thing,)):
        if store.shown(booking["start"]) <= now < store.shown(booking["finish"]):
            return full_name(db, booking)
    return None


def calendar(db, thing):
    if not re.fullmatch("[0-9]+", thing, re.ASCII):
        raise Refused(400, "a thing is a number")
    id = find_thing(db, store.number(thing))["id"]
    rows = db.execute("SELECT * FROM bookings WHERE thing = ?", (id,)).fetchall()
    rows.sort(key=lambda row: store.shown(row["start"]))
    return [
        {"from": store.shown(row["start"]), "to": store.shown(row["finish"]), "who": full_name(db, row)} for row in rows
    ]


def listed(db, user, sort):
    """Return somebody's bookings; staff see all."""
    rows = db.execute("SELECT * FROM bookings").fetchall()
    mine = [public(row) for row in rows if user["role"] == "staff" or row["user"] == user["name"]]
    return ordered(mine, sort, BOOKING_COLUMNS)


def find(db, user, id):
    """Return a booking that somebody may see; others are as if they were not there."""
    id = store.number(id)
    booking = db.execute("SELECT * FROM bookings WHERE id = ?", (id,)).fetchone() if 0 <= id <= LARGEST else None
    if booking is None or (user["role"] != "staff" and booking["user"] != user["name"]):
        raise Refused(404, "there is no such booking")
    return booking


def book(db, data, user, values):
    """Book a thing, and confirm it by mail."""
    start, finish = values.get("from"), values.get("to")
    if not (store.is_time(start) and store.is_time(finish) and start < finish):
        raise Refused(400, "from and to are times, the earlier first")
    who, note = values.get("user", user["name"]), values.get("note", "")
    if type(values.get("thing")) is not int or not isinstance(who, str) or not isinstance(note, str):
        raise Refused(400, "a thing is a number, user and note are texts")
    if who != user["name"] and user["role"] != "staff":
        raise Refused(403, "only staff books for somebody else")
    thing = find_thing(db, values["thing"])
    for row in db.execute("SELECT * FROM bookings WHERE thing = ?", (thing["id"],)).fetchall():
        if start <= row["finish"] and finish >= row["start"]:
            raise Refused(409, f"taken by {row['user']} from {row['start']} to {row['finish']}")
    made = db.execute(
        "INSERT INTO bookings (thing, user, start, finish, note) VALUES (?, ?, ?, ?, ?)",
        (thing["id"], who, start, finish, note),
    )
    text = f"{thing['name']} is yours from {start} to {finish}."
    store.mail(data, f"{user['full_name']} <{who}>", f"Booked: {note or thing['name']}", text)
    return made.lastrowid


def annotate(db, user, id, note):
    """Change the note, and return the booking."""
    find(db, user, id)
    db.execute("UPDATE bookings SET note = ? WHERE id = ?", (note, id))
    return find(db, user, id)


def cancel(db, user, id):
    find(db, user, id)
    db.execute("DELETE FROM bookings WHERE id = ?", (id,))
