"""Bills of a month."""

import pytest
from files import aqua, prices, volt
from together import billed

PRICES = prices("water,2024-01-01,210.5", "power,2024-01-01,31")
MONTHS = aqua("W-2;2024-01-01 00:00;10", "W-2;2024-02-01 00:00;14", "W-2;2024-03-01 00:00;15")
PRICES_OF_2036 = prices("water,2036-01-01,210.5", "power,2036-01-01,31")


@pytest.mark.requirement("bill", kind="core")
@billed(
    [
        PRICES_OF_2036,
        aqua(
            "Bill-2;2036-01-01 00:00;10",
            "Bill-2;2036-02-01 00:00;14",
            "Bill-10;2035-12-31 00:00;1,25",
            "Bill-10;2036-03-01 00:00;7,35",
            "bill;2036-01-05 00:00;1",
        ),
        volt("Bill-P,01.01.2036,00:00,5", "Bill-P,01.02.2036,00:00,5", zone="+00:00"),
    ],
    asks=["bill 2036-01"],
)
def test_bills_of_a_month(seen):
    """Each meter that has an amount gets a bill and a line, also for an estimate and for nothing."""
    meters = ["Bill-10", "Bill-2", "Bill-P", "bill"]
    lines = ["Bill-10 653 cents", "Bill-2 842 cents", "Bill-P 0 cents"]
    assert seen.printed("bill 2036-01", *meters) == lines
    assert seen.values("bills", "meter month amount cents", *meters) == [
        ("Bill-10", "2036-01", 3100, 653),
        ("Bill-2", "2036-01", 4000, 842),
        ("Bill-P", "2036-01", 0, 0),
    ]


@pytest.mark.requirement("bill-half", kind="boundary", retired="round-8")
@billed(
    [
        prices("water,2028-01-01,0.5"),
        aqua(
            "Up-1;2028-01-01 00:00;1", "Up-1;2028-02-01 00:00;2", "Up-2;2028-01-01 00:00;2", "Up-2;2028-02-01 00:00;5"
        ),
    ],
    asks=["bill 2028-01"],
)
def test_halves_go_up(seen):
    """Halves of a cent go up."""
    assert seen.printed("bill 2028-01", "Up-1", "Up-2") == ["Up-1 1 cents", "Up-2 2 cents"]


@pytest.mark.requirement("bill", kind="boundary")
@billed(
    [
        prices("water,2026-01-01,0.0001", "power,2026-01-01,31.2345"),
        aqua("Exact-W;2026-01-01 00:00;0", "Exact-W;2026-02-01 00:00;5001"),
        volt("Exact-P,01.01.2026,00:00,0", "Exact-P,01.02.2026,00:00,98765.432", zone="+00:00"),
    ],
    asks=["bill 2026-01"],
)
def test_exact_products(seen):
    """Prices have up to four digits behind the point, and nothing is lost in large amounts."""
    lines = ["Exact-P 3084889 cents", "Exact-W 1 cents"]
    assert seen.printed("bill 2026-01", "Exact-P", "Exact-W") == lines


@pytest.mark.requirement("bill-price", kind="core")
@billed(
    [
        prices("water,2027-02-01,300", "power,2027-01-31,7", "water,2026-05-17,100", "water,2027-03-01,900"),
        aqua("Force;2027-01-01 00:00;10", "Force;2027-02-01 00:00;14", "Force;2027-03-01 00:00;15"),
    ],
    asks=["bill 2027-01", "bill 2027-02"],
)
def test_price_in_force(seen):
    """The price is the newest of its kind of those that hold on the first day of the month."""
    assert seen.printed("bill 2027-01", "Force") == ["Force 400 cents"]
    assert seen.printed("bill 2027-02", "Force") == ["Force 300 cents"]


@pytest.mark.requirement("bill-first-day", kind="core", retired="round-8")
@billed(
    [
        prices("water,2029-01-01,100", "water,2029-01-02,200"),
        aqua("First day;2029-01-01 00:00;10", "First day;2029-02-01 00:00;14"),
    ],
    asks=["bill 2029-01"],
)
def test_price_of_the_first_day(seen):
    """A price that begins within the month does not hold in it."""
    assert seen.printed("bill 2029-01", "First day") == ["First day 400 cents"]


