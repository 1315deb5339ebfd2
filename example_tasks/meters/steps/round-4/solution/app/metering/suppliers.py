"""The files of the suppliers and of the workshop."""

import csv
import re
from collections import namedtuple
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from .calendar import moment
from .errors import Refused

# How much of what is stored one of a unit is.
UNITS = {
    "kWh": ("power", 1000),
    "MWh": ("power", 1_000_000),
    "Wh": ("power", 1),
    "m3": ("water", 1000),
    "l": ("water", 1),
}

Reading = namedtuple("Reading", "meter at kind value")
Exchange = namedtuple("Exchange", "meter at old new")
Record = Reading | Exchange


def read_file(name: str, content: bytes) -> list[Record]:
    """Return what a file has, in its order."""
    try:
        header, lines, read_line = _recognise(content)
    except ValueError:
        raise Refused(f"{name}: unknown format") from None
    records: list[Record] = []
    for number, line in enumerate(lines[header + 1 :], header + 2):
        if line:
            try:
                record = read_line(line)
                if not record.meter:
                    raise ValueError(line)
            except (ValueError, csv.Error):
                raise Refused(f"{name}:{number}: cannot read") from None
            records.append(record)
    return records


def _recognise(content: bytes) -> tuple[int, list[str], Callable[[str], Record]]:
    """Return the index of the line above the readings, all lines, and what reads one.

    A ValueError where it is no file of ours.
    """
    if content.startswith(b'"Volt Netz"'):
        lines = re.split(r"\r?\n", content.decode("latin-1"))
        header = next((index for index, line in enumerate(lines) if line.startswith('"Zähler"')), -1)
        tops = dict(row[:2] for row in csv.reader(lines[: max(0, header)]) if len(row) > 1)
        zone = tops.get("Zeitzone", "")
        if header < 0 or not re.fullmatch(r"[+-]\d\d:\d\d", zone, re.ASCII):
            raise ValueError(header)
        return header, lines, lambda line: _volt(line, zone)
    lines = re.split(r"\r?\n", content.decode("utf-8-sig", "replace"))
    if lines[0] == "Norda\treadings":
        return lines.index("meter\tat\tvalue\tunit"), lines, _norda
    if lines[0] == "meter,at,old,new":
        return 0, lines, _workshop
    header = next((index for index, line in enumerate(lines) if not line.startswith("#")), 0)
    if lines[header] != "Meter;Read at;m3":
        raise ValueError(header)
    return header, lines, _aqua


def _aqua(line: str) -> Reading:
    meter, at, value = line.split(";")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", at, re.ASCII):
        raise ValueError(at)
    return Reading(meter, moment(at), "water", thousandths(value, ","))


def _volt(line: str, zone: str) -> Reading:
    meter, day, time, value = _fields(line)
    if not re.fullmatch(r"\d\d\.\d\d\.\d{4} \d\d:\d\d", f"{day} {time}", re.ASCII):
        raise ValueError(line)
    at = datetime.fromisoformat(f"{day[6:]}-{day[3:5]}-{day[:2]} {time}{zone}")
    return Reading(meter, int(at.timestamp()), "power", thousandths(value, "."))


def _norda(line: str) -> Reading:
    meter, at, value, unit = line.split("\t")
    if unit not in UNITS or not re.fullmatch(r"(\d{1,3}(\.\d{3})+|\d+)(,\d+)?", value, re.ASCII):
        raise ValueError(line)
    kind, factor = UNITS[unit]
    amount = Decimal(value.replace(".", "").replace(",", ".")) * factor
    if amount != int(amount):
        raise ValueError(line)
    return Reading(meter, _moment_with_zone(at), kind, int(amount))


def _workshop(line: str) -> Exchange:
    meter, at, old, new = _fields(line)
    return Exchange(meter, _moment_with_zone(at), thousandths(old, "."), thousandths(new, "."))


def _fields(line: str) -> list[str]:
    (row,) = csv.reader([line], strict=True)
    return row


def _moment_with_zone(text: str) -> int:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", text, re.ASCII):
        raise ValueError(text)
    return int(datetime.fromisoformat(text).timestamp())


def thousandths(text: str, point: str) -> int:
    match = re.fullmatch(rf"(\d+)(?:[{point}](\d{{1,3}}))?", text, re.ASCII)
    if match is None:
        raise ValueError(text)
    return int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0"))
