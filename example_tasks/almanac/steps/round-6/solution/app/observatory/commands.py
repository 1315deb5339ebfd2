"""The commands, as they are typed."""

import os
import re
import sys
from collections import Counter

from . import database, listings
from .errors import Refused, WrongCall
from .files import KINDS, TABLE_TIME, Reader, is_date, kind_of, with_row

USAGE = (
    "usage: almanac import [--replace] FILE...\n"
    "usage: almanac add UT OBJECT OBSERVER MAGNITUDE SECONDS [NOTE]\n"
    "usage: almanac list [--from NIGHT] [--to NIGHT]\n"
    "usage: almanac object NAME\n"
    "usage: almanac nights\n"
    "usage: almanac leftovers\n"
    "usage: almanac doubles\n"
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


ADDED = "almanac.tsv"


def import_files(words):
    replace = words[:1] == ["--replace"]
    paths = words[replace:]
    expect(paths)
    contents = [(path, os.path.basename(path), contents_of(path)) for path in paths]
    connection = database.connect(make=True)
    output = []
    for path, name, data in contents:
        before = database.content(connection, name)
        if before == data:
            output.append(f"{path}: unchanged\n")
            continue
        found, replacing = Reader(name, data).observations, ""
        if before is not None:
            known = Reader(name, before).observations
            lost = (Counter(map(seen, known)) - Counter(map(seen, found))).total()
            if lost and not replace:
                raise Refused(f"{path}: {lost} observations would be lost")
            replacing = f", replacing {len(known)}"
        output.append(f"{path}: {len(found)} observations{replacing}\n")
        database.store(connection, name, data)
    database.refresh(connection)
    connection.commit()
    return output


def seen(observation):
    """Return what the listings show of an observation."""
    return observation._replace(line=None)


def add(words):
    expect(len(words) in (5, 6))
    moment, name, observer, magnitude, exposure, note = (*words, "")[:6]
    expect(TABLE_TIME.fullmatch(moment) and is_date(moment[:10]) and moment[11:13] < "24" and moment[14:] < "60")
    expect(name.strip(" ") and re.fullmatch("[0-9]+", exposure) and not re.search("[\t\r\n]", "".join(words)))
    connection = database.connect(make=True)
    content = database.content(connection, ADDED) or b""
    numbers = (re.fullmatch("A([0-9]+)", each.number) for each in Reader(ADDED, content).observations)
    number = f"A{1 + max((int(match[1]) for match in numbers if match), default=0):04}"
    values = number, moment, name, observer, magnitude, exposure, note
    row = dict(zip(("id", "ut", "object", "observer", "mag", "exp", "note"), values, strict=True))
    database.extend(connection, ADDED, with_row(content, row))
    database.refresh(connection)
    connection.commit()
    return [f"{number}\n"]


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
    contents = {os.path.join(words[0], name): data for name, data in database.contents(database.connect())}
    for path, data in sorted(contents.items()):
        if os.path.lexists(path) and (not os.path.isfile(path) or contents_of(path) != data):
            raise Refused(f"{path}: is there already")
    os.makedirs(words[0], exist_ok=True)
    for path, data in contents.items():
        with open(path, "wb") as file:
            file.write(data)
    return []


def print_leftovers(words):
    expect(not words)
    files = database.files(database.connect())
    return [f"{name}:{number}: {text}\n" for name, file in files for number, text in file.leftovers]


def print_doubles(words):
    expect(not words)
    groups = {}
    for name, each in named_observations(database.connect()):
        if each.number:
            groups.setdefault((each.night, each.number), []).append((name, each))
    output = []
    for _, group in sorted(groups.items()):
        if len({seen(each) for _, each in group}) > 1:
            lines = listings.list_lines(each for _, each in group)
            places = (f"{name}:{each.line}" for name, each in group)
            output += [line.replace("\n", f" {place}\n") for line, place in zip(lines, places, strict=True)]
    return output


def observations(connection):
    return [each for _, each in named_observations(connection)]


def named_observations(connection):
    """Return (file, observation) of all, night by night; of one moment in the order of their files."""
    found = [(name, each) for name, file in database.files(connection) for each in file.observations]
    return sorted(found, key=lambda pair: pair[1][:3])


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
    "add": add,
    "list": print_list,
    "object": print_object,
    "nights": print_nights,
    "export": export,
    "leftovers": print_leftovers,
    "doubles": print_doubles,
}