@pytest.mark.requirement("bill-error", kind="error")
def test_no_price(office):
    """Without a price on the first day nothing is billed, and the first kind that lacks one is named."""
    files = {
        "a": prices("water,2024-01-02,100"),
        "b": MONTHS,
        "c": volt("P-1,01.01.2024,00:00,0", "P-1,01.02.2024,00:00,9", zone="+00:00"),
        "d": prices("power,2024-01-01,5"),
    }
    calls = ["import a.csv b.csv c.csv", "bill 2024-01", "import d.csv", "bill 2024-01", "bill 2023-11"]
    _, first, _, second, nothing = office.each(*calls, **files)
    assert first == (1, "", "error: no price for power in 2024-01")
    assert second == (1, "", "error: no price for water in 2024-01")
    assert nothing == (0, "", "")
    assert office.values("SELECT * FROM bills") == []


@pytest.mark.requirement("bill-error", kind="error")
def test_wrong_calls(office):
    """Without a database, and with no month, it is as with a report."""
    without, *wrong = office.each("bill 2024-01", "bill", "bill 2024-00")
    assert without == (1, "", "error: no meters.db")
    assert [answer[:2] for answer in wrong] == [(2, "")] * 2


@pytest.mark.requirement("bill-again", kind="core")
@billed(
    [PRICES_OF_2036, aqua("Once-2;2036-01-01 00:00;10", "Once-2;2036-02-01 00:00;14", "Once-10;2035-12-31 00:00;1")],
    aqua(
        "Once-10;2036-01-01 00:00;2",
        "Once-10;2036-02-01 00:00;3,2",
        "Once-1;2036-01-01 00:00;1",
        "Once-1;2036-02-01 00:00;3",
    ),
    asks=["bill 2036-01"],
)
def test_billed_once(seen):
    """When it is called again only meters without a bill get one."""
    meters = ["Once-1", "Once-10", "Once-2"]
    assert seen.printed("bill 2036-01", *meters, call=0) == ["Once-2 842 cents"]
    assert seen.printed("bill 2036-01", *meters) == ["Once-1 421 cents", "Once-10 253 cents"]


@pytest.mark.requirement("bill-never-changes", kind="core")
@billed(
    [
        PRICES_OF_2036,
        volt("Stay,01.01.2036,00:00,10", "Stay,01.02.2036,00:00,14", "Stay,01.03.2036,00:00,15", zone="+00:00"),
    ],
    [
        volt("Stay,01.02.2036,00:00,13", zone="+00:00", issued="01.05.2036 00:00"),
        prices("power,2035-12-01,9", "power,2036-01-09,7"),
    ],
    asks=["bill 2036-01"],
)
def test_bills_do_not_change(seen):
    """What is imported later changes no bill."""
    assert seen.values("monthly", "amount", "Stay") == [(3000,), (2000,)]
    assert seen.values("bills", "month amount cents", "Stay")[0] == ("2036-01", 4000, 124)


@pytest.mark.requirement("no-correction", kind="boundary", retired="round-9")
@billed(
    [PRICES_OF_2036, aqua("Twice;2036-01-01 00:00;10", "Twice;2036-02-01 00:00;14")],
    aqua("Twice;2036-02-01 00:00;13", issued="2036-05-01 00:00"),
    asks=["bill 2036-01"],
)
def test_nothing_is_issued_twice(seen):
    """A meter that has a bill gets no other one, whatever was imported meanwhile."""
    assert seen.printed("bill 2036-01", "Twice") == []
    assert seen.values("bills", "month amount cents", "Twice") == [("2036-01", 4000, 842)]


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
    files = {
        "twice": prices("water,2024-01-01,1", "power,2024-01-01,2", "water,2024-01-01,2"),
        "a": PRICES,
        "other": prices("water,2024-02-01,1", "power,2024-01-01,31.0001"),
        "b": MONTHS,
        "last": prices("water,2024-02-01,2"),
    }
    calls = ["import b.csv twice.csv", "import a.csv", "import b.csv other.csv", "import last.csv"]
    assert office.each(*calls, **files) == [
        (1, "", "error: twice.csv:4: another price"),
        (0, "a.csv: 2 new, 0 changed", ""),
        (1, "", "error: other.csv:3: another price"),
        (0, "last.csv: 1 new, 0 changed", ""),
    ]
    assert office.values("SELECT * FROM readings") == []
