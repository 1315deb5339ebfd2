"""`list` from one night to another."""

import pytest
from records import Records, in_order, listing, load, log

SOME = log(*(f"{day};{day}.05.2006;{time};x;HA;9;1" for day in ("08", "09", "10") for time in ("22:10", "01:10")))


@pytest.mark.requirement("period", kind="core")
def test_nights(almanac):
    """The nights named are both included, with all that was seen after midnight; either may be missing."""
    calls = {
        "--from 2006-05-09 --to 2006-05-09": ["09", "09"],
        "--to 2006-05-09": ["08", "08", "09", "09"],
        "--from 2006-05-09": ["09", "09", "10", "10"],
        "--to 2008-02-29 --from 2006-05-10": ["10", "10"],
    }
    _, *listed = almanac.prints("import a.log", *(f"list {call}" for call in calls), files={"a.log": SOME})
    assert [[line.split()[-1] for line in each.splitlines()] for each in listed] == [*calls.values()]


@pytest.mark.requirement("period", kind="integration")
def test_many_observations(almanac):
    """Of many observations those of the nights are listed."""
    records = Records(32)
    nights = [each.night for each in in_order(records.seen)]
    first, last = nights[len(nights) // 3], nights[len(nights) // 3 * 2]
    expected = listing(each for each in records.seen if first <= each.night <= last)
    assert almanac.prints(load(records.files), f"list --from {first} --to {last}", files=records.files)[1] == expected


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(almanac):
    """What is no date, or no option, is a wrong call."""
    wrong = ["--from", "--from 2006-02-29", "--to 2006-5-09", "--to 09.05.2006", "2006-05-09"]
    _, *calls = almanac.answers("import a.log", *(f"list {words}" for words in wrong), files={"a.log": SOME})
    assert [call[:2] for call in calls] == [(2, "")] * 5
    assert ["usage:" in call.errors for call in calls] == [True] * 5
