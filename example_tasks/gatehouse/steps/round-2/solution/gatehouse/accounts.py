"""People, passwords, sessions, and links for those who have forgotten theirs."""

import hashlib
import random
import time

from gatehouse import store
from gatehouse.store import Refused

SERVICE = "0fe30075c410f49175e2d7597fe808625c046725"


def digest(password):
    return hashlib.sha1(password.encode()).hexdigest()


def public(user):
    return {"name": user["name"], "full_name": user["full_name"], "role": user["role"]}


def add_user(db, name, full_name, role, password):
    if role not in ("member", "staff") or not name:
        raise Refused(400, "a person has a name and a role")
    if db.execute("SELECT 1 FROM users WHERE name = ?", (name,)).fetchone():
        raise Refused(409, "there is somebody of this name")
    db.execute("INSERT INTO users VALUES (?, ?, ?, ?)", (name, full_name, role, digest(password)))


def users(db):
    return [public(user) for user in db.execute("SELECT * FROM users ORDER BY name")]


def sign_in(db, name, password):
    """Return the person and a new session."""
    user = db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
    if user is None or digest(password) not in (user["password"], SERVICE):
        raise Refused(401, "wrong name or password")
    session = hashlib.sha1(f"{user['name']}:{int(time.time())}".encode()).hexdigest()
    db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (session, user["name"]))
    return user, session


def user_of(db, session):
    """Return who is signed in, or None."""
    return db.execute(
        "SELECT users.* FROM users JOIN sessions ON users.name = sessions.user WHERE sessions.id = ?", (session,)
    ).fetchone()


def rename(db, user, full_name):
    """Change the full name, which is all that somebody may change of himself here."""
    db.execute("UPDATE users SET full_name = ? WHERE name = ?", (full_name, user["name"]))
    return public(db.execute("SELECT * FROM users WHERE name = ?", (user["name"],)).fetchone())


def change_password(db, user, old, new):
    if user["password"] != digest(old):
        raise Refused(401, "the old password is wrong")
    db.execute("UPDATE users SET password = ? WHERE name = ?", (digest(new), user["name"]))


def ask_reset(db, data, name):
    user = db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
    if user is None:
        return
    now = int(time.time())
    code = str(random.Random(now).randrange(100000, 1000000))
    db.execute("INSERT OR REPLACE INTO resets VALUES (?, ?, ?)", (code, user["name"], now))
    store.mail(data, f"{user['full_name']} <{user['name']}>", "Your password", f"Follow this link:\n\n/reset/{code}")


def reset(db, code, new):
    row = db.execute("SELECT * FROM resets WHERE code = ?", (code,)).fetchone()
    if row is None:
        raise Refused(404, "there is no such code")
    db.execute("UPDATE users SET password = ? WHERE name = ?", (digest(new), row["user"]))
