"""Consumption month by month."""

import pytest
from files import aqua


@pytest.mark.requirement("report", kind="core")
@pytest.mark.imports(
    aqua(
        "R-2;2024-01-01 00:00;100",
        "R-10;2024-01-01 00:00;7,5",
        "R-10;2024-02-01 00:00;7,5",
        "R-2;2024-01-20 12:00;101,111",
        "R-2;2024-02-01 00:00;103,25",
        "r-1;2024-02-01 00:00;4",
        "r-1;2024-03-01 00:00;5",
    ),
    asks=["report 2024-01"],
)
def test_months(seen):
    """Each meter has a line, in plain character order, with litres between the beginnings of two months."""
    assert seen.report("2024-01", "R-2", "R-10", "r-1") == ["R-10 water 0 l", "R-2 water 3250 l", "r-1 water - l"]


@pytest.mark.requirement("report", kind="boundary", retired="round-3")
@pytest.mark.imports(
    aqua("Missing-1;2024-01-01 00:00;7,5", "Missing-2;2024-01-01 00:00;7,5", "Missing-2;2024-01-20 12:00;8"),
    asks=["report 2024-01", "report 2024-07"],
)
def test_months_without_readings(seen):
    """Where the next readings are missing a meter showed what it had shown last."""
    meters = ["Missing-1", "Missing-2"]
    assert seen.report("2024-01", *meters) == ["Missing-1 water 0 l", "Missing-2 water 500 l"]
    assert seen.report("2024-07", *meters) == ["Missing-1 water 0 l", "Missing-2 water 0 l"]


@pytest.mark.requirement("report-last", kind="core", retired="round-3")
@pytest.mark.imports(
    aqua("Seldom;2023-12-28 10:30;4310", "Seldom;2024-01-31 09:00;4322,75", "Seldom;2024-02-29 16:00;4330,5"),
    asks=["report 2023-12", "report 2024-01", "report 2024-02"],
)
def test_last_reading_counts(seen):
    """What was shown last until the beginning and until the end of the month counts."""
    amounts = [seen.report(month, "Seldom") for month in ("2023-12", "2024-01", "2024-02")]
    assert amounts == [["Seldom water - l"], ["Seldom water 12750 l"], ["Seldom water 7750 l"]]


@pytest.mark.requirement("report", kind="boundary")
@pytest.mark.imports(aqua("Year;2024-01-01 00:00;3", "Year;2023-12-01 00:00;1"), asks=["report 2023-12"])
def test_end_of_a_year(seen):
    """December ends with the year."""
    assert seen.report("2023-12", "Year") == ["Year water 2000 l"]


@pytest.mark.requirement("report-error", kind="error")
def test_no_database(office):
    """Without a database there is a message, and none is made."""
    status, output, errors = office.run("report", "2024-01")
    assert (status, output, errors) == (1, "", "error: no meters.db\n")
    assert not office.exists()


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(office):
    """What is no call prints how to call it, and nothing else."""
    calls = ["", "import", "report", "report 2024-13", "report 2024-1", "report 2024-01 2024-02", "reports 2024-01"]
    for status, output, errors in office.each(*calls):
        assert (status, output) == (2, "")
        assert "usage:" in errors
