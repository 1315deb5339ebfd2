"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-9` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 9
# The module, a passage of it as the last round leaves it, and what stands there instead.
MUTANTS = [
    # Who is who.
    ("accounts.py", "MOST_WRONG = 5", "MOST_WRONG = 6"),
    ("accounts.py", "MOST_WRONG = 5", "MOST_WRONG = 4"),
    ("accounts.py", "salt = secrets.token_bytes(16)", 'salt = b"0123456789abcdef"'),
    ("accounts.py", "return hmac.compare_digest(plain, form)", "return False"),
    ("accounts.py", "return hmac.compare_digest(plain, form)", "return password == form"),
    ("accounts.py", '    db.execute("DELETE FROM resets WHERE user = ?", (name,))\n', ""),
    ("accounts.py", "    sign_out_everywhere(db, name, but)\n", ""),
    (
        "accounts.py",
        'set_password(db, data, user["name"], new, but=session)',
        'set_password(db, data, user["name"], new)',
    ),
    ("accounts.py", '"If it was not you, come to the desk.")', 'f"It is {password} now.")'),
    ("accounts.py", 'raise Refused(409, "there is somebody of this name")', "return"),
    ("accounts.py", 'user["wrong"] >= MOST_WRONG}', "False}"),
    ("accounts.py", "        db.commit()  # The request is refused, and the count stays.\n", "        pass\n"),
    ("accounts.py", '(0 if right else user["wrong"] + 1, ', '(user["wrong"] + (not right), '),
    ("accounts.py", "    if not is_right(db, user, old):\n", '    if not fits(old, user["password"]):\n'),
    ("accounts.py", '    if not user["password"].startswith("scrypt:"):\n', "    if False:\n"),
    (
        "accounts.py",
        "    session = secrets.token_urlsafe(32)\n",
        "    session = store.digest(name + str(time.time()))[:8]\n",
    ),
    ("accounts.py", "values = (store.digest(session), user", "values = (session, user"),
    ("accounts.py", ' or row["user"] == user["name"]]\n    return [{"id"', ']\n    return [{"id"'),
    ("accounts.py", '{"id": row["number"], ', '{"id": row["id"], '),
    ("accounts.py", '"DELETE FROM sessions WHERE number = ?", (number,)', '"DELETE FROM sessions"'),
    ("accounts.py", " AND id != ?", " AND id < ?"),
    ("accounts.py", "    code = secrets.token_urlsafe(32)\n", "    code = str(now)\n"),
    ("accounts.py", '    db.execute("DELETE FROM resets WHERE user = ?", (user["name"],))\n', ""),
    ("accounts.py", "DELETE FROM resets WHERE code = ? RETURNING *", "SELECT * FROM resets WHERE code = ?"),
    ("accounts.py", "time.time() >= rows", "time.time() > 60 + rows"),
    ("accounts.py", '    unlock(db, rows[0]["user"])\n', ""),
    # Bookings.
    ("bookings.py", "text = text.casefold()\n    found", "found"),
    ("bookings.py", ' or text in thing["place"].casefold()', ""),
    ("bookings.py", "    if (start, finish) != (None, None):\n", "    if None not in (start, finish):\n"),
    ("bookings.py", "fits and kind in (None, thing", "fits and kind is not thing and (None, thing"),
    ("bookings.py", '    rows.sort(key=lambda row: row["id"])\n', ""),
    ("bookings.py", "reverse=sort != column)", "reverse=False)"),
    ("bookings.py", "start < finish):", "start <= finish):"),
    ("bookings.py", "start <= ends and finish >= begins and", "start < ends and finish > begins and"),
    ("bookings.py", ' and not (touches and thing["kind"] == "room")', ""),
    ("bookings.py", 'return sorted(found, key=lambda row: store.shown(row["start"]))', "return found"),
    ("bookings.py", ' or user["name"] == booking["user"]:\n        return', ":\n        return"),
    (
        "bookings.py",
        'return user["full_name"] if user else booking["user"]',
        'return user["full_name"] if user else None',
    ),
    ("bookings.py", "<= now <", ">= now <"),
    ("bookings.py", '    rows.sort(key=lambda row: store.shown(row["start"]))\n    return', "    return"),
    (
        "bookings.py",
        ' if user["role"] == "staff" or row["user"] == user["name"]]\n    return ordered',
        "]\n    return ordered",
    ),
    ("bookings.py", "if booking is None or (user", "if booking is None or 0 * (user"),
    ("bookings.py", "is not int or", "is str or"),
    ("bookings.py", '    if owner != user["name"] and', "    if False and"),
    ("bookings.py", 'store.mail(data, owner, f"Booked', 'store.mail(data, user["name"], f"Booked'),
    ("bookings.py", ', but=booking["id"])\n        db', ")\n        db"),
    (
        "bookings.py",
        '        refuse_clash(db, find_thing(db, booking["thing"]), start, finish, but=booking["id"])\n',
        "",
    ),
    ("bookings.py", '    if booking["user"] != user["name"]:\n', "    if True:\n"),
    # Files, tables, mails, heads.
    ("files.py", 'not in (".", "..") and', 'not in (".",) and'),
    ("files.py", r"[^/\\\x00-\x1f\x7f]+", r"[^/\x00-\x1f\x7f]+"),
    ("files.py", r"[^/\\\x00-\x1f\x7f]+", r"[^/\\\x00-\x1f]+"),
    ("files.py", "len(name.encode()) <= 200", "len(name) <= 200"),
    ("files.py", "    if name not in os.listdir(PAGES):\n", "    if False:\n"),
    ("files.py", "    shutil.rmtree(directory(data, booking), ignore_errors=True)\n", "    pass\n"),
    ("files.py", "quote(name, safe='')", "quote(name, safe='!')"),
    ("files.py", '        "X-Content-Type-Options": "nosniff",\n', ""),
    ("export.py", "begins >= start", "begins > start"),
    ("export.py", "begins < finish", "begins <= finish"),
    ("export.py", "rows.sort(key=lambda row: (row[2], row[0]))", "rows.sort(key=lambda row: row[2])"),
    ("export.py", '" *[=+', '"[=+'),
    ("export.py", r"\-@\t\r]", r"\-@\r]"),
    ("export.py", r'lineterminator="\r\n"', r'lineterminator="\n"'),
    ("export.py", '(user is None or row["user"] == user["name"])', "True"),
    ("store.py", "\\x7f-\\x9f", "\\x7f"),
    ("store.py", "\\u2028\\u2029]", "]"),
    ("store.py", "DELETE FROM sessions; DELETE FROM resets; PRAGMA", "DELETE FROM resets; PRAGMA"),
    ("store.py", "DELETE FROM sessions; DELETE FROM resets; PRAGMA", "DELETE FROM sessions; PRAGMA"),
    ("store.py", "last = max([*given, ", "last = max(["),
    ("store.py", "    id INTEGER PRIMARY KEY AUTOINCREMENT, thing", "    id INTEGER PRIMARY KEY, thing"),
    ("store.py", "        datetime.fromisoformat(text)\n", "        pass\n"),
    ("routes.py", r"/(?![/\\])", r"/(?!/)"),
    ("routes.py", "[^\\x00-\\x1f\\x7f]*", "[^\\r\\n]*"),
    ("routes.py", "HttpOnly; ", ""),
    ("routes.py", '("GET", "/export.csv", "staff", table)', '("GET", "/export.csv", "member", table)'),
    (
        "routes.py",
        '("POST", "/users/([^/]+)/unlock", "staff", unlock)',
        '("POST", "/users/([^/]+)/unlock", "member", unlock)',
    ),
    ("web.py", "LARGEST_BODY = 64 * 1024", "LARGEST_BODY = 64 * 1024 - 1"),
    ("web.py", "LARGEST_ATTACHMENT = 4 * 1024 * 1024", "LARGEST_ATTACHMENT = 5 * 1024 * 1024"),
    ("web.py", '"Transfer-Encoding" in self.headers or', ""),
    ("web.py", "    if len(body) < int(length):\n", "    if not body and int(length):\n"),
    ("web.py", '                db.execute("BEGIN IMMEDIATE")\n', "                pass\n"),
    ("web.py", '"this could not be dealt with"', "traceback.format_exc()"),
    ("web.py", 'errors="strict"', 'errors="replace"'),
    ("__main__.py", "default=60, help", "default=0, help"),
]


def mutated(texts: dict[str, str], number: int) -> tuple[str, str]:
    """Return the module that a mutant changes and its text."""
    name, old, new = MUTANTS[number]
    if texts[name].count(old) != 1:
        raise SystemExit(f"mutants.py: {texts[name].count(old)} times in {name}: {old!r}")
    return name, texts[name].replace(old, new)


def last_modules() -> dict[str, str]:
    """Return the modules as the last round leaves them."""
    texts = {}
    for number in range(1, ROUNDS + 1):
        for path in (TASK / f"steps/round-{number}/solution/gatehouse").glob("*.py"):
            texts[path.name] = path.read_text()
    return texts


def main() -> None:
    if len(sys.argv) != 3:
        for number, (name, old, new) in enumerate(MUTANTS):
            print(f"{number:3} {name}: {old!r} -> {new!r}")
        return
    name, text = mutated(last_modules(), int(sys.argv[1]))
    directory = Path(sys.argv[2])
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    (directory / f"steps/round-{ROUNDS}/solution/gatehouse/{name}").write_text(text)


if __name__ == "__main__":
    main()
