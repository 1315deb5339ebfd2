"""The files of the suppliers."""

import re
from collections import namedtuple

from .calendar import moment
from .errors import Refused

Reading = namedtuple("Reading", "meter at kind value")


def read_file(name: str, content: bytes) -> list[Reading]:
    """Return the readings of a file, in its order."""
    lines = content.decode("utf-8", "replace").split("\n")
    header = next((number for number, line in enumerate(lines) if not line.startswith("#")), None)
    if header is None or lines[header] != "Meter;Read at;m3":
        raise Refused(f"{name}: unknown format")
    readings = []
    for number, line in enumerate(lines[header + 1 :], header + 2):
        if line:
            try:
                readings.append(_aqua(line))
            except ValueError:
                raise Refused(f"{name}:{number}: cannot read") from None
    return readings


def _aqua(line: str) -> Reading:
    meter, at, value = line.split(";")
    if not meter:
        raise ValueError(line)
    if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", at, re.ASCII):
        raise ValueError(at)
    return Reading(meter, moment(at), "water", thousandths(value, ","))


def thousandths(text: str, point: str) -> int:
    match = re.fullmatch(rf"(\d+)(?:[{point}](\d{{1,3}}))?", text, re.ASCII)
    if match is None:
        raise ValueError(text)
    return int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0"))
