"""Exposures as they should be."""

from ast import literal_eval

import pytest
from records import Records, card, cards, in_order, listing, load, log, moment, table
from scripts import starter_files
from steps import select, take_over


@pytest.mark.requirement("minutes", kind="core")
def test_rounded(almanac):
    """Points and commas are the same, and seconds are rounded, halves up, in files of all kinds."""
    minutes = {
        "4.1": 246,
        "1,5": 90,
        "0.125": 8,
        "0,12499": 7,
        "0.29": 17,
        "2.2 min": 132,
        ",5": 30,
        "7.": 420,
        "x1": 0,
        "": 0,
    }
    exact = {"9.5": 10, "9,49": 9, "10.5": 11, "0.5": 1, "90,5s": 91}
    texts = [
        *(f"{number};01.05.2006;21:{number};x;HA;9;{text}" for number, text in enumerate(minutes, 10)),
        "# exposure s",
        *(f"{number};01.05.2006;22:{number};x;HA;9;{text}" for number, text in enumerate(exact, 10)),
    ]
    files = {
        "a.log": log(*texts),
        "b.crd": cards(card("1", "010606", "2210", "x", "HA", "9", "4,1")),
        "c.tsv": table("2|2006-07-01T20:15|x|HA|9|2,5|"),
    }
    query = select("SELECT seconds FROM observations ORDER BY ut")
    _, listed, rows, nights = almanac.prints(load(files), "list", query, "nights", files=files)
    seconds = [*minutes.values(), *exact.values(), 246, 3]
    assert [int(line[40:46]) for line in listed.splitlines()] == seconds
    assert literal_eval(rows) == [(each,) for each in seconds]
    assert nights.splitlines()[1:] == ["2006-06-01    1     246s", "2006-07-01    1       3s"]


@pytest.mark.requirement("minutes", kind="integration")
def test_many_observations(almanac):
    """Whatever the files have, the list and the view have it in the end as the user wants it."""
    records = Records(61, wild=True)
    query = select("SELECT ut, object, seconds, note FROM observations ORDER BY night, ut, file, line")
    _, listed, rows = almanac.prints(load(records.files), "list", query, files=records.files)
    assert listed == listing(records.seen)
    assert literal_eval(rows) == [(moment(each), each.name, each.seconds, each.note) for each in in_order(records.seen)]


@pytest.mark.requirement("take-over-minutes", kind="integration")
def test_an_older_database(almanac):
    """What is in the user's database is right after any command, and a file in it may grow."""
    query = select("SELECT seconds FROM observations WHERE number IN ('0003', '0121', '0305') ORDER BY number")
    grown = starter_files()["2003.crd"].replace(b"4.1", b"4,1")
    files = {"2003.crd": grown + cards(card("0010", "311203", "0050", "x", "HA", "9", "1"))}
    _, _, rows, printed = almanac.prints(take_over(), "leftovers", query, load(files), files=files)
    assert literal_eval(rows) == [(246,), (150,), (90,)]
    assert printed == "2003.crd: 10 observations, replacing 9\n"
