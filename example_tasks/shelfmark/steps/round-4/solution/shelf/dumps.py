"""Dumps of BIBLIO: files, records and what their fields mean."""

import datetime
import os
import re

_HEAD = re.compile(rb"BIBLIO ([0-9]+\.[0-9]+) ([A-Z]+) ([0-9]+)")
_DAY = re.compile(r"([0-9]{2})\.([0-9]{2})\.([0-9]{4}|[0-9]{2})")
_SIG = re.compile(r"([A-Za-z]{2,3}) +([1-9][0-9]{0,3})")
FIELDS = {"MEMBERS": 6, "TITLES": 5, "LOANS": 4}
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


def sig(text: str) -> str:
    """Return the shelf mark of a title."""
    match = _SIG.fullmatch(text)
    if match is None:
        raise Rejected("sig")
    return f"{match[1].upper()} {match[2]}"


def year(text: str) -> int | None:
    if text and not re.fullmatch(r"[0-9]{4}", text):
        raise Rejected("year")
    return int(text) if text else None


def copies(text: str) -> int:
    if text and not (re.fullmatch(r"[0-9]{1,2}", text) and int(text)):
        raise Rejected("copies")
    return int(text or 1)


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


def born(text: str, since: datetime.date) -> datetime.date | None:
    """Return a day of birth, which is not after the day of joining."""
    found = day(text, needed=False)
    if found is not None and found > since and len(text) == 8:
        try:
            return found.replace(year=found.year - 100)
        except ValueError:
            raise Rejected("date") from None
    return found


def contacts(phone: str) -> list[tuple[str, str]]:
    """Return the contacts in a PHONE, each with its kind."""
    found = []
    for part in phone.split(","):
        text = part.strip(" ")
        value = re.sub(r"[ /.()-]", "", text.replace("(0)", ""))
        if value.startswith("00"):
            value = "+" + value[2:]
        elif value.startswith("0"):
            value = "+49" + value[1:]
        elif not value.startswith("+"):
            value = "+492736" + value
        contact = ("phone", value) if re.fullmatch(r"\+[0-9]{7,15}", value) else ("note", text)
        if text and contact not in found:
            found.append(contact)
    return found
