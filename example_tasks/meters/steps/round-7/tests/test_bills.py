"""Bills of a month."""

import pytest
from files import aqua, prices, volt

BILLS = "SELECT meter, month, amount, cents FROM bills ORDER BY meter, month, cents"
PRICES = prices("water,2024-01-01,210.5", "power,2024-01-01,31")
MONTHS = aqua(
    "W-2;2024-01-01 00:00;10", "W-2;2024-02-01 00:00;14", "W-2;2024-03-01 00:00;15", "W-10;2023-12-31 00:00;1,25"
)


@pytest.mark.requirement("bill", kind="core")
def test_bills_of_a_month(office):
    """Each meter that has an amount gets a bill and a line, also for an estimate and for nothing."""
    office.load(PRICES, MONTHS, aqua("W-10;2024-03-01 00:00;7,35", "c;2024-01-05 00:00;1"))
    office.load(volt("P-1,01.01.2024,00:00,5", "P-1,01.02.2024,00:00,5", zone="+00:00"))
    assert office.bill("2024-01") == ["P-1 0 cents", "W-10 653 cents", "W-2 842 cents"]
    rows = office.rows(BILLS)
    assert [tuple(row.values()) for row in rows] == [
        ("P-1", "2024-01", 0, 0),
        ("W-10", "2024-01", 3100, 653),
        ("W-2", "2024-01", 4000, 842),
    ]


@pytest.mark.requirement("bill-half", kind="boundary", retired="round-8")
def test_halves_go_up(office):
    """Halves of a cent go up."""
    office.load(
        prices("water,2024-01-01,0.5"),
        aqua("W-1;2024-01-01 00:00;1", "W-1;2024-02-01 00:00;2", "W-1;2024-03-01 00:00;5"),
    )
    assert office.each("bill 2024-01", "bill 2024-02") == [(0, "W-1 1 cents", ""), (0, "W-1 2 cents", "")]


@pytest.mark.requirement("bill", kind="boundary")
def test_exact_products(office):
    """Prices have up to four digits behind the point, and nothing is lost in large amounts."""
    office.load(
        prices("water,2024-01-01,0.0001", "power,2024-01-01,31.2345"),
        aqua("W-1;2024-01-01 00:00;0", "W-1;2024-02-01 00:00;5001"),
        volt("P-1,01.01.2024,00:00,0", "P-1,01.02.2024,00:00,98765.432", zone="+00:00"),
    )
    assert office.bill("2024-01") == ["P-1 3084889 cents", "W-1 1 cents"]


@pytest.mark.requirement("bill-price", kind="core")
def test_price_in_force(office):
    """The price is the newest of its kind of those that hold on the first day of the month."""
    office.load(
        prices("water,2024-02-01,300", "power,2024-01-31,7", "water,2023-05-17,100", "water,2024-03-01,900"),
        MONTHS,
    )
    assert office.each("bill 2024-01", "bill 2024-02") == [(0, "W-2 400 cents", ""), (0, "W-2 300 cents", "")]


@pytest.mark.requirement("bill-first-day", kind="core", retired="round-8")
def test_price_of_the_first_day(office):
    """A price that begins within the month does not hold in it."""
    office.load(prices("water,2024-01-01,100", "water,2024-01-02,200"), MONTHS)
    assert office.bill("2024-01") == ["W-2 400 cents"]


@pytest.mark.requirement("bill-error", kind="error")
def test_no_price(office):
    """Without a price on the first day nothing is billed, and the first kind that lacks one is named."""
    office.load(
        prices("water,2024-01-02,100"), MONTHS, volt("P-1,01.01.2024,00:00,0", "P-1,01.02.2024,00:00,9", zone="+00:00")
    )
    assert office.run("bill", "2024-01") == (1, "", "error: no price for power in 2024-01\n")
    office.load(prices("power,2024-01-01,5"))
    assert office.run("bill", "2024-01") == (1, "", "error: no price for water in 2024-01\n")
    assert office.values(BILLS) == []
    assert office.bill("2023-11") == []


