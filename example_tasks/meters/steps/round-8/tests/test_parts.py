"""Prices that change within a month, and halves of cents."""

import pytest
from files import aqua, at, norda, prices, volt
from model import Town, cost, monthly
from together import billed

TARIFF = [
    ("water", "2023-06-01", "210.5"),
    ("water", "2024-02-09", "311.3"),
    ("water", "2024-02-24", "0.7"),
    ("water", "2024-03-28", "158"),
    ("water", "2024-05-02", "99"),
    ("power", "2023-12-24", "31.25"),
    ("power", "2024-02-02", "17.6"),
    ("power", "2024-02-21", "354.1"),
    ("power", "2024-03-13", "34.875"),
]
TOWNS = [Town(seed, meters=20, busy=True) for seed in (51, 52)]
EVEN = {"1": 0, "3": 2, "5": 2, "7,002": 4}  # Cents, of what costs half a cent each.


@pytest.mark.requirement("parts", kind="core")
@billed(
    [
        prices("power,2032-01-01,31", "power,2032-02-15,35.5", "water,2032-02-02,1"),
        volt(
            "Part-1,01.02.2032,00:00,100", "Part-1,15.02.2032,00:00,200", "Part-1,01.03.2032,00:00,210", zone="+00:00"
        ),
        volt("Part-2,01.02.2032,00:00,100", "Part-2,01.03.2032,00:00,390", zone="+00:00"),
    ],
    asks=["bill 2032-02"],
)
def test_price_changes(seen):
    """Each part of the month costs its own price, and what was shown between them was read or is on the line."""
    assert seen.printed("bill 2032-02", "Part-1", "Part-2") == ["Part-1 3455 cents", "Part-2 9665 cents"]
    rows = seen.values("bills", "meter month amount cents", "Part-1", "Part-2")
    assert rows == [("Part-1", "2032-02", 110000, 3455), ("Part-2", "2032-02", 290000, 9665)]


@pytest.mark.requirement("parts", kind="boundary")
@billed(
    [
        prices("water,2031-02-01,1000", "water,2031-01-31,100", "water,2031-01-11,200", "water,2031-01-01,100"),
        aqua("Several;2031-01-01 00:00;0", "Several;2031-02-01 00:00;31"),
    ],
    asks=["bill 2031-01"],
)
def test_several_changes(seen):
    """A price may change more often, on the last day, and back; one on the first day is no change in the month."""
    assert seen.printed("bill 2031-01", "Several") == [f"Several {1000 + 4000 + 100} cents"]


@pytest.mark.requirement("parts-estimate", kind="boundary")
@billed(
    [
        prices("power,2031-01-01,0", "power,2031-01-02,10000"),
        norda(
            "Rounded 2031-01-01T00:00:00Z 0 Wh",
            "Rounded 2031-01-03T00:00:00Z 1 Wh",
            "Rounded 2031-02-01T00:00:00Z 2 Wh",
        ),
    ],
    asks=["bill 2031-01"],
)
def test_what_was_shown_is_rounded(seen):
    """What the meter showed at the change is rounded to whole watt hours, halves up."""
    assert seen.printed("bill 2031-01", "Rounded") == ["Rounded 10 cents"]


@pytest.mark.requirement("half-even", kind="core")
@billed(
    [
        prices("water,2034-01-01,0.5"),
        aqua(
            *(f"Even-{used};2034-01-01 00:00;0" for used in EVEN),
            *(f"Even-{used};2034-02-01 00:00;{used}" for used in EVEN),
        ),
    ],
    asks=["bill 2034-01"],
)
def test_halves_go_to_even(seen):
    """Halves of a cent go to the even cent."""
    lines = [f"Even-{used} {cents} cents" for used, cents in EVEN.items()]
    assert seen.printed("bill 2034-01", *(f"Even-{used}" for used in EVEN)) == lines


@pytest.mark.requirement("rounded-once", kind="boundary")
@billed(
    [
        prices("water,2035-01-01,0.4", "water,2035-01-11,1.4", "power,2035-01-01,0.3", "power,2035-01-11,1.3"),
        aqua("Whole-W;2035-01-01 00:00;0", "Whole-W;2035-01-11 00:00;1", "Whole-W;2035-02-01 00:00;2"),
        volt("Whole-P,01.01.2035,00:00,0", "Whole-P,11.01.2035,00:00,1", "Whole-P,01.02.2035,00:00,2", zone="+00:00"),
    ],
    asks=["bill 2035-01"],
)
def test_rounded_once(seen):
    """The bill is rounded as a whole: parts of 0.4 and 1.4 cents are two cents, and so are 0.3 and 1.3."""
    assert seen.printed("bill 2035-01", "Whole-P", "Whole-W") == ["Whole-P 2 cents", "Whole-W 2 cents"]


@pytest.mark.requirement("parts", kind="error")
def test_price_on_the_first_day(office):
    """There has to be a price on the first day of the month."""
    office.load(prices("water,2024-01-02,100"), aqua("W-1;2024-01-01 00:00;0", "W-1;2024-02-01 00:00;31"))
    assert office.run("bill", "2024-01") == (1, "", "error: no price for water in 2024-01\n")
    assert office.values("SELECT * FROM bills") == []


def billed_town(town):
    files = [prices(*map(",".join, TARIFF)), town.workshop(), *town.files()]
    return town.imported(files, asks=["bill 2024-02", "bill 2024-03"], group="bills")


@pytest.mark.requirement("parts", kind="integration")
@pytest.mark.parametrize("town", [billed_town(town) for town in TOWNS])
def test_bills_of_a_town(seen, town):
    """The bills of many meters with many prices are those that a model works out."""
    tariff = [(kind, at(f"{day} 00:00"), cents) for kind, day, cents in TARIFF]
    for month in ("2024-02", "2024-03"):
        rows = [row for row in monthly(town.sent, town.exchanges) if row[2] == month]
        expected = [f"{row[0]} {cost(town.sent, town.exchanges, tariff, row[0], month)} cents" for row in rows]
        assert seen.printed(f"bill {month}", *town.meters) == expected


@pytest.mark.requirement("half-even", kind="integration")
def test_bills_of_an_older_database(office):
    """Bills of the user's database stay as they are, with the old rounding."""
    office.take_over()
    office.load(prices("power,2024-01-20,99", "water,2024-01-20,999"))
    assert office.bill("2024-01") == []
    select = "SELECT amount, cents FROM bills WHERE month = '2024-01' AND meter IN ('N-1', 'W-1001') ORDER BY meter"
    assert office.values(select) == [(205500, 6371), (5750, 1210)]
