"""The commands of the register."""

import datetime
import re
import sys

import psycopg2
from shelf import dumps, editions
from shelf.load import load

USAGE = "usage: shelf migrate | load FILE | overdue DAY"
_OVERDUE = """
    SELECT concat_ws(E'\\t', no, sig, %(day)s - out_on - 28, name || coalesce(', ' || first_name, ''))
    FROM loan JOIN member ON no = member_no
    WHERE out_on < %(day)s - 28 AND (back_on IS NULL OR back_on > %(day)s)
    ORDER BY out_on, no, sig COLLATE "C" """


class Failed(Exception):
    """A command ends with a status."""


def _migrate(connection, arguments) -> None:
    if arguments:
        raise Failed(2, USAGE)
    with connection, connection.cursor() as cursor:
        found = editions.edition_of(cursor)
    if found > editions.NOW:
        raise Failed(3, f"edition {found}")
    editions.migrate(connection)
    print(f"edition {editions.NOW}")


def _load(connection, arguments) -> None:
    if len(arguments) != 1:
        raise Failed(2, USAGE)
    with connection, connection.cursor() as cursor:
        _present(cursor)
        try:
            dump = dumps.Dump(arguments[0])
        except dumps.Damaged as error:
            raise Failed(4, str(error)) from None
        told = load(cursor, dump)
    print(told)


def _overdue(connection, arguments) -> None:
    if len(arguments) != 1 or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", arguments[0]):
        raise Failed(2, USAGE)
    try:
        day = datetime.date.fromisoformat(arguments[0])
    except ValueError:
        raise Failed(2, USAGE) from None
    with connection, connection.cursor() as cursor:
        _present(cursor)
        cursor.execute(_OVERDUE, {"day": day})
        for (line,) in cursor.fetchall():
            print(line)


def _present(cursor) -> None:
    """Refuse a database that is not of this edition."""
    found = editions.edition_of(cursor)
    if found != editions.NOW:
        raise Failed(3, f"edition {found}")


_COMMANDS = {"migrate": _migrate, "load": _load, "overdue": _overdue}


def main() -> int:
    command = _COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    try:
        if command is None:
            raise Failed(2, USAGE)
        connection = psycopg2.connect("")
        try:
            command(connection, sys.argv[2:])
        finally:
            connection.close()
    except Failed as failed:
        status, message = failed.args
        print(message, file=sys.stderr)
        return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
