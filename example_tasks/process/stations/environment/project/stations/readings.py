"""Readings: (station, time, temperature, wind)."""


def parse(line):
    """The reading in a line; raises ValueError for a line that is none."""
    station, time, temperature, wind = line.split()
    return station, time, float(temperature), int(wind)


def read(path):
    """The readings in a file."""
    with open(path, encoding="utf-8") as file:
        return [parse(line) for line in file if line.strip()]
