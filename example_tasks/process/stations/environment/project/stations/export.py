"""Readings for other programs."""


def csv_lines(readings):
    """All readings as CSV, a line each, with a header."""
    rows = [f"{reading[0]},{reading[1]},{reading[2]:.1f},{reading[3]}" for reading in readings]
    return ["station,time,temperature,wind", *rows]
