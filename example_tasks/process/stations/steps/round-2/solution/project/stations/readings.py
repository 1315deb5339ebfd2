"""Readings and the files they come in."""

import re
from dataclasses import dataclass

_TEMPERATURE = re.compile(r"(-?)(\d+)(?:\.(\d))?", re.ASCII)


@dataclass(frozen=True)
class Reading:
    """What a station reports: tenths of a degree, and metres per second where they are known."""

    station: str
    time: str
    tenths: int
    wind: int | None


def parse(line):
    """The reading in a line; raises ValueError for a line that is none."""
    station, time, temperature, wind = line.split()
    return Reading(station, time, parse_tenths(temperature), None if wind == "-" else int(wind))


def parse_tenths(text):
    """A temperature in tenths of a degree; raises ValueError for anything else."""
    match = _TEMPERATURE.fullmatch(text)
    if not match:
        raise ValueError(f"not a temperature: {text}")
    sign, degrees, tenth = match.groups("0")
    tenths = int(degrees) * 10 + int(tenth)
    return -tenths if sign == "-" else tenths


def show_tenths(tenths):
    """Tenths of a degree in degrees."""
    sign = "-" if tenths < 0 else ""
    return f"{sign}{abs(tenths) // 10}.{abs(tenths) % 10}"


def read(path):
    """The readings in a file."""
    with open(path, encoding="utf-8") as file:
        return [parse(line) for line in file if line.strip()]
