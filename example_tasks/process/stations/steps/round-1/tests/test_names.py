"""Readings have names, and wind may be missing."""

import pytest

READING = """\
from stations.readings import parse

reading = parse("oslo 2024-03-01T06:00 -3.5 4")
"""
POSITIONS = """
def is_refused(use):
    try:
        use()
    except TypeError:
        return True

[is_refused(use) for use in (lambda: reading[2], lambda: len(reading), lambda: [*reading])]
"""
LINES = "oslo 2024-03-01T06:00 -3.5 4", "oslo 2024-03-01T12:00 1.0 21", "bergen 2024-03-01T06:00 4.0 -"


@pytest.mark.requirement("names", kind="core")
def test_names_and_no_positions(workspace):
    """The parts of a reading have names, and none has a position."""
    parts = workspace.python(READING + "[reading.station, reading.time, reading.wind]")
    assert parts == ["oslo", "2024-03-01T06:00", 4]
    assert workspace.python(READING + "parse('oslo 2024-03-01T06:00 1.0 -').wind") is None
    assert workspace.python(READING + POSITIONS) == [True, True, True]


@pytest.mark.requirement("names", kind="core", retired="tenths")
def test_temperature(workspace):
    """The temperature is in degrees."""
    assert workspace.python(READING + "str(reading.temperature)") == "-3.5"


@pytest.mark.requirement("no-wind", kind="core")
def test_reports_with_missing_wind(stations):
    """A missing wind is no storm and an empty field, and all else is as it was."""
    assert stations("alerts", *LINES) == ["oslo 2024-03-01T06:00 frost", "oslo 2024-03-01T12:00 storm"]
    rows = [line.replace(" ", ",") for line in LINES[:2]]
    assert stations("export", *LINES) == ["station,time,temperature,wind", *rows, "bergen,2024-03-01T06:00,4.0,"]


@pytest.mark.requirement("no-wind", kind="boundary")
def test_summary_with_missing_wind(stations):
    """The temperature of a reading without wind counts."""
    assert stations("summary", *LINES, "oslo 2024-03-02T12:00 -2.0 -") == ["bergen 4.0 4.0 4.0", "oslo -3.5 -1.5 1.0"]


@pytest.mark.requirement("own-tests", kind="integration")
def test_own_tests_pass(workspace):
    """The project's own tests pass."""
    done = workspace.run("python3 -m unittest discover -s tests -t .")
    assert done.exit_code == 0, done.stderr
    assert "Ran 0 tests" not in done.stderr
