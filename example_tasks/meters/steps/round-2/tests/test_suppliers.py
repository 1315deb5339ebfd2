"""Files of Volt and Norda."""

import pytest
from files import aqua, norda, volt
from model import Town, readings

TOWNS = [Town(seed, meters=20) for seed in (1, 2)]


@pytest.mark.requirement("volt", kind="core")
@pytest.mark.imports(
    volt('"P-7, Küche ""Süd""","01.01.2024","00:15","10234.5"', "P-8,31.12.2023,23:00,7").replace(
        b'"Zeitzone"', b'"Gebiet","Nord, Ost","12"\r\n\r\n"Zeitzone"'
    )
)
def test_volt(seen):
    """Latin-1, quotes with commas in them, a clock that is not UTC's, and lines above that mean nothing."""
    assert seen.imported() == ["2 new, 0 changed"]
    assert seen.tuples("readings", ['P-7, Küche "Süd"', "P-8"]) == [
        ('P-7, Küche "Süd"', "power", "2023-12-31T23:15:00Z", 10234500),
        ("P-8", "power", "2023-12-31T22:00:00Z", 7000),
    ]


@pytest.mark.requirement("volt-zone", kind="boundary")
@pytest.mark.imports(
    [
        volt("Zone-1,01.01.2024,00:15,1", zone="+00:00"),
        volt("Zone-2,01.01.2024,00:15,1", zone="-03:30"),
        volt("Zone-3,01.01.2024,00:15,1", zone="+02:00"),
    ]
)
def test_zone_of_a_file(seen):
    """Each file of Volt says how far its clock is from UTC."""
    assert seen.values("readings", "meter at", "Zone-1", "Zone-2", "Zone-3") == [
        ("Zone-1", "2024-01-01T00:15:00Z"),
        ("Zone-2", "2024-01-01T03:45:00Z"),
        ("Zone-3", "2023-12-31T22:15:00Z"),
    ]


@pytest.mark.requirement("norda", kind="core")
@pytest.mark.imports(
    norda("N-1 2024-01-01T00:30:15+01:00 1.234,5 kWh", "N-2 2024-01-01T00:00:00Z 98.004 l").replace(
        b"meter\tat", b"area\tNorth\t12\n\nmeter\tat"
    )
)
def test_norda(seen):
    """A byte order mark, a zone in each line, two kinds of meters in one file, and lines above that mean nothing."""
    assert seen.imported() == ["2 new, 0 changed"]
    assert seen.tuples("readings", ["N-1", "N-2"]) == [
        ("N-1", "power", "2023-12-31T23:30:15Z", 1234500),
        ("N-2", "water", "2024-01-01T00:00:00Z", 98004),
    ]


NUMBERS = {
    "1.234.567 Wh": (1234567, "power"),
    "1234,5 kWh": (1234500, "power"),
    "0,000001 MWh": (1, "power"),
    "1,4 MWh": (1400000, "power"),
    "12,001 m3": (12001, "water"),
    "7,000 l": (7, "water"),
    "1.000 m3": (1000000, "water"),
    "5,1230 kWh": (5123, "power"),
}


@pytest.mark.requirement("norda-numbers", kind="boundary")
@pytest.mark.imports(norda(*(f"Unit-{number} 2024-01-01T00:00:00Z {text}" for number, text in enumerate(NUMBERS))))
def test_numbers_and_units(seen):
    """Numbers are German, and every unit becomes watt hours or litres."""
    meters = [f"Unit-{number}" for number in range(len(NUMBERS))]
    assert seen.values("readings", "value kind", *meters) == [*NUMBERS.values()]


@pytest.mark.requirement("suppliers", kind="integration")
@pytest.mark.imports(
    [
        volt("Three-P,01.01.2024,01:00,5", "Three-P,01.02.2024,01:00,7.5"),
        norda("Three-N 2024-01-01T00:00:00Z 1 m3", "Three-N 2024-02-01T00:00:00Z 3 m3"),
        aqua("Three-W;2024-01-01 00:00;1", "Three-W;2024-02-01 00:00;2"),
    ],
    asks=["report 2024-01"],
)
def test_three_suppliers_in_a_call(seen):
    """Files are known by what is in them, and the report has all meters with their units."""
    assert seen.imported() == ["2 new, 0 changed"] * 3
    assert seen.report("2024-01", "Three-N", "Three-P", "Three-W") == [
        "Three-N water 2000 l",
        "Three-P power 2500 Wh",
        "Three-W water 1000 l",
    ]


