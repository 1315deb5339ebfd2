"""Members who leave."""

from shelf import dumps


class Refused(Exception):
    """A member cannot leave."""


def leave(cursor, no: int) -> None:
    """Forget a member, but for his number."""
    cursor.execute("SELECT FROM member WHERE no = %s FOR UPDATE", (no,))
    if not cursor.rowcount:
        raise Refused("no such member")
    cursor.execute("SELECT count(*) FROM loan WHERE member_no = %s AND back_on IS NULL", (no,))
    (open_loans,) = cursor.fetchone()
    if open_loans:
        raise Refused(f"{open_loans} open loans")
    cursor.execute("UPDATE loan SET member_no = NULL WHERE member_no = %s", (no,))
    cursor.execute("DELETE FROM member WHERE no = %s", (no,))
    cursor.execute("INSERT INTO left_member VALUES (%s)", (no,))
    cursor.execute("SELECT file, line, raw FROM reject WHERE split_part(head, ' ', 3) != 'TITLES'")
    for file, line, raw in cursor.fetchall():
        if dumps.number_in(bytes(raw)) == no:
            cursor.execute("DELETE FROM reject WHERE (file, line) = (%s, %s)", (file, line))
