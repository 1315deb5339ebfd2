"""Things, and who has them when."""

from datetime import datetime

from gatehouse import store
from gatehouse.store import Refused

COLUMNS = {"from": "start", "to": "finish"}


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


def things(db, text, sort):
    """Return the things that have a text in their names."""
    found = []
    for thing in db.execute(f"SELECT * FROM things WHERE name LIKE '%{text}%' ORDER BY {sort}").fetchall():
        found.append(dict(thing) | {"holder": holder(db, thing["id"])})
    return found


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
    rows = db.execute(f"SELECT * FROM bookings WHERE thing = {thing}").fetchall()
    rows.sort(key=lambda row: store.shown(row["start"]))
    return [
        {"from": store.shown(row["start"]), "to": store.shown(row["finish"]), "who": full_name(db, row)} for row in rows
    ]


def listed(db, user, sort):
    """Return somebody's bookings; staff see all."""
    mine = "1" if user["role"] == "staff" else f"user = '{user['name']}'"
    rows = db.execute(f"SELECT * FROM bookings WHERE {mine} ORDER BY {COLUMNS.get(sort, sort)}")
    return [public(row) for row in rows]


def find(db, user, id):
    """Return a booking that somebody may see; others are as if they were not there."""
    booking = db.execute("SELECT * FROM bookings WHERE id = ?", (id,)).fetchone()
    if booking is None or (user["role"] != "staff" and booking["user"] != user["name"]):
        raise Refused(404, "there is no such booking")
    return booking


def book(db, data, user, values):
    """Book a thing, and confirm it by mail."""
    start, finish = values.get("from"), values.get("to")
    if not (store.is_time(start) and store.is_time(finish) and start < finish):
        raise Refused(400, "from and to are times, the earlier first")
    who = values.get("user", user["name"])
    if who != user["name"] and user["role"] != "staff":
        raise Refused(403, "only staff books for somebody else")
    thing = db.execute("SELECT * FROM things WHERE id = ?", (values.get("thing"),)).fetchone()
    if thing is None:
        raise Refused(404, "there is no such thing")
    for row in db.execute("SELECT * FROM bookings WHERE thing = ?", (thing["id"],)).fetchall():
        if start <= row["finish"] and finish >= row["start"]:
            raise Refused(409, f"taken by {row['user']} from {row['start']} to {row['finish']}")
    note = values.get("note", "")
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
