"""Readings that cannot be right."""

import pytest
from files import aqua, volt, workshop
from model import Town, monthly, readings, suspects

SUSPECTS = "SELECT * FROM suspects ORDER BY meter, at"


@pytest.mark.requirement("suspect", kind="core")
def test_view(office):
    """A reading that falls is no zero that was passed: it does not count, and is in the view and in the readings."""
    office.load(aqua("W-1;2024-01-01 00:00;80", "W-1;2024-01-15 00:00;8,47", "W-1;2024-02-01 00:00;86,1"))
    row = {"meter": "W-1", "kind": "water", "at": "2024-01-15T00:00:00Z", "value": 8470}
    assert [list(each.items()) for each in office.rows(SUSPECTS)] == [list(row.items())]
    assert office.report("2024-01") == ["W-1 water 6100 l"]
    assert office.values("SELECT count(*) FROM readings") == [(3,)]


@pytest.mark.requirement("suspect", kind="boundary")
def test_limits(office):
    """A meter has gone round from 90000 or more to less than 10000, and else it has not."""
    limits = [
        ("90000", "9999.999", 19999999),
        ("89999.999", "9999.999", "-"),
        ("90000", "10000", "-"),
        ("99999.999", "0", 1),
        ("90000", "90000", 0),
    ]
    lines = [
        f"P-{number},01.0{month}.2024,00:00,{value}"
        for number, (before, after, _) in enumerate(limits)
        for month, value in [(1, before), (2, after)]
    ]
    office.load(volt(*lines, zone="+00:00"))
    assert office.report("2024-01") == [f"P-{number} power {amount} Wh" for number, (*_, amount) in enumerate(limits)]
    assert [row[0] for row in office.values(SUSPECTS)] == ["P-1", "P-2"]


@pytest.mark.requirement("suspect-chain", kind="boundary")
def test_compared_with_what_counts(office):
    """A reading is compared with the last one that counted, so several in a row may be suspects."""
    office.load(
        aqua(*(f"W-1;2024-01-{day:02} 00:00;{value}" for day, value in enumerate([50, 40, 45, 49, 50, 49, 60], 1)))
    )
    assert [row[3] for row in office.values(SUSPECTS)] == [40000, 45000, 49000, 49000]


@pytest.mark.requirement("suspect-later", kind="boundary")
def test_suspects_come_and_go(office):
    """Whether a reading is a suspect follows from all that is there by now."""
    office.load(aqua("W-1;2024-01-03 00:00;40", "W-1;2024-01-05 00:00;45"))
    assert office.values(SUSPECTS) == []
    office.load(aqua("W-1;2024-01-01 00:00;42"))
    assert [row[3] for row in office.values(SUSPECTS)] == [40000]
    office.load(aqua("W-1;2024-01-01 00:00;2", issued="2024-02-01 00:00"))
    assert office.values(SUSPECTS) == []


@pytest.mark.requirement("suspect-estimate", kind="boundary")
def test_suspect_when_a_month_begins(office):
    """What only a suspect shows is estimated, and after the last reading that counts nothing is known."""
    office.load(
        aqua(
            "W-1;2024-01-01 00:00;10", "W-1;2024-01-31 00:00;40", "W-1;2024-02-01 00:00;4,1", "W-1;2024-02-02 00:00;44"
        ),
        aqua("W-1;2024-03-01 00:00;5"),
    )
    assert office.values("SELECT month, amount, estimated FROM monthly") == [("2024-01", 32000, 1)]


@pytest.mark.requirement("suspect-exchange", kind="boundary")
def test_after_an_exchange(office):
    """After an exchange a reading is compared with what the new meter started with."""
    office.load(
        aqua(
            "W-1;2024-01-01 00:00;500", "W-1;2024-01-12 00:00;19", "W-1;2024-01-20 00:00;21", "W-1;2024-02-01 00:00;24"
        ),
        workshop("W-1,2024-01-10T00:00:00Z,510,20"),
    )
    assert [row[3] for row in office.values(SUSPECTS)] == [19000]
    assert office.report("2024-01") == ["W-1 water 14000 l"]


@pytest.mark.requirement("suspect", kind="integration")
@pytest.mark.parametrize("seed", [41, 42, 43])
def test_suspects_of_a_town(office, seed):
    """Lost digits, exchanges and zeros of many meters come to what a model works out."""
    town = Town(seed, meters=33, busy=True)
    sent = town.with_slips()
    office.load(*town.files(sent), town.workshop())
    doubted, months, shown = office.contents("suspects", "monthly", "readings")
    assert doubted == suspects(sent, town.exchanges)
    assert months == monthly(sent, town.exchanges)
    assert shown == readings(sent)


@pytest.mark.requirement("take-over-suspects", kind="integration")
def test_an_older_database(office):
    """A report is enough for the user's database to have both views, and the months without suspects."""
    office.take_over()
    assert "W-1002 water 3100 l" in office.report("2024-03")
    assert office.values(SUSPECTS) == [("W-1002", "water", "2024-03-15T00:00:00Z", 8470)]
    assert office.values("SELECT file, line, text FROM rejects") == []