@pytest.mark.requirement("bill-error", kind="error")
def test_wrong_calls(office):
    """Without a database, and with no month, it is as with a report."""
    without, *wrong = office.each("bill 2024-01", "bill", "bill 2024-00")
    assert without == (1, "", "error: no meters.db")
    assert [answer[:2] for answer in wrong] == [(2, "")] * 2


@pytest.mark.requirement("bill-again", kind="core")
def test_billed_once(office):
    """When it is called again only meters without a bill get one."""
    office.load(PRICES, MONTHS)
    assert office.bill("2024-01") == ["W-2 842 cents"]
    office.load(
        aqua("W-10;2024-01-01 00:00;2", "W-10;2024-02-01 00:00;3,2", "W-1;2024-01-01 00:00;1", "W-1;2024-02-01 00:00;3")
    )
    assert office.each("bill 2024-01", "bill 2024-01") == [(0, "W-1 421 cents\nW-10 253 cents", ""), (0, "", "")]


@pytest.mark.requirement("bill-never-changes", kind="core")
def test_bills_do_not_change(office):
    """What is imported later changes no bill."""
    office.load(PRICES, MONTHS)
    office.bill("2024-01")
    office.load(
        aqua("W-2;2024-02-01 00:00;13", issued="2024-05-01 00:00"), prices("water,2023-12-01,9", "water,2024-01-09,7")
    )
    assert office.values("SELECT amount FROM monthly WHERE meter = 'W-2'") == [(3000,), (2000,)]
    assert office.values(BILLS) == [("W-2", "2024-01", 4000, 842)]


@pytest.mark.requirement("no-correction", kind="boundary", retired="round-9")
def test_nothing_is_issued_twice(office):
    """A meter that has a bill gets no other one, whatever was imported meanwhile."""
    office.load(PRICES, MONTHS)
    office.bill("2024-01")
    office.load(aqua("W-2;2024-02-01 00:00;13", issued="2024-05-01 00:00"))
    assert office.bill("2024-01") == []
    assert office.values(BILLS) == [("W-2", "2024-01", 4000, 842)]


@pytest.mark.requirement("prices", kind="core")
def test_prices_again(office):
    """The same price once more is nothing, however it is written, and lines that cannot be read are rejected."""
    bad = [
        "water,2024-02-30,1",
        "gas,2024-01-01,1",
        "water,2024-03-01,1.23456",
        'water,2024-03-01,"1,5"',
        "water,2024-03-01",
    ]
    again = prices("water,2024-01-01,210.5000", *bad, "water,2024-02-01,0")
    output = office.run("import", "a.csv", "a.csv", "b.csv", a=PRICES, b=again)[1]
    assert output == "a.csv: 2 new, 0 changed\na.csv: 0 new, 0 changed\nb.csv: 1 new, 0 changed, 5 rejected\n"
    assert office.values("SELECT line, text FROM rejects ORDER BY line") == list(enumerate(bad, 3))


@pytest.mark.requirement("prices-differ", kind="error")
def test_another_price(office):
    """Two prices of a kind for one day are an error, in one file or in several, and nothing of the call is imported."""
    twice = prices("water,2024-01-01,1", "power,2024-01-01,2", "water,2024-01-01,2")
    assert office.run("import", "b.csv", "a.csv", a=twice, b=MONTHS) == (1, "", "error: a.csv:4: another price\n")
    office.load(PRICES)
    other = prices("water,2024-02-01,1", "power,2024-01-01,31.0001")
    assert office.run("import", "a.csv", a=other) == (1, "", "error: a.csv:3: another price\n")
    assert office.values("SELECT * FROM readings") == []
    office.load(prices("water,2024-02-01,2"), MONTHS)
    assert office.bill("2024-02") == ["W-2 2 cents"]