@pytest.mark.requirement("same-moment", kind="boundary")
@pytest.mark.imports(
    norda("Same 2024-01-01T00:00:00Z 5 m3"),
    norda("Same 2024-01-01T01:00:00+01:00 5000 l", "Same 2023-12-31T22:30:00-01:30 6 m3"),
)
def test_one_moment_in_two_zones(seen):
    """A moment is the same in whichever zone it is written."""
    assert seen.imported() == ["0 new, 1 changed"]
    assert seen.values("readings", "at value", "Same") == [("2024-01-01T00:00:00Z", 6000)]


@pytest.mark.requirement("all-or-nothing-2", kind="error", retired="round-6")
def test_line_that_cannot_be_read(office):
    """The first line that cannot be read is named, and nothing is imported."""
    mistakes = [
        (volt("P-1,01.01.2024,00:15,1", "P-1,02.01.2024,00:15,1,5"), 5),
        (volt("P-1,30.02.2024,00:15,1", issued="01.03.2024 00:00"), 5),
        (norda("N-1 2024-01-01T00:00:00Z 12.34,5 kWh"), 3),
        (norda("N-1 2024-01-01T00:00:00Z 1,5 Wh", issued="2024-02-01T00:00:00Z"), 4),
        (norda("", "N-1 2024-01-01T00:00:00Z 1"), 4),
    ]
    files = {f"f{number}": text for number, (text, _) in enumerate(mistakes)}
    assert office.each(*(f"import {name}.csv" for name in files), **files) == [
        (1, "", f"error: f{number}.csv:{line}: cannot read") for number, (_, line) in enumerate(mistakes)
    ]
    office.load(aqua("W-1;2024-01-01 00:00;1"))
    assert office.values("SELECT count(*) FROM readings") == [(1,)]


@pytest.mark.requirement("suppliers", kind="error")
def test_unknown_formats(office):
    """A file without the lines that it needs is of an unknown format, and nothing is imported."""
    files = {
        "zone": volt("P-1,01.01.2024,00:15,1", zone="MEZ"),
        "none": volt("P-1,01.01.2024,00:15,1").replace(b'"Zeitzone","+01:00"\r\n', b""),
        "volt": volt("P-1,01.01.2024,00:15,1").replace(b'"Z\xe4hler"', b'"Meter"'),
        "norda": norda("N-1 2024-01-01T00:00:00Z 1 kWh").replace(b"unit", b"units"),
    }
    answers = office.each(*(f"import b.csv {name}.csv" for name in files), b=aqua("W-1;2024-01-01 00:00;1"), **files)
    assert answers == [(1, "", f"error: {name}.csv: unknown format") for name in files]
    assert office.run("import", "b.csv")[1] == "b.csv: 1 new, 0 changed\n"


@pytest.mark.requirement("suppliers", kind="integration")
@pytest.mark.parametrize("town", [town.imported(town.files()) for town in TOWNS])
def test_readings_of_a_town(seen, town):
    """Whatever the suppliers send comes out of the view."""
    assert seen.tuples("readings", town.meters) == readings(town.sent)


@pytest.mark.requirement("take-over", kind="integration")
def test_a_database_of_round_1(office):
    """The user's own database goes on with all that is in it."""
    office.take_over()
    office.load(volt("X-1,01.01.2024,00:00,1"))
    select = "SELECT * FROM readings WHERE meter IN ('W-1001', 'X-1') AND at < '2024-03-02' ORDER BY meter, at"
    assert office.values(select) == [
        ("W-1001", "water", "2024-01-01T00:00:00Z", 812500),
        ("W-1001", "water", "2024-01-15T12:00:00Z", 815000),
        ("W-1001", "water", "2024-02-01T00:00:00Z", 818250),
        ("W-1001", "water", "2024-03-01T00:00:00Z", 824750),
        ("X-1", "power", "2023-12-31T23:00:00Z", 1000),
    ]
