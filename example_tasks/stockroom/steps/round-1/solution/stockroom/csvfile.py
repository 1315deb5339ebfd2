"""CSV files that are read strictly and written whole."""

import csv
import os

from stockroom.errors import DataError


def line(fields):
    """The fields as one CSV record, without its line feed."""
    return ",".join(quoted(str(field)) for field in fields)


def quoted(text):
    # csv.writer of Python 3.11 leaves a lone carriage return unquoted, and then reads it as the end of the record.
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def read(path, columns, convert):
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
                if len(fields) != columns:
                    raise ValueError(fields)
                records.append(convert(*fields))
        except UnicodeDecodeError:
            raise DataError(f"{name}: not valid UTF-8") from None
        except (csv.Error, ValueError):
            raise DataError(f"{name} line {begin}: cannot read record") from None


def write(path, header, rows):
    """Puts a complete new file in the place of the old one."""
    text = "".join(line(row) + "\n" for row in [header, *rows])
    beside = path + ".new"
    with open(beside, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
