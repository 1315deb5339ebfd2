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
@pytest.mark.imports(GOOD)
def test_view(seen):
    """The view has meter, kind, moment in UTC and whole litres, in this order."""
    rows = seen.rows("readings", "W-1", "W-2")
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
@pytest.mark.imports(
    aqua("Later-1;2024-01-01 00:00;12,5", "Later-2;2024-01-01 08:15;815", "Later-1;2024-02-01 00:00;13,25"),
    aqua("Later-1;2024-01-01 00:00;12,7", "Later-1;2024-01-02 00:00;12,8", "Later-2;2024-01-01 08:15;815,000"),
)
def test_later_file_replaces(seen):
    """A value that a later file has for the same moment replaces the earlier one, and is counted as changed."""
    assert seen.imported() == ["1 new, 1 changed"]
    assert seen.values("readings", "value", "Later-1") == [(12700,), (12800,), (13250,)]


@pytest.mark.requirement("replace-lower", kind="boundary", retired="round-5")
@pytest.mark.imports(
    aqua("Last;2024-01-01 00:00;12,5", "Last;2024-02-01 00:00;13,25"), aqua("Last;2024-01-01 00:00;12,1")
)
def test_last_imported_counts(seen):
    """What was imported last counts, also where the value is lower than the one before."""
    assert seen.imported() == ["0 new, 1 changed"]
    assert seen.values("readings", "value", "Last") == [(12100,), (13250,)]


@pytest.mark.requirement("replace", kind="boundary")
@pytest.mark.imports(aqua(*(f"Lower;2024-01-01 00:00;{value}" for value in ("12,5", "12,4", "12,3"))))
def test_lower_line_replaces(seen):
    """Further down in the same file counts, and one moment is one new reading."""
    assert seen.imported() == ["1 new, 0 changed"]
    assert seen.values("readings", "value", "Lower") == [(12300,)]


@pytest.mark.requirement("aqua", kind="boundary")
@pytest.mark.imports(aqua("Zähler 7/ß;2024-02-29 23:59;0,5", "", "", "Empty;2024-12-31 00:00;00815").rstrip("\n"))
def test_empty_lines_and_letters(seen):
    """Empty lines mean nothing, the last line needs no line feed, and a meter's name may be any text."""
    assert seen.imported() == ["2 new, 0 changed"]
    assert seen.values("readings", "at value", "Zähler 7/ß") == [("2024-02-29T23:59:00Z", 500)]
    assert seen.values("readings", "at value", "Empty") == [("2024-12-31T00:00:00Z", 815000)]


@pytest.mark.requirement("all-or-nothing", kind="error", retired="round-6")
def test_line_that_cannot_be_read(office):
    """The first line that cannot be read is named, and nothing of the call is imported."""
    lines = {
        "many": "W-1;2024-01-01 00:00;1;2",
        "day": "W-1;2024-02-30 00:00;1",
        "decimals": "W-1;2024-01-01 00:00;1,2345",
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
        "empty": b"",
        "late": b"# Meter\nW-1;2024-01-01 00:00;1\nMeter;Read at;m3\n",
        "bytes": bytes(range(256)),
    }
    calls = [f"import b.csv {name}.csv" for name in [*files, "nothing"]]
    answers = office.each(*calls, b=aqua("W-8;2024-01-01 00:00;1"), **files)
    unknown = [(1, "", f"error: {name}.csv: unknown format") for name in files]
    assert answers == [*unknown, (1, "", "error: nothing.csv: cannot read")]
    assert office.run("import", "b.csv")[1] == "b.csv: 1 new, 0 changed\n"
