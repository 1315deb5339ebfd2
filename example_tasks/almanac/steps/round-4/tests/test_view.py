"""The view `observations`, which other programs read."""

from ast import literal_eval

import pytest
from records import Records, card, cards, in_order, load, log, moment, table
from steps import select, take_over

FILES = {
    "a.crd": cards(
        "* x",
        card("1", "310103", "2210", "Bärenhüter", "MÜL", "<9.5", "2", "für"),
        "+ Jörg",
        card("2", "310103", "0010", "x", "HA", "", ""),
    ),
    "b.log": log("", "3;28.02.2\\", "008;00:10;a long name \xe4 star;MORE;3,4;1.5;a; b", "4;31.12.2007;00:10;x;HA;9;1"),
    "c.tsv": table("5|2012-03-01T00:15|χ Cyg|ÅSÖÅ|5.2|30| x", "|y"),
}


@pytest.mark.requirement("view", kind="core")
def test_rows(almanac):
    """A row has the night, the moment, whole texts, the numbers as numbers, and the place of the observation."""
    names = "night, ut, object, observer, magnitude, seconds, number, file, line, note"
    query = select(f"SELECT {names} FROM observations ORDER BY number")
    assert literal_eval(almanac.prints(load(FILES), query, files=FILES)[1]) == [
        ("2003-01-31", "2003-01-31T22:10", "Bärenhüter", "MÜL", "<9.5", 120, "1", "a.crd", 2, "für Jörg"),
        ("2003-01-31", "2003-02-01T00:10", "x", "HA", "", 0, "2", "a.crd", 4, ""),
        ("2008-02-28", "2008-02-29T00:10", "a long name ä star", "MORE", "3.4", 90, "3", "b.log", 2, "a; b"),
        ("2007-12-31", "2008-01-01T00:10", "x", "HA", "9", 60, "4", "b.log", 4, ""),
        ("2012-02-29", "2012-03-01T00:15", "χ Cyg", "ÅSÖÅ", "5.2", 30, "5", "c.tsv", 2, "x y"),
    ]


@pytest.mark.requirement("view", kind="boundary")
def test_after_each_import(almanac):
    """After each import the view has what is there now, and equal observations as often as they are there."""
    twice = ["1;01.05.2006;22:10;x;HA;9;1"] * 2
    files = {
        "a.log": log(*twice),
        "more/a.log": log(*twice, "# x", "2;01.05.2006;22:10;x;HA;9;1"),
        "b.log": log("3;01.05.2006;22:10;x;HA;9;1"),
    }
    query = select("SELECT number, file, line FROM observations ORDER BY file, line")
    rows = almanac.prints(*(f"import {name}" for name in files), query, files=files)[-1]
    assert literal_eval(rows) == [("1", "a.log", 1), ("1", "a.log", 2), ("2", "a.log", 4), ("3", "b.log", 1)]


@pytest.mark.requirement("view", kind="integration")
def test_many_observations(almanac):
    """Of many observations each has its row, with the line in which it begins; all other lines are left over."""
    records = Records(41)
    query = select("SELECT * FROM observations ORDER BY night, ut, file, line")
    _, rows, leftovers = almanac.prints(load(records.files), query, "leftovers", files=records.files)
    assert literal_eval(rows) == [
        (
            each.night,
            moment(each),
            each.name,
            each.observer,
            each.magnitude,
            each.seconds,
            each.number,
            each.file,
            each.line,
            each.note,
        )
        for each in in_order(records.seen)
    ]
    assert leftovers == "".join(records.leftovers)


@pytest.mark.requirement("take-over-view", kind="integration")
@pytest.mark.parametrize("database", ["almanac.db", "backups/1.db"])
def test_an_older_database(almanac, database):
    """The first command, whichever it is, gives a database of an earlier version its view."""
    query = select(
        "SELECT number, ut, night, line, magnitude FROM observations"
        " WHERE number IN ('0122', '0303', '0304') ORDER BY 1"
    )
    value = "8.6" if database == "almanac.db" else "8.4"
    assert literal_eval(almanac.prints(take_over(database), "nights", query)[-1]) == [
        ("0122", "2006-03-05T00:20", "2006-03-04", 5, "6.9"),
        ("0303", "2010-07-03T23:30", "2010-07-03", 5, value),
        ("0304", "2010-07-04T00:45", "2010-07-03", 6, "8.3"),
    ]
