"""People, passwords, sessions, and links for those who have forgotten theirs."""

import hashlib
import hmac
import secrets
import time

from gatehouse import store
from gatehouse.store import Refused

DAY = 24 * 60 * 60
COST = {"n": 2**12, "r": 8, "p": 1}  # What the desk's old machine does without a queue.


def kept(password):
    """Return a password as the database has it."""
    salt = secrets.token_bytes(16)
    return f"scrypt:{salt.hex()}:{scrypt(password, salt).hex()}"


def scrypt(password, salt):
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, **COST)


def fits(password, form):
    """Say whether a password is the one that the database has, also in the old form."""
    if not form.startswith("scrypt:"):
        plain = hashlib.sha1(password.encode("utf-8", "surrogatepass")).hexdigest()
        return hmac.compare_digest(plain, form)
    _, salt, digest = form.split(":")
    return hmac.compare_digest(scrypt(password, bytes.fromhex(salt)).hex(), digest)


def set_password(db, name, password):
    db.execute("UPDATE users SET password = ? WHERE name = ?", (kept(password), name))


def public(user):
    return {"name": user["name"], "full_name": user["full_name"], "role": user["role"]}


def add_user(db, name, full_name, role, password):
    if role not in ("member", "staff") or not name:
        raise Refused(400, "a person has a name and a role")
    if db.execute("SELECT 1 FROM users WHERE name = ?", (name,)).fetchone():
        raise Refused(409, "there is somebody of this name")
    db.execute("INSERT INTO users VALUES (?, ?, ?, ?)", (name, full_name, role, kept(password)))


def users(db):
    return [public(user) for user in db.execute("SELECT * FROM users ORDER BY name")]


def sign_in(db, name, password):
    """Return the person and a new session."""
    user = db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
    if user is None or not fits(password, user["password"]):
        raise Refused(401, "wrong name or password")
    if not user["password"].startswith("scrypt:"):
        set_password(db, user["name"], password)
    session = secrets.token_urlsafe(32)
    db.execute("INSERT INTO sessions VALUES (?, ?)", (session, user["name"]))
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


def sign_out(db, session):
    db.execute("DELETE FROM sessions WHERE id = ?", (session,))


def sign_out_everywhere(db, name, but=""):
    """End all sessions of a person, but for one."""
    db.execute("DELETE FROM sessions WHERE user = ? AND id != ?", (name, but))


def change_password(db, user, session, old, new):
    if not fits(old, user["password"]):
        raise Refused(401, "the old password is wrong")
    set_password(db, user["name"], new)
    sign_out_everywhere(db, user["name"], but=session)


def ask_reset(db, data, name):
    user = db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
    if user is None:
        return
    now = int(time.time())
    code = secrets.token_urlsafe(32)
    db.execute("INSERT INTO resets VALUES (?, ?, ?)", (code, user["name"], now))
    store.mail(data, f"{user['full_name']} <{user['name']}>", "Your password", f"Follow this link:\n\n/reset/{code}")


def reset(db, code, new, days):
    row = db.execute("SELECT * FROM resets WHERE code = ?", (code,)).fetchone()
    if row is None or time.time() >= row["asked"] + days * DAY:
        raise Refused(404, "there is no such code")
    set_password(db, row["user"], new)
    sign_out_everywhere(db, row["user"])
