"""Exposures as they should be."""

import pytest
from records import Records, card, cards, in_order, listing, log, moment, table


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
    almanac.load(
        {
            "a.log": log(*texts),
            "b.crd": cards(card("1", "010606", "2210", "x", "HA", "9", "4,1")),
            "c.tsv": table("2|2006-07-01T20:15|x|HA|9|2,5|"),
        }
    )
    seconds = [*minutes.values(), *exact.values(), 246, 3]
    assert [int(line[40:46]) for line in almanac.prints("list").splitlines()] == seconds
    assert almanac.rows("SELECT seconds FROM observations ORDER BY ut") == [(each,) for each in seconds]
    assert almanac.prints("nights").splitlines()[1:] == ["2006-06-01    1     246s", "2006-07-01    1       3s"]


@pytest.mark.requirement("minutes", kind="integration")
def test_many_observations(almanac):
    """Whatever the files have, the list and the view have it in the end as the user wants it."""
    records = Records(61, wild=True)
    almanac.load(records.files)
    assert almanac.prints_bytes("list").decode() == listing(records.seen)
    assert almanac.rows("SELECT ut, object, seconds, note FROM observations ORDER BY night, ut, file, line") == [
        (moment(each), each.name, each.seconds, each.note) for each in in_order(records.seen)
    ]


@pytest.mark.requirement("take-over-minutes", kind="integration")
def test_an_older_database(almanac):
    """What is in the user's database is right after any command, and a file in it may grow."""
    almanac.take_over()
    almanac.prints("leftovers")
    assert almanac.rows(
        "SELECT seconds FROM observations WHERE number IN ('0003', '0121', '0305') ORDER BY number"
    ) == [(246,), (150,), (90,)]
    almanac.prints("export", "out")
    grown = almanac.exported(["2003.crd"])["2003.crd"].replace(b"4.1", b"4,1") + cards(
        card("0010", "311203", "0050", "x", "HA", "9", "1")
    )
    assert almanac.load({"2003.crd": grown}) == "2003.crd: 10 observations, replacing 9\n"
