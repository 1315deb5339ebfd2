"""The stock in stock.csv and moves.csv: read at once, checked strictly, written whole."""

import csv
import os

from stockroom import money
from stockroom.errors import DataError
from stockroom.records import Item, Move


class CsvStore:
    def __init__(self, directory):
        self.stock_path = os.path.join(directory, "stock.csv")
        self.moves_path = os.path.join(directory, "moves.csv")
        self.items = {item.sku: item for item in read(self.stock_path, Item, to_item)}
        self.booked = read(self.moves_path, Move, to_move)

    def find(self, sku):
        return self.items.get(sku)

    def all(self):
        return [self.items[sku] for sku in sorted(self.items)]

    def put(self, item):
        self.items[item.sku] = item

    def record(self, move):
        self.booked.append(move)

    def moves(self, sku):
        return [move for move in self.booked if move.sku == sku]

    def save(self):
        write(self.stock_path, Item, [item_fields(item) for item in self.all()])
        if self.booked:
            write(self.moves_path, Move, self.booked)

    def close(self):
        pass


def to_item(sku, name, qty, price, location):
    return Item(sku, name, int(qty), money.parse(price), location)


def to_move(at, sku, delta, note):
    return Move(at, sku, int(delta), note)


def item_fields(item):
    return item._replace(price=money.render(item.price))


def line(fields):
    """The fields as one CSV record, without its line feed."""
    return ",".join(quoted(str(field)) for field in fields)


def quoted(text):
    # csv.writer of Python 3.11 leaves a lone carriage return unquoted, and then reads it as the end of the record.
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def read(path, record, convert):
    """What `convert(*fields)` makes of each record below the header; a missing file has none."""
    if not os.path.exists(path):
        return []
    records = []
    name = os.path.basename(path)
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        begin = 1
        try:
            next(reader, None)
            while True:
                begin = reader.line_num + 1
                fields = next(reader, None)
                if fields is None:
                    return records
                if not fields:
                    continue
                if len(fields) != len(record._fields):
                    raise ValueError(fields)
                records.append(convert(*fields))
        except UnicodeDecodeError:
            raise DataError(f"{name}: not valid UTF-8") from None
        except (csv.Error, ValueError):
            raise DataError(f"{name} line {begin}: cannot read record") from None


def write(path, record, rows):
    """Puts a complete new file in the place of the old one."""
    text = "".join(line(row) + "\n" for row in [record._fields, *rows])
    beside = path + ".new"
    with open(beside, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
