"""The order of imports does not matter."""

from itertools import permutations

import pytest
from files import aqua, at, norda, volt
from model import Town, monthly, newest, readings

VALUES = "SELECT value FROM readings ORDER BY at"
JANUARY = aqua("W-1;2024-02-01 00:00;80,1", issued="2024-02-01 06:00")
FEBRUARY = aqua("W-1;2024-02-01 00:00;80,05", issued="2024-03-01 06:00")


@pytest.mark.requirement("issued", kind="core")
def test_issued_later_counts(office):
    """The value of the file that was issued later counts, whichever was imported last."""
    assert (
        office.run("import", "a.csv", "b.csv", a=FEBRUARY, b=JANUARY)[1]
        == "a.csv: 1 new, 0 changed\nb.csv: 0 new, 0 changed\n"
    )
    assert office.values(VALUES) == [(80050,)]
    newer = FEBRUARY.replace("80,05", "79").replace("06:00", "06:01")
    assert office.run("import", "a.csv", "b.csv", "a.csv", b=newer)[1].splitlines()[1:] == [
        "b.csv: 0 new, 1 changed",
        "a.csv: 0 new, 0 changed",
    ]
    assert office.values(VALUES) == [(79000,)]


@pytest.mark.requirement("issued", kind="boundary")
def test_same_value_issued_later(office):
    """A file with the same value as before counts from when it was issued, so one from between changes nothing."""
    issues = [(5, "2024-02-01 00:00"), (9, "2024-03-01 00:00"), (5, "2024-04-01 00:00")]
    office.load(
        *(
            aqua(f"W-{number};2024-01-01 00:00;{value}", issued=issued)
            for number, order in enumerate(permutations(issues))
            for value, issued in order
        )
    )
    assert office.values("SELECT value FROM readings") == [(5000,)] * 6


@pytest.mark.requirement("issued-zone", kind="boundary")
def test_issued_by_their_clock(office):
    """Volt's line is by the clock of the file, so an hour that is later may be an earlier moment."""
    late = volt("P-1,01.01.2024,02:00,5", zone="-02:00", issued="01.02.2024 05:00")  # 7:00 UTC
    early = volt("P-1,01.01.2024,07:00,6", zone="+03:00", issued="01.02.2024 09:30")  # 6:30 UTC
    office.load(late, early)
    assert office.values("SELECT at, value FROM readings") == [("2024-01-01T04:00:00Z", 5000)]


@pytest.mark.requirement("issued-zone", kind="boundary")
def test_issued_by_norda(office):
    """Norda's line has its own zone."""
    late = norda("N-1 2024-01-01T00:00:00Z 5 l", issued="2024-02-01T00:30:00-01:00")
    early = norda("N-1 2024-01-01T00:00:00Z 6 l", issued="2024-02-01T01:15:00Z")
    office.load(late, early)
    assert office.values(VALUES) == [(5,)]


@pytest.mark.requirement("issued-never", kind="boundary")
def test_not_issued(office):
    """A file that does not say when it was issued counts less than any that does."""
    tops = {"W-1": None, "W-2": "yesterday", "W-3": "2024-02-30 00:00"}
    without = [
        aqua(f"{meter};2024-01-01 00:00;90", f"{meter};2024-01-02 00:00;95", issued=issued)
        for meter, issued in tops.items()
    ]
    dated = aqua(*(f"{meter};2024-01-01 00:00;80" for meter in tops), issued="1999-01-01 00:00")
    ordered = "SELECT value FROM readings ORDER BY meter, at"
    office.load(dated, *without)
    assert office.values(ordered) == [(80000,), (95000,)] * 3
    office.load(*without, dated)
    assert office.values(ordered) == [(80000,), (95000,)] * 3


@pytest.mark.requirement("issued-together", kind="boundary")
@pytest.mark.parametrize("issued", ["2024-02-01 06:00", None], ids=["dated", "undated"])
def test_issued_at_the_same_moment(office, issued):
    """Of files that were issued at the same moment, and of those that say nothing, the higher value counts."""
    low, high = (aqua(f"W-1;2024-01-01 00:00;{value}", issued=issued) for value in (9, 10))
    low_again, high_again = (aqua(f"W-1;2024-01-02 00:00;{value}", issued=issued) for value in (9, 10))
    office.load(high, low, low_again, high_again)
    assert office.values(VALUES) == [(10000,), (10000,)]


@pytest.mark.requirement("replace", kind="boundary")
def test_lower_line_of_one_file(office):
    """Within one file the lower line counts, though its value is less."""
    office.load(aqua("W-1;2024-01-01 00:00;12,5", "W-1;2024-01-01 00:00;12,3", issued="2024-02-01 00:00"))
    assert office.values(VALUES) == [(12300,)]


@pytest.mark.requirement("order", kind="integration")
@pytest.mark.parametrize("seed", [31, 32, 33])
def test_any_order(office, seed):
    """However many files with however many versions are imported in whichever order, the newest versions count."""
    town = Town(seed, meters=25)
    issues = [None, at("2024-09-01 00:00"), at("2024-08-01 12:00"), at("2024-09-01 00:00"), at("2025-01-01 00:00")]
    batches = town.versions(issues)
    files = [text for issued, batch in batches for text in town.files(batch, issued)]
    town.random.shuffle(files)
    office.load(*files[:6])
    office.load(*files[6:])
    newest_ones = newest(batches)
    assert office.contents("readings", "monthly") == [readings(newest_ones), monthly(newest_ones)]


@pytest.mark.requirement("take-over-issued", kind="integration")
def test_an_older_database(office):
    """What was in the user's database before is taken as if no file had said when it was issued."""
    office.take_over()
    select = "SELECT value FROM readings WHERE meter = 'W-1002' AND at = '2024-02-01T00:00:00Z'"
    office.load(aqua("W-1002;2024-02-01 00:00;80"))
    assert office.values(select) == [(80050,)]
    office.load(aqua("W-1002;2024-02-01 00:00;80", issued="1999-01-01 00:00"), aqua("W-1002;2024-02-01 00:00;99"))
    assert office.values(select) == [(80000,)]
