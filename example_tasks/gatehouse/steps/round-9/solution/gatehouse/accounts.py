"""People, passwords, sessions, and links for those who have forgotten theirs."""

import hashlib
import hmac
import secrets
import time

from gatehouse import store
from gatehouse.store import Refused

MOST_WRONG = 5  # Passwords in a row, after which a name is locked.
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


def set_password(db, data, name, password, but=""):
    """Change a password, after which nothing of the old one gets anybody in, and tell the person."""
    db.execute("UPDATE users SET password = ? WHERE name = ?", (kept(password), name))
    db.execute("DELETE FROM resets WHERE user = ?", (name,))
    sign_out_everywhere(db, name, but)
    store.mail(data, name, "Your password was changed", "If it was not you, come to the desk.")


def public(user):
    return {"name": user["name"], "full_name": user["full_name"], "role": user["role"]}


def add_user(db, name, full_name, role, password):
    if role not in ("member", "staff") or not name:
        raise Refused(400, "a person has a name and a role")
    if db.execute("SELECT 1 FROM users WHERE name = ?", (name,)).fetchone():
        raise Refused(409, "there is somebody of this name")
    columns = "name, full_name, role, password"
    db.execute(f"INSERT INTO users ({columns}) VALUES (?, ?, ?, ?)", (name, full_name, role, kept(password)))


def users(db):
    found = db.execute("SELECT * FROM users ORDER BY name")
    return [public(user) | {"locked": user["wrong"] >= MOST_WRONG} for user in found]


def unlock(db, name):
    if db.execute("UPDATE users SET wrong = 0 WHERE name = ?", (name,)).rowcount == 0:
        raise Refused(404, "there is no such person")


def is_right(db, user, password):
    """Say whether a password is the person's, and count those that are not; from the fifth on none is."""
    if user["wrong"] >= MOST_WRONG:
        return False
    right = fits(password, user["password"])
    db.execute("UPDATE users SET wrong = ? WHERE name = ?", (0 if right else user["wrong"] + 1, user["name"]))
    if not right:
        db.commit()  # The request is refused, and the count stays.
    return right


def sign_in(db, name, password):
    """Return the person and a new session."""
    user = db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
    if user is None or not is_right(db, user, password):
        raise Refused(401, "wrong name or password")
    if not user["password"].startswith("scrypt:"):
        db.execute("UPDATE users SET password = ? WHERE name = ?", (kept(password), user["name"]))
    session = secrets.token_urlsafe(32)
    values = (store.digest(session), user["name"], store.now())
    db.execute("INSERT INTO sessions (id, user, since) VALUES (?, ?, ?)", values)
    return user, session


def user_of(db, session):
    """Return who is signed in, or None."""
    return db.execute(
        "SELECT users.* FROM users JOIN sessions ON users.name = sessions.user WHERE sessions.id = ?",
        (store.digest(session),),
    ).fetchone()


def rename(db, user, full_name):
    """Change the full name, which is all that somebody may change of himself here."""
    db.execute("UPDATE users SET full_name = ? WHERE name = ?", (full_name, user["name"]))
    return public(db.execute("SELECT * FROM users WHERE name = ?", (user["name"],)).fetchone())


def sessions(db, user):
    """Return somebody's sessions, for staff all, with numbers that are no secrets."""
    rows = db.execute("SELECT * FROM sessions ORDER BY number").fetchall()
    seen = [row for row in rows if user["role"] == "staff" or row["user"] == user["name"]]
    return [{"id": row["number"], "user": row["user"], "since": row["since"]} for row in seen]


def end_session(db, user, number):
    if number not in [str(each["id"]) for each in sessions(db, user)]:
        raise Refused(404, "there is no such session")
    db.execute("DELETE FROM sessions WHERE number = ?", (number,))


def sign_out(db, session):
    db.execute("DELETE FROM sessions WHERE id = ?", (store.digest(session),))


def sign_out_everywhere(db, name, but=""):
    """End all sessions of a person, but for one."""
    db.execute("DELETE FROM sessions WHERE user = ? AND id != ?", (name, store.digest(but)))


def change_password(db, data, user, session, old, new):
    if not is_right(db, user, old):
        raise Refused(401, "the old password is wrong")
    set_password(db, data, user["name"], new, but=session)


def ask_reset(db, data, name):
    user = db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
    if user is None:
        return
    now = int(time.time())
    code = secrets.token_urlsafe(32)
    db.execute("DELETE FROM resets WHERE user = ?", (user["name"],))
    db.execute("INSERT INTO resets VALUES (?, ?, ?)", (store.digest(code), user["name"], now))
    store.mail(data, user["name"], "Your password", f"Follow this link:\n\n/reset/{code}")


def reset(db, data, code, new, minutes):
    """Use up a code: of several that come at once, one removes it."""
    rows = db.execute("DELETE FROM resets WHERE code = ? RETURNING *", (store.digest(code),)).fetchall()
    if not rows or time.time() >= rows[0]["asked"] + minutes * 60:
        raise Refused(404, "there is no such code")
    set_password(db, data, rows[0]["user"], new)
    unlock(db, rows[0]["user"])
