"""The commands, as they are typed."""

import os
import sys

from . import database, listings
from .errors import Refused, WrongCall
from .files import KINDS, kind_of, read

USAGE = "usage: almanac import FILE...\nusage: almanac list"


def main(arguments):
    command, *words = arguments or [""]
    try:
        if command not in COMMANDS:
            raise WrongCall
        output = COMMANDS[command](words)
    except WrongCall:
        print(USAGE, file=sys.stderr)
        return 2
    except Refused as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write("".join(output).encode("latin-1"))
    return 0


def import_files(paths):
    expect(paths)
    contents = [(path, os.path.basename(path), contents_of(path)) for path in paths]
    connection = database.connect(make=True)
    output = []
    for path, name, data in contents:
        before = database.content(connection, name)
        if before == data:
            output.append(f"{path}: unchanged\n")
            continue
        replacing = "" if before is None else f", replacing {len(read(name, before))}"
        output.append(f"{path}: {len(read(name, data))} observations{replacing}\n")
        database.store(connection, name, data)
    connection.commit()
    return output


def contents_of(path):
    if kind_of(os.path.basename(path)) not in KINDS:
        raise Refused(f"{path}: unknown kind of file")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise Refused(f"{path}: cannot read") from None


def print_list(words):
    expect(not words)
    return listings.list_lines(observations(database.connect()))


def observations(connection):
    """Return all observations, night by night; of one moment in the order of their files."""
    found = [each for name, data, _ in database.files(connection) for each in read(name, data)]
    return sorted(found, key=lambda each: each[:3])


def expect(condition):
    if not condition:
        raise WrongCall


COMMANDS = {"import": import_files, "list": print_list}
