"""CSV, read strictly and written with no more quotes than needed."""

import csv
import os

from stockroom import money
from stockroom.errors import DataError, StockError
from stockroom.records import Item, Move


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


def read(path, record, convert, *, check_header=False):
    """What `convert(*fields)` makes of each record below the header; a missing file has none."""
    if not os.path.exists(path):
        return []
    records = []
    name = os.path.basename(path)
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        begin = 1
        try:
            header = next(reader, None)
            if check_header and header != list(record._fields):
                raise DataError(f"{name} line 1: bad header")
            while True:
                begin = reader.line_num + 1
                fields = next(reader, None)
                if fields is None:
                    return records
                if not fields:
                    continue
                if len(fields) != len(record._fields):
                    raise ValueError(fields)
                try:
                    records.append(convert(*fields))
                except StockError as error:
                    raise DataError(f"{name} line {begin}: {error}") from None
        except UnicodeDecodeError:
            raise DataError(f"{name}: not valid UTF-8") from None
        except (csv.Error, ValueError):
            raise DataError(f"{name} line {begin}: cannot read record") from None
