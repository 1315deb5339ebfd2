"""The commands of `meters`."""

import sys

from . import amounts, database
from .calendar import is_month
from .errors import Refused
from .suppliers import read_file

USAGE = "usage: meters import FILE... | meters report MONTH"


def main(arguments: list[str]) -> int:
    """Run a command, and return the exit status."""
    match arguments:
        case ["import", _, *_]:
            command = import_files
        case ["report", month] if is_month(month):
            command = report
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    try:
        lines = command(*arguments[1:])
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0


def import_files(*names: str) -> list[str]:
    files = [(name, read_file(name, _content(name))) for name in names]
    connection = database.connect()
    lines = []
    for name, readings in files:
        new, changed = database.store(connection, readings)
        lines.append(f"{name}: {new} new, {changed} changed")
    connection.commit()
    return lines


def report(month: str) -> list[str]:
    if not database.exists():
        raise Refused("no meters.db")
    connection = database.connect()
    lines = amounts.report(connection, month)
    connection.commit()
    return lines


def _content(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError:
        raise Refused(f"{name}: cannot read") from None
