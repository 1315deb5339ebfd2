"""Prices that change within a month, and halves of cents."""

import pytest
from files import aqua, at, norda, prices, volt
from model import Town, cost, monthly

BILLS = "SELECT meter, month, amount, cents FROM bills ORDER BY meter, month"


@pytest.mark.requirement("parts", kind="core")
def test_price_changes(office):
    """Each part of the month costs its own price, and what was shown between them was read or is on the line."""
    office.load(
        prices("power,2024-01-01,31", "power,2024-02-15,35.5", "water,2024-02-02,1"),
        volt("P-1,01.02.2024,00:00,100", "P-1,15.02.2024,00:00,200", "P-1,01.03.2024,00:00,210", zone="+00:00"),
        volt("P-2,01.02.2024,00:00,100", "P-2,01.03.2024,00:00,390", zone="+00:00"),
    )
    assert office.bill("2024-02") == ["P-1 3455 cents", "P-2 9665 cents"]
    assert office.values(BILLS) == [("P-1", "2024-02", 110000, 3455), ("P-2", "2024-02", 290000, 9665)]


@pytest.mark.requirement("parts", kind="boundary")
def test_several_changes(office):
    """A price may change more often, on the last day, and back; one on the first day is no change in the month."""
    changes = ["water,2024-01-01,100", "water,2024-01-11,200", "water,2024-01-31,100", "water,2024-02-01,1000"]
    office.load(prices(*changes[::-1]), aqua("W-1;2024-01-01 00:00;0", "W-1;2024-02-01 00:00;31"))
    assert office.bill("2024-01") == [f"W-1 {1000 + 4000 + 100} cents"]


@pytest.mark.requirement("parts-estimate", kind="boundary")
def test_what_was_shown_is_rounded(office):
    """What the meter showed at the change is rounded to whole watt hours, halves up."""
    office.load(
        prices("power,2024-01-01,0", "power,2024-01-02,10000"),
        norda("P-1 2024-01-01T00:00:00Z 0 Wh", "P-1 2024-01-03T00:00:00Z 1 Wh", "P-1 2024-02-01T00:00:00Z 2 Wh"),
    )
    assert office.bill("2024-01") == ["P-1 10 cents"]


@pytest.mark.requirement("half-even", kind="core")
def test_halves_go_to_even(office):
    """Halves of a cent go to the even cent."""
    days = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01", "2024-05-01"]
    values = ["0", "1", "4", "9", "16,002"]
    lines = [f"W-1;{day} 00:00;{value}" for day, value in zip(days, values, strict=True)]
    office.load(prices("water,2023-01-01,0.5"), aqua(*lines))
    bills = office.each(*(f"bill 2024-0{month}" for month in range(1, 5)))
    assert bills == [(0, f"W-1 {cents} cents", "") for cents in (0, 2, 2, 4)]


@pytest.mark.requirement("rounded-once", kind="boundary")
def test_rounded_once(office):
    """The bill is rounded as a whole: parts of 0.4 and 1.4 cents are two cents, and so are 0.3 and 1.3."""
    office.load(
        prices("water,2024-01-01,0.4", "water,2024-01-11,1.4", "power,2024-01-01,0.3", "power,2024-01-11,1.3"),
        aqua("W-1;2024-01-01 00:00;0", "W-1;2024-01-11 00:00;1", "W-1;2024-02-01 00:00;2"),
        volt("P-1,01.01.2024,00:00,0", "P-1,11.01.2024,00:00,1", "P-1,01.02.2024,00:00,2", zone="+00:00"),
    )
    assert office.bill("2024-01") == ["P-1 2 cents", "W-1 2 cents"]


@pytest.mark.requirement("parts", kind="error")
def test_price_on_the_first_day(office):
    """There has to be a price on the first day of the month."""
    office.load(prices("water,2024-01-02,100"), aqua("W-1;2024-01-01 00:00;0", "W-1;2024-02-01 00:00;31"))
    assert office.run("bill", "2024-01") == (1, "", "error: no price for water in 2024-01\n")
    assert office.values(BILLS) == []


@pytest.mark.requirement("parts", kind="integration")
@pytest.mark.parametrize("seed", [51, 52])
def test_bills_of_a_town(office, seed):
    """The bills of many meters with many prices are those that a model works out."""
    town = Town(seed, meters=30, busy=True)
    tariff = [("water", "2023-06-01", "210.5"), ("power", "2023-12-24", "31.25")]
    for kind in ("water", "power"):
        days = town.random.sample(range(1, 29), 4)
        for month, day in zip((2, 2, 3, 5), days, strict=True):
            tariff.append((kind, f"2024-0{month}-{day:02}", f"{town.random.randrange(4000) / 10}"))
    office.load(prices(*map(",".join, tariff)), town.workshop(), *town.files())
    parsed = [(kind, at(f"{day} 00:00"), cents) for kind, day, cents in tariff]
    months = ["2024-02", "2024-03"]
    answers = office.each(*(f"bill {month}" for month in months))
    for month, answer in zip(months, answers, strict=True):
        rows = [row for row in monthly(town.sent, town.exchanges) if row[2] == month]
        expected = [f"{row[0]} {cost(town.sent, town.exchanges, parsed, row[0], month)} cents" for row in rows]
        assert answer == (0, "\n".join(expected), "")


@pytest.mark.requirement("half-even", kind="integration")
def test_bills_of_an_older_database(office):
    """Bills of the user's database stay as they are, with the old rounding."""
    office.take_over()
    office.load(prices("power,2024-01-20,99", "water,2024-01-20,999"))
    assert office.bill("2024-01") == []
    select = "SELECT amount, cents FROM bills WHERE month = '2024-01' AND meter IN ('N-1', 'W-1001') ORDER BY meter"
    assert office.values(select) == [(205500, 6371), (5750, 1210)]
