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


def things(db, user, text, kind, sort, start, finish):
    """Return the things that have a text in their names or places, of one kind and free where that is asked for."""
    if (start, finish) != (None, None):
        check_times(start, finish)
    if kind not in (None, "key", "room"):
        raise Refused(400, "there is no such kind")
    text = text.casefold()
    found = []
    for thing in db.execute("SELECT * FROM things").fetchall():
        fits = text in thing["name"].casefold() or text in thing["place"].casefold()
        if fits and kind in (None, thing["kind"]) and (start is None or not clashes(db, thing, start, finish)):
            found.append(dict(thing) | {"holder": holder(db, user, thing["id"])})
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


def check_times(start, finish):
    if not (store.is_time(start) and store.is_time(finish) and start < finish):
        raise Refused(400, "from and to are times, the earlier first")


def clashes(db, thing, start, finish, but=None):
    """Return what is in the way of a booking, the earliest first; keys have to come back, rooms follow each other."""
    found = []
    for row in db.execute("SELECT * FROM bookings WHERE thing = ? AND id IS NOT ?", (thing["id"], but)).fetchall():
        begins, ends = store.shown(row["start"]), store.shown(row["finish"])
        touches = start == ends or finish == begins
        if start <= ends and finish >= begins and not (touches and thing["kind"] == "room"):
            found.append(row)
    return sorted(found, key=lambda row: store.shown(row["start"]))


def refuse_clash(*where, but=None):
    for row in clashes(*where, but=but):
        times = {"from": store.shown(row["start"]), "to": store.shown(row["finish"])}
        raise Refused(409, f"taken from {times['from']} to {times['to']}", **times)


def who(db, user, booking):
    """Return whose booking it is, for those who may know."""
    if user["role"] == "staff" or user["name"] == booking["user"]:
        return full_name(db, booking)
    return None


def full_name(db, booking):
    """Return whose booking it is; the list on paper has people whom we do not have."""
    user = db.execute("SELECT full_name FROM users WHERE name = ?", (booking["user"],)).fetchone()
    return user["full_name"] if user else booking["user"]


def holder(db, user, thing):
    """Return who has a thing now, for those who may know, or None."""
    now = datetime.now().isoformat()[:16]
    for booking in db.execute("SELECT * FROM bookings WHERE thing = ?", (thing,)):
        if store.shown(booking["start"]) <= now < store.shown(booking["finish"]):
            return who(db, user, booking)
    return None


def calendar(db, user, thing):
    if not re.fullmatch("[0-9]+", thing, re.ASCII):
        raise Refused(400, "a thing is a number")
    id = find_thing(db, store.number(thing))["id"]
    rows = db.execute("SELECT * FROM bookings WHERE thing = ?", (id,)).fetchall()
    rows.sort(key=lambda row: store.shown(row["start"]))
    return [
        {"from": store.shown(row["start"]), "to": store.shown(row["finish"]), "who": who(db, user, row)} for row in rows
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
    check_times(start, finish)
    owner, note = values.get("user", user["name"]), values.get("note", "")
    if type(values.get("thing")) is not int or not isinstance(owner, str) or not isinstance(note, str):
        raise Refused(400, "a thing is a number, user and note are texts")
    if owner != user["name"] and user["role"] != "staff":
        raise Refused(403, "only staff books for somebody else")
    thing = find_thing(db, values["thing"])
    refuse_clash(db, thing, start, finish)
    made = db.execute(
        "INSERT INTO bookings (thing, user, start, finish, note) VALUES (?, ?, ?, ?, ?)",
        (thing["id"], owner, start, finish, note),
    )
    text = f"{thing['name']} is yours from {start} to {finish}."
    store.mail(data, owner, f"Booked: {note or thing['name']}", text)
    return made.lastrowid


def change(db, user, id, values):
    """Move a booking, change its note, or both, and return it."""
    booking = find(db, user, id)
    if not values.keys() & {"from", "to", "note"} or not isinstance(values.get("note", ""), str):
        raise Refused(400, "from, to or a note is missing")
    if "from" in values or "to" in values:
        old = public(booking)
        start, finish = values.get("from", old["from"]), values.get("to", old["to"])
        check_times(start, finish)
        refuse_clash(db, find_thing(db, booking["thing"]), start, finish, but=booking["id"])
        db.execute("UPDATE bookings SET start = ?, finish = ? WHERE id = ?", (start, finish, booking["id"]))
    if "note" in values:
        db.execute("UPDATE bookings SET note = ? WHERE id = ?", (values["note"], booking["id"]))
    return find(db, user, id)


def cancel(db, data, user, id):
    booking = find(db, user, id)
    db.execute("DELETE FROM bookings WHERE id = ?", (id,))
    if booking["user"] != user["name"]:
        thing = db.execute("SELECT name FROM things WHERE id = ?", (booking["thing"],)).fetchone()
        subject = f"Cancelled: {thing['name'] if thing else booking['thing']}"
        times = f"from {store.shown(booking['start'])} to {store.shown(booking['finish'])}"
        store.mail(data, booking["user"], subject, f"Your booking {times} was cancelled.")
