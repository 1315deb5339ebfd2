"""Importing files of Aqua."""

import pytest
from files import aqua

GOOD = aqua("W-1;2024-01-01 00:00;12,5", "W-2;2024-01-01 08:15;815", "W-1;2024-02-01 00:00;13,25")


@pytest.mark.requirement("import", kind="core")
def test_new_readings(office):
    """Each file is named as it was typed, with the number of its new readings, in the order of the call."""
    other = aqua("W-3;2024-01-01 00:00;0,001")
    assert office.run("import", "./b.csv", "a.csv", a=GOOD, b=other) == (
        0,
        "./b.csv: 1 new, 0 changed\na.csv: 3 new, 0 changed\n",
        "",
    )


@pytest.mark.requirement("readings", kind="core")
def test_view(office):
    """The view has meter, kind, moment in UTC and whole litres, in this order."""
    office.load(GOOD)
    rows = office.rows("SELECT * FROM readings ORDER BY meter, at")
    assert [list(row) for row in rows] == [["meter", "kind", "at", "value"]] * 3
    assert [tuple(row.values()) for row in rows] == [
        ("W-1", "water", "2024-01-01T00:00:00Z", 12500),
        ("W-1", "water", "2024-02-01T00:00:00Z", 13250),
        ("W-2", "water", "2024-01-01T08:15:00Z", 815000),
    ]


@pytest.mark.requirement("import-again", kind="core")
def test_same_file_again(office):
    """A file that is imported once more, in the same call or later, brings nothing."""
    assert office.run("import", "a.csv", "a.csv", a=GOOD)[1] == "a.csv: 3 new, 0 changed\na.csv: 0 new, 0 changed\n"
    assert office.run("import", "a.csv")[1] == "a.csv: 0 new, 0 changed\n"
    assert office.values("SELECT count(*) FROM readings") == [(3,)]


@pytest.mark.requirement("replace", kind="core")
def test_later_file_replaces(office):
    """A value that a later file has for the same moment replaces the earlier one, and is counted as changed."""
    office.load(GOOD)
    corrected = aqua("W-1;2024-01-01 00:00;12,7", "W-1;2024-01-02 00:00;12,8", "W-2;2024-01-01 08:15;815,000")
    assert office.run("import", "a.csv", a=corrected)[1] == "a.csv: 1 new, 1 changed\n"
    assert office.values("SELECT value FROM readings WHERE meter = 'W-1' ORDER BY at") == [(12700,), (12800,), (13250,)]


@pytest.mark.requirement("replace-lower", kind="boundary", retired="round-5")
def test_last_imported_counts(office):
    """What was imported last counts, also where the value is lower than the one before."""
    office.load(GOOD)
    corrected = aqua("W-1;2024-01-01 00:00;12,1")
    assert office.run("import", "b.csv", b=corrected)[1] == "b.csv: 0 new, 1 changed\n"
    assert office.values("SELECT min(value) FROM readings") == [(12100,)]


@pytest.mark.requirement("replace", kind="boundary")
def test_lower_line_replaces(office):
    """Further down in the same file counts, and one moment is one new reading."""
    text = aqua("W-1;2024-01-01 00:00;12,5", "W-1;2024-01-01 00:00;12,4", "W-1;2024-01-01 00:00;12,3")
    assert office.run("import", "a.csv", a=text)[1] == "a.csv: 1 new, 0 changed\n"
    assert office.values("SELECT value FROM readings") == [(12300,)]


@pytest.mark.requirement("aqua", kind="boundary")
def test_empty_lines_and_letters(office):
    """Empty lines mean nothing, the last line needs no line feed, and a meter's name may be any text."""
    text = aqua("Zähler 7/ß;2024-02-29 23:59;0,5", "", "", "W-2;2024-12-31 00:00;00815").rstrip("\n")
    assert office.run("import", "a.csv", a=text)[1] == "a.csv: 2 new, 0 changed\n"
    assert office.values("SELECT meter, at, value FROM readings ORDER BY value") == [
        ("Zähler 7/ß", "2024-02-29T23:59:00Z", 500),
        ("W-2", "2024-12-31T00:00:00Z", 815000),
    ]


@pytest.mark.requirement("all-or-nothing", kind="error", retired="round-6")
def test_line_that_cannot_be_read(office):
    """The first line that cannot be read is named, and nothing of the call is imported."""
    lines = {
        "few": "W-1;2024-01-01 00:00",
        "many": "W-1;2024-01-01 00:00;1;2",
        "meter": ";2024-01-01 00:00;1",
        "day": "W-1;2024-02-30 00:00;1",
        "time": "W-1;2024-01-01 24:30;1",
        "letters": "W-1;2024-01-01 00:00;81a",
        "decimals": "W-1;2024-01-01 00:00;1,2345",
        "negative": "W-1;2024-01-01 00:00;-1",
        "value": "W-1;2024-01-01 00:00;",
    }
    files = {name: aqua("W-9;2024-01-01 00:00;1", "", line, "also wrong") for name, line in lines.items()}
    answers = office.each(*(f"import b.csv {name}.csv" for name in files), b=aqua("W-8;2024-01-01 00:00;1"), **files)
    assert answers == [(1, "", f"error: {name}.csv:5: cannot read") for name in files]
    assert office.run("import", "b.csv", "value.csv", value=GOOD)[1].splitlines() == [
        "b.csv: 1 new, 0 changed",
        "value.csv: 3 new, 0 changed",
    ]
    assert office.values("SELECT count(*) FROM readings") == [(4,)]


@pytest.mark.requirement("import-error", kind="error")
def test_file_that_cannot_be_read(office):
    """A file of no known format, or that is not there, is named, and nothing of the call is imported."""
    files = {
        "other": b"Meter,Read at,m3\nW-1,2024-01-01 00:00,1\n",
        "empty": b"",
        "late": b"# Meter\nW-1;2024-01-01 00:00;1\nMeter;Read at;m3\n",
        "bytes": bytes(range(256)),
    }
    calls = [f"import b.csv {name}.csv" for name in [*files, "nothing"]]
    answers = office.each(*calls, b=aqua("W-8;2024-01-01 00:00;1"), **files)
    unknown = [(1, "", f"error: {name}.csv: unknown format") for name in files]
    assert answers == [*unknown, (1, "", "error: nothing.csv: cannot read")]
    assert office.run("import", "b.csv")[1] == "b.csv: 1 new, 0 changed\n"
