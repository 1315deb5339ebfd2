"""Dumps into the tables."""

from shelf import dumps
from shelf.copies import Copies


class PassedOver(Exception):
    """A record is of somebody who has left."""


def load(cursor, given) -> list[str]:
    """Load dumps; return the lines that tell of them."""
    told = {}
    for dump in sorted(given, key=lambda dump: dumps.KINDS.index(dump.kind)):
        told[dump] = _load(cursor, dump)
    return [told[dump] for dump in given]


def _load(cursor, dump) -> str:
    cursor.execute("DELETE FROM reject WHERE file = %s", (dump.file,))
    rejected = 0
    passed = 0
    for line, raw in dump.records:
        try:
            _enter(cursor, dump.kind, dump.version, raw)
        except dumps.Rejected as error:
            rejected += 1
            cursor.execute(
                "INSERT INTO reject VALUES (%s, %s, %s, %s, %s)", (dump.file, line, dump.head, str(error), raw)
            )
        except PassedOver:
            passed += 1
    told = f"{dump.kind}: {len(dump.records) - rejected - passed} loaded, {rejected} rejected"
    return f"{told}, {passed} passed over" if passed else told


def _enter(cursor, kind, version, raw) -> None:
    """Load one record."""
    if kind != "TITLES" and _is_there(cursor, "SELECT FROM left_member WHERE no = %s", dumps.number_in(raw)):
        raise PassedOver
    _ROWS[kind](cursor, version, dumps.fields_of(kind, version, raw))


def _is_there(cursor, query, *values) -> bool:
    cursor.execute(query, values)
    return cursor.rowcount > 0


def _member(cursor, version, fields) -> None:
    no, name, first, born, since, phone = fields
    no = dumps.number(no)
    if not name:
        raise dumps.Rejected("name")
    since = dumps.day(since)
    born = dumps.born(born, since)
    if born is not None and born > since:
        raise dumps.Rejected("order")
    row = (no, name, first or None, born, since, version)
    cursor.execute(
        "INSERT INTO member (no, name, first_name, born, since, version) VALUES (%s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (no) DO UPDATE SET name = EXCLUDED.name, first_name = EXCLUDED.first_name, born = EXCLUDED.born,"
        " since = EXCLUDED.since, version = EXCLUDED.version",
        row,
    )
    cursor.execute("DELETE FROM contact WHERE member_no = %s", (no,))
    for contact in dumps.contacts(phone):
        cursor.execute("INSERT INTO contact VALUES (%s, %s, %s)", (no, *contact))


def _title(cursor, version, fields) -> None:
    sig, title, author, year, copies = fields
    if not title:
        raise dumps.Rejected("name")
    sig, year, copies = dumps.sig(sig), dumps.year(year), dumps.copies(copies)
    cursor.execute(
        "INSERT INTO title (sig, title, author, year, version) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (sig) DO UPDATE SET title = EXCLUDED.title, author = EXCLUDED.author, year = EXCLUDED.year,"
        " version = EXCLUDED.version",
        (sig, title, author or None, year, version),
    )
    Copies(cursor).ensure(sig, copies)


def _loan(cursor, version, fields) -> None:
    no, sig, out, back = fields
    no, sig, out, back = dumps.number(no), dumps.sig(sig), dumps.day(out), dumps.day(back, needed=False)
    if back is not None and back < out:
        raise dumps.Rejected("order")
    if not _is_there(cursor, "SELECT FROM member WHERE no = %s", no):
        raise dumps.Rejected("member")
    if not _is_there(cursor, "SELECT FROM title WHERE sig = %s", sig):
        raise dumps.Rejected("title")
    others = "SELECT FROM loan WHERE member_no = %s AND sig = %s AND out_on != %s AND back_on IS NULL"
    if back is None and _is_there(cursor, others, no, sig, out):
        raise dumps.Rejected("open")
    cursor.execute("SELECT id, copy_number FROM loan WHERE (member_no, sig, out_on) = (%s, %s, %s)", (no, sig, out))
    id, copy = cursor.fetchone() or (None, None)
    copy = Copies(cursor).free(sig, out, back, wanted=copy, besides=id)
    cursor.execute(
        "INSERT INTO loan (member_no, sig, out_on, back_on, copy_number) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (member_no, sig, out_on) DO UPDATE"
        " SET back_on = EXCLUDED.back_on, copy_number = EXCLUDED.copy_number",
        (no, sig, out, back, copy),
    )


_ROWS = {"MEMBERS": _member, "TITLES": _title, "LOANS": _loan}
