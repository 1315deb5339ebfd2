"""Corrections of bills, and a request that contradicts itself."""

import pytest
from files import aqua, at, norda, prices
from model import Town, cost, monthly

BILLS = "SELECT meter, month, number, amount, cents FROM bills ORDER BY meter, month, number"
PRICES = prices("water,2024-01-01,100", "power,2024-01-01,31")
MONTHS = aqua(
    "W-1;2024-01-01 00:00;10", "W-1;2024-02-01 00:00;14", "W-2;2024-01-01 00:00;10", "W-2;2024-02-01 00:00;11"
)


def newer(*lines):
    """A file that counts more than all others of its test."""
    newer.month += 1
    return aqua(*lines, issued=f"20{newer.month}-01-01 00:00")


newer.month = 30


@pytest.mark.requirement("correction", kind="core")
def test_corrections(office):
    """A meter whose amount has changed gets the difference on one more bill, and the others get nothing."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-1 400 cents", "W-2 100 cents"]
    office.load(newer("W-1;2024-02-01 00:00;13,5"))
    assert office.bill("2024-01") == ["W-1 -50 cents"]
    assert office.bill("2024-01") == []
    office.load(newer("W-1;2024-02-01 00:00;20", "W-2;2024-01-01 00:00;9"))
    assert office.bill("2024-01") == ["W-1 650 cents", "W-2 100 cents"]
    rows = office.rows(BILLS)
    columns = ["meter", "month", "number", "amount", "cents"]
    assert [list(row) for row in office.rows("SELECT * FROM bills")] == [columns] * 5
    assert [tuple(row.values()) for row in rows] == [
        ("W-1", "2024-01", 1, 4000, 400),
        ("W-1", "2024-01", 2, -500, -50),
        ("W-1", "2024-01", 3, 6500, 650),
        ("W-2", "2024-01", 1, 1000, 100),
        ("W-2", "2024-01", 2, 1000, 100),
    ]


@pytest.mark.requirement("correction", kind="boundary")
def test_back_again(office):
    """An amount that goes back to what it was is corrected, too, and one that went there and back in between is not."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-1 400 cents", "W-2 100 cents"]
    office.load(newer("W-1;2024-02-01 00:00;15"))
    office.load(newer("W-1;2024-02-01 00:00;14"))
    assert office.bill("2024-01") == []
    office.load(newer("W-1;2024-02-01 00:00;15"))
    assert office.bill("2024-01") == ["W-1 100 cents"]
    office.load(newer("W-1;2024-02-01 00:00;14"))
    assert office.bill("2024-01") == ["W-1 -100 cents"]


@pytest.mark.requirement("correction-prices", kind="boundary")
def test_rules_of_today(office):
    """A new price alone corrects nothing; with another amount the month costs what it costs by the prices of today."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-1 400 cents", "W-2 100 cents"]
    office.load(prices("water,2024-01-11,200"), aqua("W-2;2024-01-11 00:00;10,9"))
    assert office.bill("2024-01") == []
    office.load(newer("W-1;2024-02-01 00:00;16,2"))
    assert office.bill("2024-01") == ["W-1 640 cents"]


@pytest.mark.requirement("correction", kind="boundary")
def test_no_cents(office):
    """A correction may be of 0 cents."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-1 400 cents", "W-2 100 cents"]
    office.load(newer("W-1;2024-02-01 00:00;14,001"))
    assert office.bill("2024-01") == ["W-1 0 cents"]
    assert office.values(BILLS)[1] == ("W-1", "2024-01", 2, 1, 0)


