"""`list` from one night to another."""

import pytest
from records import Records, in_order, listing, log

SOME = log(*(f"{day};{day}.05.2006;{time};x;HA;9;1" for day in ("08", "09", "10") for time in ("22:10", "01:10")))


@pytest.mark.requirement("period", kind="core")
def test_nights(almanac):
    """The nights named are both included, with all that was seen after midnight; either may be missing."""
    almanac.load({"a.log": SOME})
    calls = {
        "--from 2006-05-09 --to 2006-05-09": ["09", "09"],
        "--to 2006-05-09": ["08", "08", "09", "09"],
        "--from 2006-05-09": ["09", "09", "10", "10"],
        "--to 2008-02-29 --from 2006-05-10": ["10", "10"],
    }
    listed = {call: almanac.prints("list", *call.split()).splitlines() for call in calls}
    assert {call: [line.split()[-1] for line in lines] for call, lines in listed.items()} == calls


@pytest.mark.requirement("period", kind="integration")
def test_many_observations(almanac):
    """Of many observations those of the nights are listed."""
    records = Records(32)
    almanac.load(records.files)
    nights = [each.night for each in in_order(records.seen)]
    first, last = nights[len(nights) // 3], nights[len(nights) // 3 * 2]
    expected = listing(each for each in records.seen if first <= each.night <= last)
    assert almanac.prints("list", "--from", first, "--to", last) == expected


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(almanac):
    """What is no date, or no option, is a wrong call."""
    almanac.load({"a.log": SOME})
    words = [
        "--from",
        "--from 2006-02-29",
        "--to 2006-5-09",
        "--to 09.05.2006",
        "2006-05-09",
    ]
    calls = [almanac.run("list", *call.split()) for call in words]
    assert [call[:2] for call in calls] == [(2, "")] * 5
    assert ["usage:" in errors for _, _, errors in calls] == [True] * 5
