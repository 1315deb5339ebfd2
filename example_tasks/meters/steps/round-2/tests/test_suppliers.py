"""Files of Volt and Norda."""

import pytest
from files import aqua, norda, volt
from model import Town, readings

ALL = "SELECT * FROM readings ORDER BY meter, at"


@pytest.mark.requirement("volt", kind="core")
def test_volt(office):
    """Latin-1, quotes with commas in them, and a clock that is not UTC's."""
    text = volt('"P-7, Küche ""Süd""","01.01.2024","00:15","10234.5"', "P-8,31.12.2023,23:00,7")
    assert office.run("import", "a.csv", a=text) == (0, "a.csv: 2 new, 0 changed\n", "")
    assert office.values(ALL) == [
        ('P-7, Küche "Süd"', "power", "2023-12-31T23:15:00Z", 10234500),
        ("P-8", "power", "2023-12-31T22:00:00Z", 7000),
    ]


@pytest.mark.requirement("volt-zone", kind="boundary")
def test_zone_of_a_file(office):
    """Each file of Volt says how far its clock is from UTC."""
    zones = {"P-1": "+00:00", "P-2": "-03:30", "P-3": "+02:00"}
    office.load(*(volt(f"{meter},01.01.2024,00:15,1", zone=zone) for meter, zone in zones.items()))
    assert office.values("SELECT meter, at FROM readings ORDER BY meter") == [
        ("P-1", "2024-01-01T00:15:00Z"),
        ("P-2", "2024-01-01T03:45:00Z"),
        ("P-3", "2023-12-31T22:15:00Z"),
    ]


@pytest.mark.requirement("norda", kind="core")
def test_norda(office):
    """A byte order mark, a zone in each line, and two kinds of meters in one file."""
    text = norda("N-1 2024-01-01T00:30:15+01:00 1.234,5 kWh", "N-2 2024-01-01T00:00:00Z 98.004 l")
    assert office.run("import", "a.csv", a=text) == (0, "a.csv: 2 new, 0 changed\n", "")
    assert office.values(ALL) == [
        ("N-1", "power", "2023-12-31T23:30:15Z", 1234500),
        ("N-2", "water", "2024-01-01T00:00:00Z", 98004),
    ]


@pytest.mark.requirement("norda-numbers", kind="boundary")
def test_numbers_and_units(office):
    """Numbers are German, and every unit becomes watt hours or litres."""
    numbers = [
        "1.234.567 Wh",
        "1234,5 kWh",
        "0,000001 MWh",
        "1,4 MWh",
        "12,001 m3",
        "7,000 l",
        "1.000 m3",
        "5,1230 kWh",
    ]
    office.load(norda(*(f"N-{number} 2024-01-01T00:00:00Z {text}" for number, text in enumerate(numbers))))
    assert office.values("SELECT value, kind FROM readings ORDER BY meter") == [
        (1234567, "power"),
        (1234500, "power"),
        (1, "power"),
        (1400000, "power"),
        (12001, "water"),
        (7, "water"),
        (1000000, "water"),
        (5123, "power"),
    ]


@pytest.mark.requirement("suppliers", kind="integration")
def test_three_suppliers_in_a_call(office):
    """Files are known by what is in them, and the report has all meters with their units."""
    power = volt("P-1,01.01.2024,01:00,5", "P-1,01.02.2024,01:00,7.5")
    both = norda("N-1 2024-01-01T00:00:00Z 1 m3", "N-1 2024-02-01T00:00:00Z 3 m3")
    water = aqua("W-1;2024-01-01 00:00;1", "W-1;2024-02-01 00:00;2")
    status, output, _ = office.run("import", "a.csv", "b.csv", "c.csv", a=power, b=both, c=water)
    assert (status, output) == (0, "".join(f"{name}.csv: 2 new, 0 changed\n" for name in "abc"))
    assert office.report("2024-01") == ["N-1 water 2000 l", "P-1 power 2500 Wh", "W-1 water 1000 l"]


@pytest.mark.requirement("same-moment", kind="boundary")
def test_one_moment_in_two_zones(office):
    """A moment is the same in whichever zone it is written."""
    office.load(norda("N-1 2024-01-01T00:00:00Z 5 m3"))
    again = norda("N-1 2024-01-01T01:00:00+01:00 5000 l", "N-1 2023-12-31T22:30:00-01:30 6 m3")
    assert office.run("import", "a.csv", a=again)[1] == "a.csv: 0 new, 1 changed\n"
    assert office.values("SELECT at, value FROM readings") == [("2024-01-01T00:00:00Z", 6000)]


@pytest.mark.requirement("all-or-nothing-2", kind="error", retired="round-6")
def test_line_that_cannot_be_read(office):
    """The first line that cannot be read is named, and nothing is imported."""
    mistakes = [
        (volt("P-1,01.01.2024,00:15,1", "P-1,02.01.2024,00:15,1,5"), 5),
        (volt("P-1,2024-01-01,00:15,1"), 4),
        (volt("P-1,30.02.2024,00:15,1", issued="01.03.2024 00:00"), 5),
        (volt('P-1,01.01.2024,00:15,"1,5"'), 4),
        (norda("N-1 2024-01-01T00:00:00 1 kWh"), 3),
        (norda("N-1 2024-01-01T00:00:00Z 12.34,5 kWh"), 3),
        (norda("N-1 2024-01-01T00:00:00Z 1,5 Wh", issued="2024-02-01T00:00:00Z"), 4),
        (norda("N-1 2024-01-01T00:00:00Z 1,5 kwh"), 3),
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
@pytest.mark.parametrize("seed", [1, 2])
def test_readings_of_a_town(office, seed):
    """Whatever the suppliers send comes out of the view."""
    town = Town(seed, meters=60)
    office.load(*town.files())
    assert office.values(ALL) == readings(town.sent)


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
