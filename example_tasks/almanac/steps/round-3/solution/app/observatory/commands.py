"""The commands, as they are typed."""

import os
import sys

from . import database, listings
from .errors import Refused, WrongCall
from .files import KINDS, is_date, kind_of, read

USAGE = (
    "usage: almanac import FILE...\n"
    "usage: almanac list [--from NIGHT] [--to NIGHT]\n"
    "usage: almanac object NAME\n"
    "usage: almanac nights\n"
    "usage: almanac export DIRECTORY"
)


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
    sys.stdout.buffer.write("".join(output).encode())
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
    options = options_of(words, "--from", "--to")
    first, last = options.get("--from", ""), options.get("--to", "9999-99-99")
    expect(all(is_date(night) for night in options.values()))
    return listings.list_lines(each for each in observations(database.connect()) if first <= each.night <= last)


def print_object(words):
    expect(len(words) == 1)
    return listings.object_lines(observations(database.connect()), words[0])


def print_nights(words):
    expect(not words)
    return listings.night_lines(observations(database.connect()))


def export(words):
    expect(len(words) == 1)
    contents = {os.path.join(words[0], name): data for name, data, _ in database.files(database.connect())}
    for path, data in sorted(contents.items()):
        if os.path.lexists(path) and (not os.path.isfile(path) or contents_of(path) != data):
            raise Refused(f"{path}: is there already")
    os.makedirs(words[0], exist_ok=True)
    for path, data in contents.items():
        with open(path, "wb") as file:
            file.write(data)
    return []


def observations(connection):
    """Return all observations, night by night; of one moment in the order of their files."""
    found = [each for name, data, _ in database.files(connection) for each in read(name, data)]
    return sorted(found, key=lambda each: each[:3])


def options_of(words, *names):
    """Return the values that follow options, each of which may be there once."""
    options = dict(zip(words[::2], words[1::2], strict=False))
    expect(len(words) == 2 * len(options) and all(name in names for name in options))
    return options


def expect(condition):
    if not condition:
        raise WrongCall


COMMANDS = {
    "import": import_files,
    "list": print_list,
    "object": print_object,
    "nights": print_nights,
    "export": export,
}
