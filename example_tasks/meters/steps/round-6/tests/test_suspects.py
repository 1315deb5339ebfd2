"""Readings that cannot be right."""

import pytest
from files import aqua, volt, workshop
from model import Town, monthly, readings, suspects

SUSPECTS = "SELECT * FROM suspects ORDER BY meter, at"
TOWNS = [Town(seed, meters=20, busy=True) for seed in (41, 42, 43)]
# What a meter shows in January and in February, and what was used.
LIMITS = [
    ("90000", "9999.999", 19999999),
    ("89999.999", "9999.999", "-"),
    ("90000", "10000", "-"),
    ("99999.999", "0", 1),
    ("90000", "90000", 0),
]


@pytest.mark.requirement("suspect", kind="core")
@pytest.mark.imports(
    aqua("Suspect;2024-01-01 00:00;80", "Suspect;2024-01-15 00:00;8,47", "Suspect;2024-02-01 00:00;86,1"),
    asks=["report 2024-01"],
)
def test_view(seen):
    """A reading that falls is no zero that was passed: it does not count, and is in the view and in the readings."""
    row = {"meter": "Suspect", "kind": "water", "at": "2024-01-15T00:00:00Z", "value": 8470}
    assert [list(each.items()) for each in seen.rows("suspects", "Suspect")] == [list(row.items())]
    assert seen.report("2024-01", "Suspect") == ["Suspect water 6100 l"]
    assert len(seen.rows("readings", "Suspect")) == 3


@pytest.mark.requirement("suspect", kind="boundary")
@pytest.mark.imports(
    volt(
        *(
            f"Limit-{number},01.0{month}.2024,00:00,{value}"
            for number, (*shown, _) in enumerate(LIMITS)
            for month, value in enumerate(shown, 1)
        ),
        zone="+00:00",
    ),
    asks=["report 2024-01"],
)
def test_limits(seen):
    """A meter has gone round from 90000 or more to less than 10000, and else it has not."""
    meters = [f"Limit-{number}" for number in range(len(LIMITS))]
    lines = [f"{meter} power {amount} Wh" for meter, (*_, amount) in zip(meters, LIMITS, strict=True)]
    assert seen.report("2024-01", *meters) == lines
    assert seen.values("suspects", "meter", *meters) == [("Limit-1",), ("Limit-2",)]


@pytest.mark.requirement("suspect-chain", kind="boundary")
@pytest.mark.imports(
    aqua(*(f"Chain;2024-01-{day:02} 00:00;{value}" for day, value in enumerate([50, 40, 45, 49, 50, 49, 60], 1)))
)
def test_compared_with_what_counts(seen):
    """A reading is compared with the last one that counted, so several in a row may be suspects."""
    assert seen.values("suspects", "value", "Chain") == [(40000,), (45000,), (49000,), (49000,)]


@pytest.mark.requirement("suspect-later", kind="boundary")
@pytest.mark.imports(
    aqua(
        "Come;2024-01-03 00:00;40",
        "Come;2024-01-05 00:00;45",
        "Go;2024-01-01 00:00;42",
        "Go;2024-01-03 00:00;40",
        "Go;2024-01-05 00:00;45",
    ),
    aqua("Come;2024-01-01 00:00;42", "Go;2024-01-01 00:00;2", issued="2024-02-01 00:00"),
)
def test_suspects_come_and_go(seen):
    """Whether a reading is a suspect follows from all that is there by now."""
    assert seen.values("suspects", "meter value", "Come", "Go", call=0) == [("Go", 40000)]
    assert seen.values("suspects", "meter value", "Come", "Go") == [("Come", 40000)]


@pytest.mark.requirement("suspect-estimate", kind="boundary")
@pytest.mark.imports(
    aqua(
        "Begin;2024-01-01 00:00;10",
        "Begin;2024-01-31 00:00;40",
        "Begin;2024-02-01 00:00;4,1",
        "Begin;2024-02-02 00:00;44",
        "Begin;2024-03-01 00:00;5",
    )
)
def test_suspect_when_a_month_begins(seen):
    """What only a suspect shows is estimated, and after the last reading that counts nothing is known."""
    assert seen.values("monthly", "month amount estimated", "Begin") == [("2024-01", 32000, 1)]


@pytest.mark.requirement("suspect-exchange", kind="boundary")
@pytest.mark.imports(
    [
        aqua(
            "New;2024-01-01 00:00;500", "New;2024-01-12 00:00;19", "New;2024-01-20 00:00;21", "New;2024-02-01 00:00;24"
        ),
        workshop("New,2024-01-10T00:00:00Z,510,20"),
    ],
    asks=["report 2024-01"],
)
def test_after_an_exchange(seen):
    """After an exchange a reading is compared with what the new meter started with."""
    assert seen.values("suspects", "value", "New") == [(19000,)]
    assert seen.report("2024-01", "New") == ["New water 14000 l"]


def with_slips(town):
    town.sent = town.with_slips()
    return town.imported([*town.files(), town.workshop()])


@pytest.mark.requirement("suspect", kind="integration")
@pytest.mark.parametrize("town", [with_slips(town) for town in TOWNS])
def test_suspects_of_a_town(seen, town):
    """Lost digits, exchanges and zeros of many meters come to what a model works out."""
    assert seen.tuples("suspects", town.meters) == suspects(town.sent, town.exchanges)
    assert seen.tuples("monthly", town.meters) == monthly(town.sent, town.exchanges)
    assert seen.tuples("readings", town.meters) == readings(town.sent)


@pytest.mark.requirement("take-over-suspects", kind="integration")
def test_an_older_database(office):
    """A report is enough for the user's database to have both views, and the months without suspects."""
    office.take_over()
    assert "W-1002 water 3100 l" in office.report("2024-03")
    assert office.values(SUSPECTS) == [("W-1002", "water", "2024-03-15T00:00:00Z", 8470)]
    assert office.values("SELECT file, line, text FROM rejects") == []
