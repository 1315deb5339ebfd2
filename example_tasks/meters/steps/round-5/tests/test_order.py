"""The order of imports does not matter."""

from itertools import permutations

import pytest
from files import aqua, at, norda, volt
from model import Town, monthly, newest, readings

JANUARY = aqua("Later;2024-02-01 00:00;80,1", issued="2024-02-01 06:00")
FEBRUARY = aqua("Later;2024-02-01 00:00;80,05", issued="2024-03-01 06:00")
ISSUES = [None, at("2024-09-01 00:00"), at("2024-08-01 12:00"), at("2024-09-01 00:00"), at("2025-01-01 00:00")]


@pytest.mark.requirement("issued", kind="core")
@pytest.mark.imports([FEBRUARY, JANUARY], [aqua("Later;2024-02-01 00:00;79", issued="2024-03-01 06:01"), FEBRUARY])
def test_issued_later_counts(seen):
    """The value of the file that was issued later counts, whichever was imported last."""
    assert seen.imported(call=0) == ["1 new, 0 changed", "0 new, 0 changed"]
    assert seen.values("readings", "value", "Later", call=0) == [(80050,)]
    assert seen.imported() == ["0 new, 1 changed", "0 new, 0 changed"]
    assert seen.values("readings", "value", "Later") == [(79000,)]


@pytest.mark.requirement("issued", kind="boundary")
@pytest.mark.imports(
    [
        aqua(f"Between-{number};2024-01-01 00:00;{value}", issued=issued)
        for number, order in enumerate(
            permutations([(5, "2024-02-01 00:00"), (9, "2024-03-01 00:00"), (5, "2024-04-01 00:00")])
        )
        for value, issued in order
    ]
)
def test_same_value_issued_later(seen):
    """A file with the same value as before counts from when it was issued, so one from between changes nothing."""
    assert seen.values("readings", "value", *(f"Between-{number}" for number in range(6))) == [(5000,)] * 6


@pytest.mark.requirement("issued-zone", kind="boundary")
@pytest.mark.imports(
    [
        volt("Clock,01.01.2024,02:00,5", zone="-02:00", issued="01.02.2024 05:00"),  # 7:00 UTC
        volt("Clock,01.01.2024,07:00,6", zone="+03:00", issued="01.02.2024 09:30"),  # 6:30 UTC
    ]
)
def test_issued_by_their_clock(seen):
    """Volt's line is by the clock of the file, so an hour that is later may be an earlier moment."""
    assert seen.values("readings", "at value", "Clock") == [("2024-01-01T04:00:00Z", 5000)]


@pytest.mark.requirement("issued-zone", kind="boundary")
@pytest.mark.imports(
    [
        norda("Issued 2024-01-01T00:00:00Z 5 l", issued="2024-02-01T00:30:00-01:00"),
        norda("Issued 2024-01-01T00:00:00Z 6 l", issued="2024-02-01T01:15:00Z"),
    ]
)
def test_issued_by_norda(seen):
    """Norda's line has its own zone."""
    assert seen.values("readings", "value", "Issued") == [(5,)]


def never(when):
    """Return files that count less than all others, of three meters."""
    return [
        aqua(f"{when}-{number};2024-01-01 00:00;90", f"{when}-{number};2024-01-02 00:00;95", issued=issued)
        for number, issued in enumerate([None, "yesterday", "2024-02-30 00:00"])
    ]


def long_ago(when):
    """Return a file with other values of these meters."""
    return aqua(*(f"{when}-{number};2024-01-01 00:00;80" for number in range(3)), issued="1999-01-01 00:00")


@pytest.mark.requirement("issued-never", kind="boundary")
@pytest.mark.imports([long_ago("After"), *never("After"), *never("Before"), long_ago("Before")])
def test_not_issued(seen):
    """A file that does not say when it was issued counts less than any that does."""
    for when in ("After", "Before"):
        meters = [f"{when}-{number}" for number in range(3)]
        assert seen.values("readings", "value", *meters) == [(80000,), (95000,)] * 3


def together(name, issued):
    """Return a meter, named as the case is, of which files that were issued at the same moment have two values."""
    high, low, low_again, high_again = (
        aqua(f"{name};2024-01-0{day} 00:00;{value}", issued=issued) for day, value in [(1, 10), (1, 9), (2, 9), (2, 10)]
    )
    return pytest.param(name, id=name, marks=pytest.mark.imports([high, low, low_again, high_again]))


@pytest.mark.requirement("issued-together", kind="boundary")
@pytest.mark.parametrize("name", [together("dated", "2024-02-01 06:00"), together("undated", None)])
def test_issued_at_the_same_moment(seen, name):
    """Of files that were issued at the same moment, and of those that say nothing, the higher value counts."""
    assert seen.values("readings", "value", name) == [(10000,), (10000,)]


@pytest.mark.requirement("replace", kind="boundary")
@pytest.mark.imports(
    aqua("Lower line;2024-01-01 00:00;12,5", "Lower line;2024-01-01 00:00;12,3", issued="2024-02-01 00:00")
)
def test_lower_line_of_one_file(seen):
    """Within one file the lower line counts, though its value is less."""
    assert seen.values("readings", "value", "Lower line") == [(12300,)]


def sent_in_any_order(seed):
    """Return a town, with versions of its readings that come in any order in two calls."""
    town = Town(seed, meters=16)
    town.batches = town.versions(ISSUES)
    files = [text for issued, batch in town.batches for text in town.files(batch, issued)]
    town.random.shuffle(files)
    return town.imported(files[:6], files[6:])


@pytest.mark.requirement("order", kind="integration")
@pytest.mark.parametrize("town", [sent_in_any_order(seed) for seed in (31, 32, 33)])
def test_any_order(seen, town):
    """However many files with however many versions are imported in whichever order, the newest versions count."""
    newest_ones = newest(town.batches)
    assert seen.tuples("readings", town.meters) == readings(newest_ones)
    assert seen.tuples("monthly", town.meters) == monthly(newest_ones)


@pytest.mark.requirement("take-over-issued", kind="integration")
def test_an_older_database(office):
    """What was in the user's database before is taken as if no file had said when it was issued."""
    office.take_over()
    office.load(
        aqua("W-1002;2024-02-01 00:00;80", "W-1001;2024-02-01 00:00;818"),
        aqua("W-1001;2024-02-01 00:00;818,1", issued="1999-01-01 00:00"),
        aqua("W-1001;2024-02-01 00:00;999"),
    )
    select = "SELECT value FROM readings WHERE meter IN ('W-1001', 'W-1002') AND at = '2024-02-01T00:00:00Z' ORDER BY 1"
    assert office.values(select) == [(80050,), (818100,)]
