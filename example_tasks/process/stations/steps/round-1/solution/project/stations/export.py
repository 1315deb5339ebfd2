"""Readings for other programs."""


def csv_lines(readings):
    """All readings as CSV, a line each, with a header."""
    return ["station,time,temperature,wind", *map(csv_line, readings)]


def csv_line(reading):
    """A reading as a line of CSV."""
    wind = "" if reading.wind is None else reading.wind
    return f"{reading.station},{reading.time},{reading.temperature:.1f},{wind}"
