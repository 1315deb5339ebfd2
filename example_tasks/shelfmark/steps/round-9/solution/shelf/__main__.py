"""The commands of the register."""

import datetime
import re
import sys

import psycopg2
from shelf import dumps, editions
from shelf.leave import Refused, leave
from shelf.load import load

USAGE = "usage: shelf migrate [--to K] | load FILE... | overdue DAY | rejects | leave NO"
_OVERDUE = """
    SELECT concat_ws(E'\\t', no, sig || '/' || copy_number, %(day)s - out_on - 28,
                     name || coalesce(', ' || first_name, ''))
    FROM loan JOIN member ON no = member_no
    WHERE out_on < %(day)s - 28 AND (back_on IS NULL OR back_on > %(day)s)
    ORDER BY out_on, no, sig COLLATE "C", copy_number"""


class Failed(Exception):
    """A command ends with a status."""


def _migrate(connection, arguments) -> None:
    to = editions.NOW
    if arguments:
        if len(arguments) != 2 or arguments[0] != "--to" or not re.fullmatch(r"[1-9][0-9]?", arguments[1]):
            raise Failed(2, USAGE)
        to = int(arguments[1])
        if to > editions.NOW:
            raise Failed(2, USAGE)
    with connection, connection.cursor() as cursor:
        found = editions.edition_of(cursor)
    if found > to:
        raise Failed(3, f"edition {found}")
    done = []
    while True:
        try:
            number = editions.step(connection, to)
        except psycopg2.Error as error:
            raise Failed(5, f"edition {max([found, *done]) + 1}: {str(error).splitlines()[0]}") from None
        if not number:
            break
        done.append(number)
        print(f"edition {number}", flush=True)
    if not done:
        print(f"edition {to}")


def _load(connection, arguments) -> None:
    if not arguments:
        raise Failed(2, USAGE)
    with connection, connection.cursor() as cursor:
        _present(cursor)
        try:
            given = [dumps.Dump(path) for path in arguments]
        except dumps.Damaged as error:
            raise Failed(4, str(error)) from None
        told = load(cursor, given)
    print("\n".join(told))


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


def _rejects(connection, arguments) -> None:
    if arguments:
        raise Failed(2, USAGE)
    with connection, connection.cursor() as cursor:
        _present(cursor)
        cursor.execute('SELECT file, line, head, reason, raw FROM reject ORDER BY file COLLATE "C", line')
        for file, line, head, reason, raw in cursor.fetchall():
            text = bytes(raw).decode(dumps.page_of(head.split()[1]), "replace").replace("\ufffd", "?")
            print(file, line, reason, text, sep="\t")


def _leave(connection, arguments) -> None:
    if len(arguments) != 1 or not re.fullmatch(r"[0-9]{1,6}", arguments[0]):
        raise Failed(2, USAGE)
    no = int(arguments[0])
    with connection, connection.cursor() as cursor:
        _present(cursor)
        try:
            leave(cursor, no)
        except Refused as error:
            raise Failed(6, f"{no}: {error}") from None
    print(f"left {no}")


def _present(cursor) -> None:
    """Refuse a database that is not of this edition."""
    found = editions.edition_of(cursor)
    if found != editions.NOW:
        raise Failed(3, f"edition {found}")


_COMMANDS = {"migrate": _migrate, "load": _load, "overdue": _overdue, "rejects": _rejects, "leave": _leave}


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
