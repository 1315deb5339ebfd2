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


_ROWS = {"MEMBERS": _member}
