"""Moments are seconds since 1970, in UTC; a month is its name, such as 2024-01."""

import re
from datetime import UTC, datetime


def moment(text: str) -> int:
    """Read a moment or a day in UTC, such as "2024-01-01 00:00"; a ValueError where it is none."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def is_month(text: str) -> bool:
    return re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text, re.ASCII) is not None


def next_month(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year + number // 12:04}-{number % 12 + 1:02}"


def beginning(month: str) -> int:
    return moment(f"{month}-01")


def month_of(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")
