"""Consumption month by month."""

import pytest
from files import aqua

EXACT = aqua(
    "W-2;2024-01-01 00:00;100",
    "W-10;2024-01-01 00:00;7,5",
    "W-10;2024-02-01 00:00;7,5",
    "W-2;2024-01-20 12:00;101,111",
    "W-2;2024-02-01 00:00;103,25",
    "W-2;2024-03-01 00:00;110",
    "b-1;2024-02-01 00:00;4",
    "b-1;2024-03-01 00:00;5",
)
SELDOM = aqua("W-3;2023-12-28 10:30;4310", "W-3;2024-01-31 09:00;4322,75", "W-3;2024-02-29 16:00;4330,5")


@pytest.mark.requirement("report", kind="core")
def test_months(office):
    """Each meter has a line, in plain character order, with litres between the beginnings of two months."""
    office.load(EXACT)
    assert office.report("2024-01") == ["W-10 water 0 l", "W-2 water 3250 l", "b-1 water - l"]


@pytest.mark.requirement("report", kind="boundary", retired="round-3")
def test_months_without_readings(office):
    """Where the next readings are missing a meter showed what it had shown last."""
    office.load(EXACT)
    assert office.each("report 2024-02", "report 2024-07") == [
        (0, "W-10 water 0 l\nW-2 water 6750 l\nb-1 water 1000 l", ""),
        (0, "W-10 water 0 l\nW-2 water 0 l\nb-1 water 0 l", ""),
    ]


@pytest.mark.requirement("report-last", kind="core", retired="round-3")
def test_last_reading_counts(office):
    """What was shown last until the beginning and until the end of the month counts."""
    office.load(SELDOM)
    assert office.each("report 2023-12", "report 2024-01", "report 2024-02") == [
        (0, "W-3 water - l", ""),
        (0, "W-3 water 12750 l", ""),
        (0, "W-3 water 7750 l", ""),
    ]


@pytest.mark.requirement("report", kind="boundary")
def test_end_of_a_year(office):
    """December ends with the year."""
    office.load(aqua("W-1;2024-01-01 00:00;3", "W-1;2023-12-01 00:00;1"))
    assert office.report("2023-12") == ["W-1 water 2000 l"]


@pytest.mark.requirement("report-error", kind="error")
def test_no_database(office):
    """Without a database there is a message, and none is made."""
    assert office.each("report 2024-01", "report 2024-01") == [(1, "", "error: no meters.db")] * 2


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(office):
    """What is no call prints how to call it, and nothing else."""
    calls = ["", "import", "report", "report 2024-13", "report 2024-1", "report 2024-01-01", "reports 2024-01"]
    for status, output, errors in office.each(*calls):
        assert (status, output) == (2, "")
        assert "usage:" in errors
