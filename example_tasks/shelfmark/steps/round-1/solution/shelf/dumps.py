"""Dumps of BIBLIO: files, records and what their fields mean."""

import datetime
import os
import re

_HEAD = re.compile(rb"BIBLIO ([0-9]+\.[0-9]+) ([A-Z]+) ([0-9]+)")
_DAY = re.compile(r"([0-9]{2})\.([0-9]{2})\.([0-9]{4}|[0-9]{2})")
_SIG = re.compile(r"([A-Za-z]{2,3}) +([1-9][0-9]{0,3})")
FIELDS = {"MEMBERS": 6}
KINDS = tuple(FIELDS)


class Damaged(Exception):
    """A file is no whole dump."""


class Rejected(Exception):
    """A record cannot be loaded."""


class Dump:
    """A dump as it was written."""

    def __init__(self, path: str) -> None:
        self.file = os.path.basename(path)
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except OSError as error:
            raise Damaged(f"{self.file}: {error.strerror}") from None
        lines = [line.removesuffix(b"\r") for line in data.partition(b"\x1a")[0].split(b"\n")]
        match = _HEAD.fullmatch(lines[0])
        if match is None or match[2].decode() not in KINDS:
            raise Damaged(f"{self.file}: no header of a dump")
        self.head = lines[0].decode()
        self.version = match[1].decode()
        self.kind = match[2].decode()
        self.records = [(number, line) for number, line in enumerate(lines[1:], 2) if line.strip(b" ")]
        if len(self.records) != int(match[3]):
            raise Damaged(f"{self.file}: {len(self.records)} records, not {int(match[3])}")


def fields_of(kind: str, raw: bytes) -> list[str]:
    """Return a record's fields."""
    fields = [field.strip(" ") for field in raw.decode("cp850").split("|")]
    if len(fields) != FIELDS[kind]:
        raise Rejected("fields")
    return fields


def number(text: str) -> int:
    """Return a member's NO."""
    if not re.fullmatch(r"[0-9]{1,6}", text) or not int(text):
        raise Rejected("number")
    return int(text)


def day(text: str, *, needed: bool = True) -> datetime.date | None:
    """Return a day; None for an empty field."""
    if text in ("", "00.00.00"):
        if needed:
            raise Rejected("date")
        return None
    match = _DAY.fullmatch(text)
    if match is None:
        raise Rejected("date")
    year = int(match[3])
    if len(match[3]) == 2:
        year += 2000 if year < 30 else 1900
    try:
        return datetime.date(year, int(match[2]), int(match[1]))
    except ValueError:
        raise Rejected("date") from None