@pytest.mark.requirement("correction", kind="boundary")
def test_no_amount(office):
    """A month that has no amount any more is not corrected."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-1 400 cents", "W-2 100 cents"]
    office.load(newer("W-1;2024-02-01 00:00;9"))
    assert office.values("SELECT * FROM monthly WHERE meter = 'W-1'") == []
    assert office.bill("2024-01") == []


@pytest.mark.requirement("correction", kind="core")
def test_estimate_is_replaced(office):
    """A true reading takes the place of an estimate, in both months that it is between."""
    office.load(PRICES, aqua("W-1;2024-01-01 00:00;0", "W-1;2024-03-01 00:00;60"))
    assert (office.bill("2024-01"), office.bill("2024-02")) == (["W-1 3100 cents"], ["W-1 2900 cents"])
    office.load(aqua("W-1;2024-02-01 00:00;20", "W-3;2024-01-01 00:00;0", "W-3;2024-02-01 00:00;1"))
    assert (office.bill("2024-01"), office.bill("2024-02")) == (
        ["W-1 -1100 cents", "W-3 100 cents"],
        ["W-1 1100 cents"],
    )


@pytest.mark.requirement("correction", kind="integration")
@pytest.mark.parametrize("seed", [61, 62])
def test_corrections_of_a_town(office, seed):
    """After all corrections the bills of a meter add up to what a model works out."""
    town = Town(seed, meters=20)
    office.load(prices("water,2023-01-01,199.9", "power,2023-01-01,31.25", "power,2024-03-13,34.875"), *town.files())
    tariff = [("water", at("2023-01-01 00:00"), "199.9"), ("power", at("2023-01-01 00:00"), "31.25")]
    tariff.append(("power", at("2024-03-13 00:00"), "34.875"))
    before = {row[0]: row[3] for row in monthly(town.sent) if row[2] == "2024-03"}
    costs = {meter: cost(town.sent, (), tariff, meter, "2024-03") for meter in before}
    assert office.bill("2024-03") == [f"{meter} {costs[meter]} cents" for meter in before]
    ((issued, batch),) = town.versions([at("2025-01-01 00:00")])
    office.load(*town.files(batch, issued))
    now = list({(each.meter, each.moment): each for each in [*town.sent, *batch]}.values())
    after = {row[0]: row[3] for row in monthly(now) if row[2] == "2024-03"}
    changed = {meter: cost(now, (), tariff, meter, "2024-03") for meter in after if after[meter] != before.get(meter)}
    assert office.bill("2024-03") == [f"{meter} {changed[meter] - costs.get(meter, 0)} cents" for meter in changed]
    totals = "SELECT meter, sum(amount), sum(cents) FROM bills GROUP BY meter ORDER BY meter"
    expected = [(meter, amount, changed.get(meter, costs.get(meter))) for meter, amount in after.items()]
    assert office.values(totals) == expected


@pytest.mark.requirement("take-over-numbers", kind="integration")
def test_bills_of_an_older_database(office):
    """Bills of the user's database have the number 1, and are corrected only if the amount changes."""
    office.take_over()
    assert office.bill("2024-01") == []
    select = "SELECT number, amount, cents FROM bills WHERE meter = 'N-1' AND month = '2024-01' ORDER BY number"
    assert office.values(select) == [(1, 205500, 6371)]
    office.load(norda("N-1 2024-02-01T00:00:00Z 1.441 kWh", issued="2025-01-01T00:00:00Z"))
    assert office.bill("2024-01") == ["N-1 31 cents"]
    assert office.values(select) == [(1, 205500, 6371), (2, 1000, 31)]


@pytest.mark.requirement("forget-doubt", kind="boundary")
def test_nothing_is_forgotten(office):
    """As long as nobody knows which of the two holds, neither bills nor the readings behind them go."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-1 400 cents", "W-2 100 cents"]
    office.run("forget", "W-2")
    assert office.values("SELECT meter, cents FROM bills ORDER BY meter") == [("W-1", 400), ("W-2", 100)]
    assert office.values("SELECT count(*) FROM readings") == [(4,)]


@pytest.mark.requirement("forget-doubt", kind="integration")
def test_nothing_is_forgotten_by_hand(office):
    """The user's own database still has the meter that is to be forgotten, with its bills."""
    office.take_over()
    assert "W-1002 water 3009 l" in office.report("2024-01")
    assert office.values("SELECT cents FROM bills WHERE meter = 'W-1002' AND month = '2024-01'") == [(633,)]
