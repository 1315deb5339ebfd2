"""Readings and the files they come in."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """What a station reports: degrees, and metres per second where they are known."""

    station: str
    time: str
    temperature: float
    wind: int | None


def parse(line):
    """The reading in a line; raises ValueError for a line that is none."""
    station, time, temperature, wind = line.split()
    return Reading(station, time, float(temperature), None if wind == "-" else int(wind))


def read(path):
    """The readings in a file."""
    with open(path, encoding="utf-8") as file:
        return [parse(line) for line in file if line.strip()]
