"""Dumps into the tables."""

from shelf import dumps


def load(cursor, dump) -> str:
    """Load a dump; return the line that tells of it."""
    cursor.execute("DELETE FROM reject WHERE file = %s", (dump.file,))
    rejected = 0
    for line, raw in dump.records:
        try:
            _ROWS[dump.kind](cursor, dumps.fields_of(dump.kind, raw))
        except dumps.Rejected as error:
            rejected += 1
            cursor.execute(
                "INSERT INTO reject VALUES (%s, %s, %s, %s, %s)", (dump.file, line, dump.head, str(error), raw)
            )
    return f"{dump.kind}: {len(dump.records) - rejected} loaded, {rejected} rejected"


def _is_there(cursor, query, *values) -> bool:
    cursor.execute(query, values)
    return cursor.rowcount > 0


def _member(cursor, fields) -> None:
    no, name, first, born, since, phone = fields
    no = dumps.number(no)
    if not name:
        raise dumps.Rejected("name")
    row = (no, name, first or None, dumps.day(born, needed=False), dumps.day(since), phone or None)
    cursor.execute(
        "INSERT INTO member VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (no) DO UPDATE SET name = EXCLUDED.name,"
        " first_name = EXCLUDED.first_name, born = EXCLUDED.born, since = EXCLUDED.since, phone = EXCLUDED.phone",
        row,
    )


def _title(cursor, fields) -> None:
    sig, title, author, year, copies = fields
    if not title:
        raise dumps.Rejected("name")
    row = (dumps.sig(sig), title, author or None, dumps.year(year), dumps.copies(copies))
    cursor.execute(
        "INSERT INTO title VALUES (%s, %s, %s, %s, %s) ON CONFLICT (sig) DO UPDATE SET title = EXCLUDED.title,"
        " author = EXCLUDED.author, year = EXCLUDED.year, copies = EXCLUDED.copies",
        row,
    )


def _loan(cursor, fields) -> None:
    no, sig, out, back = fields
    no, sig, out, back = dumps.number(no), dumps.sig(sig), dumps.day(out), dumps.day(back, needed=False)
    if back is not None and back < out:
        raise dumps.Rejected("order")
    if not _is_there(cursor, "SELECT FROM member WHERE no = %s", no):
        raise dumps.Rejected("member")
    if not _is_there(cursor, "SELECT FROM title WHERE sig = %s", sig):
        raise dumps.Rejected("title")
    cursor.execute(
        "INSERT INTO loan (member_no, sig, out_on, back_on) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (member_no, sig, out_on) DO UPDATE SET back_on = EXCLUDED.back_on",
        (no, sig, out, back),
    )


_ROWS = {"MEMBERS": _member, "TITLES": _title, "LOANS": _loan}
