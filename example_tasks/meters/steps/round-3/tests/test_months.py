"""What was used is spread evenly between two readings."""

import pytest
from files import aqua, volt
from model import Town, monthly

TOWNS = [Town(seed, meters=20) for seed in (11, 12)]


@pytest.mark.requirement("spread", kind="core")
@pytest.mark.imports(
    aqua(
        "Line;2023-12-22 00:00;10",
        "Line;2024-01-11 00:00;30",
        "Line;2024-02-20 00:00;70",
        "Line;2024-03-01 00:00;71",
    ),
    asks=["report 2023-12", "report 2024-01"],
)
def test_straight_line(seen):
    """What a meter showed when a month began is on the line between the readings before and after it."""
    assert seen.values("monthly", "month amount", "Line") == [("2024-01", 31000), ("2024-02", 20000)]
    assert seen.report("2023-12", "Line") == ["Line water - l"]
    assert seen.report("2024-01", "Line") == ["Line water ~31000 l"]


HALVES = {1: 0, 2: 1, 3: 1, 5: 2, 6: 3}  # Of litres halfway at the beginning of January, what is left is the rest.


@pytest.mark.requirement("spread", kind="boundary")
@pytest.mark.imports(
    aqua(
        *(
            f"Half-{litres};{moment};{value}"
            for litres in HALVES
            for moment, value in [
                ("2023-12-31 00:00", "0"),
                ("2024-01-02 00:00", f"0,00{litres}"),
                ("2024-02-01 00:00", f"0,00{litres}"),
            ]
        )
    ),
    asks=["report 2024-01"],
)
def test_halves_go_up(seen):
    """What a meter showed is rounded to whole litres, halves up."""
    lines = [f"Half-{litres} water ~{amount} l" for litres, amount in HALVES.items()]
    assert seen.report("2024-01", *(f"Half-{litres}" for litres in HALVES)) == lines


@pytest.mark.requirement("spread", kind="boundary")
@pytest.mark.imports(volt("Sum,31.12.2023,12:00,0", "Sum,15.04.2024,00:00,0.01", zone="+00:00"))
def test_rounded_where_a_month_begins(seen):
    """It is what a meter showed that is rounded, so the months of a year add up."""
    assert seen.values("monthly", "month amount", "Sum") == [("2024-01", 3), ("2024-02", 3), ("2024-03", 3)]


@pytest.mark.requirement("unknown", kind="boundary")
@pytest.mark.imports(
    aqua(
        "Unknown-1;2024-01-01 00:01;1",
        "Unknown-2;2024-01-01 00:00;5",
        "Unknown-3;2024-01-01 00:00;1",
        "Unknown-3;2024-01-31 23:59;2",
        "unknown;2024-01-09 00:00;1",
    ),
    asks=["report 2024-01"],
)
def test_nothing_is_known(seen):
    """Before the first reading and after the last nothing is known, though a moment more would be enough."""
    meters = ["Unknown-1", "Unknown-2", "Unknown-3", "unknown"]
    assert seen.report("2024-01", *meters) == [f"{meter} water - l" for meter in meters]
    assert seen.rows("monthly", *meters) == []


@pytest.mark.requirement("estimated", kind="core")
@pytest.mark.imports(
    aqua(
        *(
            f"Estimated;2024-{day} 00:00;{number}"
            for number, day in enumerate(["01-01", "01-17", "02-01", "02-28", "04-01", "05-03"])
        )
    ),
    asks=["report 2024-01"],
)
def test_what_is_estimated(seen):
    """A month is marked where its beginning or its end was not read, and readings in between do not matter."""
    assert seen.values("monthly", "month estimated", "Estimated") == [
        ("2024-01", 0),
        ("2024-02", 1),
        ("2024-03", 1),
        ("2024-04", 1),
    ]
    assert seen.report("2024-01", "Estimated") == ["Estimated water 2000 l"]


@pytest.mark.requirement("monthly", kind="core")
@pytest.mark.imports(
    volt("Row-1,01.01.2024,00:00,5", "Row-1,01.03.2024,00:00,5", "Row-2,01.01.2024,00:00,1", zone="+00:00")
)
def test_view(seen):
    """The view has a row for each month that is known, zeros too, in this order of columns."""
    rows = seen.rows("monthly", "Row-1", "Row-2")
    assert rows == [
        {"meter": "Row-1", "kind": "power", "month": "2024-01", "amount": 0, "estimated": 1},
        {"meter": "Row-1", "kind": "power", "month": "2024-02", "amount": 0, "estimated": 1},
    ]
    assert [list(row) for row in rows] == [["meter", "kind", "month", "amount", "estimated"]] * 2


@pytest.mark.requirement("monthly", kind="integration")
@pytest.mark.imports(
    aqua("Each;2023-12-31 00:00;0", "Each;2024-03-02 00:00;62"),
    aqua("Each;2024-01-01 00:00;2", "Each;2024-02-01 00:00;20,5"),
)
def test_after_each_import(seen):
    """A reading that comes later is in the months at once, and takes the place of an estimate."""
    before = [("2024-01", 31000, 1), ("2024-02", 29000, 1)]
    assert seen.values("monthly", "month amount estimated", "Each", call=0) == before
    assert seen.values("monthly", "month amount estimated", "Each") == [("2024-01", 18500, 0), ("2024-02", 40117, 1)]


@pytest.mark.requirement("monthly", kind="integration")
@pytest.mark.parametrize("town", [town.imported(town.files()) for town in TOWNS])
def test_months_of_a_town(seen, town):
    """The months of many meters are those that a model works out."""
    assert seen.tuples("monthly", town.meters) == monthly(town.sent)


@pytest.mark.requirement("take-over-monthly", kind="integration")
def test_a_database_without_months(office):
    """A report is enough to bring the user's database up to date."""
    office.take_over()
    lines = office.report("2024-01")
    assert [line for line in lines if line.startswith("W-1003")] == ["W-1003 water ~11577 l"]
    select = "SELECT month, amount, estimated FROM monthly WHERE meter = 'W-1001' ORDER BY month LIMIT 2"
    assert office.values(select) == [("2024-01", 5750, 0), ("2024-02", 6500, 0)]
