"""What was used is spread evenly between two readings."""

import pytest
from files import aqua, volt
from model import Town, monthly

MONTHLY = "SELECT * FROM monthly ORDER BY meter, month"


@pytest.mark.requirement("spread", kind="core")
def test_straight_line(office):
    """What a meter showed when a month began is on the line between the readings before and after it."""
    office.load(
        aqua("W-1;2023-12-22 00:00;10", "W-1;2024-01-11 00:00;30", "W-1;2024-02-20 00:00;70", "W-1;2024-03-01 00:00;71")
    )
    assert office.values("SELECT month, amount FROM monthly ORDER BY month") == [("2024-01", 31000), ("2024-02", 20000)]
    assert office.each("report 2024-02", "report 2024-03") == [(0, "W-1 water ~20000 l", ""), (0, "W-1 water - l", "")]


@pytest.mark.requirement("spread", kind="boundary")
def test_halves_go_up(office):
    """What a meter showed is rounded to whole litres, halves up."""
    # Halfway at the beginning of January: what is left is the rest.
    amounts = {1: 0, 2: 1, 3: 1, 5: 2, 6: 3}
    office.load(
        aqua(
            *(
                f"W-{litres};{moment};{value}"
                for litres in amounts
                for moment, value in [
                    ("2023-12-31 00:00", "0"),
                    ("2024-01-02 00:00", f"0,00{litres}"),
                    ("2024-02-01 00:00", f"0,00{litres}"),
                ]
            )
        )
    )
    assert office.report("2024-01") == [f"W-{litres} water ~{amount} l" for litres, amount in amounts.items()]


@pytest.mark.requirement("spread", kind="boundary")
def test_rounded_where_a_month_begins(office):
    """It is what a meter showed that is rounded, so the months of a year add up."""
    office.load(volt("P-1,31.12.2023,12:00,0", "P-1,15.04.2024,00:00,0.01", zone="+00:00"))
    assert office.values("SELECT month, amount FROM monthly ORDER BY month") == [
        ("2024-01", 3),
        ("2024-02", 3),
        ("2024-03", 3),
    ]


@pytest.mark.requirement("unknown", kind="boundary")
def test_nothing_is_known(office):
    """Before the first reading and after the last nothing is known, though a moment more would be enough."""
    office.load(
        aqua("W-1;2024-01-01 00:01;1", "W-1;2024-02-29 23:59;2", "W-2;2024-01-01 00:00;5", "b;2024-01-09 00:00;1")
    )
    lines = "W-1 water - l\nW-2 water - l\nb water - l"
    assert office.each("report 2024-01", "report 2024-02") == [(0, lines, "")] * 2
    assert office.values(MONTHLY) == []


@pytest.mark.requirement("estimated", kind="core")
def test_what_is_estimated(office):
    """A month is marked where its beginning or its end was not read, and readings in between do not matter."""
    days = ["01-01", "01-17", "02-01", "02-28", "04-01", "05-03"]
    office.load(aqua(*(f"W-1;2024-{day} 00:00;{number}" for number, day in enumerate(days))))
    assert office.values("SELECT month, estimated FROM monthly ORDER BY month") == [
        ("2024-01", 0),
        ("2024-02", 1),
        ("2024-03", 1),
        ("2024-04", 1),
    ]
    assert office.report("2024-01") == ["W-1 water 2000 l"]


@pytest.mark.requirement("monthly", kind="core")
def test_view(office):
    """The view has a row for each month that is known, zeros too, in this order of columns."""
    office.load(volt("P-1,01.01.2024,00:00,5", "P-1,01.03.2024,00:00,5", "P-2,01.01.2024,00:00,1", zone="+00:00"))
    rows = office.rows(MONTHLY)
    assert rows == [
        {"meter": "P-1", "kind": "power", "month": "2024-01", "amount": 0, "estimated": 1},
        {"meter": "P-1", "kind": "power", "month": "2024-02", "amount": 0, "estimated": 1},
    ]
    assert [list(row) for row in rows] == [["meter", "kind", "month", "amount", "estimated"]] * 2


@pytest.mark.requirement("monthly", kind="integration")
def test_after_each_import(office):
    """A reading that comes later is in the months at once, and takes the place of an estimate."""
    office.load(aqua("W-1;2023-12-31 00:00;0", "W-1;2024-03-02 00:00;62"))
    assert office.values("SELECT month, amount, estimated FROM monthly ORDER BY month") == [
        ("2024-01", 31000, 1),
        ("2024-02", 29000, 1),
    ]
    office.load(aqua("W-1;2024-01-01 00:00;2", "W-1;2024-02-01 00:00;20,5"))
    assert office.values("SELECT month, amount, estimated FROM monthly ORDER BY month") == [
        ("2024-01", 18500, 0),
        ("2024-02", 40117, 1),
    ]


@pytest.mark.requirement("monthly", kind="integration")
@pytest.mark.parametrize("seed", [11, 12])
def test_months_of_a_town(office, seed):
    """The months of many meters are those that a model works out."""
    town = Town(seed, meters=45)
    office.load(*town.files())
    assert office.values(MONTHLY) == monthly(town.sent)


@pytest.mark.requirement("take-over-monthly", kind="integration")
def test_a_database_without_months(office):
    """A report is enough to bring the user's database up to date."""
    office.take_over()
    lines = office.report("2024-01")
    assert [line for line in lines if line.startswith("W-1003")] == ["W-1003 water ~11577 l"]
    select = "SELECT month, amount, estimated FROM monthly WHERE meter = 'W-1001' ORDER BY month LIMIT 2"
    assert office.values(select) == [("2024-01", 5750, 0), ("2024-02", 6500, 0)]
