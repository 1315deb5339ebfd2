"""`list` from one night to another."""

import pytest
from records import Records, in_order, listing, log

SOME = log(*(f"{day};{day}.05.2006;{time};x;HA;9;1" for day in ("08", "09", "10") for time in ("22:10", "01:10")))


@pytest.mark.requirement("period", kind="core")
@pytest.mark.parametrize(
    ("call", "numbers"),
    [
        ("--from 2006-05-09 --to 2006-05-09", "09 09"),
        ("--to 2006-05-09", "08 08 09 09"),
        ("--from 2006-05-09", "09 09 10 10"),
        ("--to 2006-05-12 --from 2006-05-10", "10 10"),
        ("--from 2006-05-10 --to 2006-05-08", ""),
    ],
    ids=["both", "to", "from", "turned", "none"],
)
def test_nights(almanac, call, numbers):
    """The nights named are both included, with all that was seen after midnight."""
    almanac.load({"a.log": SOME})
    assert [line.split()[-1] for line in almanac.prints("list", *call.split()).splitlines()] == numbers.split()


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
@pytest.mark.parametrize(
    "call",
    [
        "--from",
        "--to 2006-05-09 --from",
        "--from 2006-02-29",
        "--to 2006-5-09",
        "--to 2006-13-01",
        "--to 09.05.2006",
        "--at 2006-05-09",
        "2006-05-09",
    ],
)
def test_wrong_calls(almanac, call):
    """What is no date, or no option, is a wrong call."""
    almanac.load({"a.log": SOME})
    status, output, errors = almanac.run("list", *call.split())
    assert (status, output) == (2, "")
    assert "usage:" in errors
