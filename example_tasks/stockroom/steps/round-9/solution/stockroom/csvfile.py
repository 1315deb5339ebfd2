"""CSV, read strictly and written with no more quotes than needed."""

import csv
import os

from stockroom import money
from stockroom.errors import DataError
from stockroom.records import Item, Move

# A quote that is never closed makes one field of all the rest, which is part of a record that cannot be read.
csv.field_size_limit(2**31 - 1)


def to_item(sku, name, qty, price, location):
    return Item(sku, name, int(qty), money.parse(price), location)


def to_move(at, sku, delta, note):
    return Move(at, sku, int(delta), note)


def line(fields):
    """The fields as one CSV record, without its line feed."""
    return ",".join(quoted(str(field)) for field in fields)


def quoted(text):
    # csv.writer of Python 3.11 leaves a lone carriage return unquoted, and then reads it as the end of the record.
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def records(path):
    """The first line, the text as it stands and the fields of each record; None for fields that are badly quoted."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        taken = []

        def lines():
            for each in file:
                taken.append(each)
                yield each

        reader = csv.reader(lines(), strict=True)
        while True:
            begin = reader.line_num + 1
            taken.clear()
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error:
                fields = None
            yield begin, "".join(taken), fields


def read(path, record, convert):
    """What `convert(*fields)` makes of each record below the header; a missing file has none."""
    if not os.path.exists(path):
        return []
    name = os.path.basename(path)
    converted = []
    for begin, text, fields in records(path):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise DataError(f"{name}: not valid UTF-8") from None
        try:
            if fields is None or (begin > 1 and len(fields) not in (0, len(record._fields))):
                raise ValueError(fields)
            if fields and begin > 1:
                converted.append(convert(*fields))
        except ValueError:
            raise DataError(f"{name} line {begin}: cannot read record") from None
    return converted
