"""Meters that go round, and meters that are exchanged."""

import pytest
from files import aqua, norda, volt, workshop
from model import Town, monthly, readings

MONTHLY = "SELECT * FROM monthly ORDER BY meter, month"


@pytest.mark.requirement("round", kind="core")
def test_gone_round(office):
    """A power meter that shows less than before has gone round once."""
    lines = ["P-1,01.01.2024,00:00,99871.25", "P-1,01.02.2024,00:00,214.75", "P-1,01.03.2024,00:00,215"]
    office.load(volt(*lines, zone="+00:00"))
    months, values = office.tables(MONTHLY, "SELECT value FROM readings ORDER BY at")
    assert [row["amount"] for row in months] == [343500, 250]
    assert [row["value"] for row in values] == [99871250, 214750, 215000]


@pytest.mark.requirement("round", kind="boundary")
def test_last_litre(office):
    """A water meter goes round, too, and after 99999.999 comes 0; it may do so twice."""
    days = {"2024-01-01": "99999,999", "2024-02-01": "0", "2024-03-01": "95000", "2024-04-01": "0,001"}
    office.load(aqua(*(f"W-1;{day} 00:00;{value}" for day, value in days.items())))
    assert office.values("SELECT amount FROM monthly ORDER BY month") == [(1,), (95000000,), (5000001,)]


@pytest.mark.requirement("round", kind="boundary")
def test_estimate_over_the_zero(office):
    """The straight line goes on where the meter went round."""
    office.load(
        aqua(
            "W-1;2024-01-01 00:00;99990",
            "W-1;2024-01-31 00:00;99996",
            "W-1;2024-02-02 00:00;2",
            "W-1;2024-03-01 00:00;5",
        )
    )
    assert office.values(MONTHLY) == [("W-1", "water", "2024-01", 9000, 1), ("W-1", "water", "2024-02", 6000, 1)]


@pytest.mark.requirement("round-always", kind="core", retired="round-6")
def test_any_fall(office):
    """Whatever is less than at the reading before has gone round."""
    office.load(aqua("W-1;2024-01-01 00:00;50000", "W-1;2024-02-01 00:00;20000,5"))
    assert office.report("2024-01") == ["W-1 water 70000500 l"]


@pytest.mark.requirement("exchange", kind="core")
def test_exchange(office):
    """What was used is on the old meter until the exchange, and on the new one from then on."""
    office.load(volt("P-1,01.02.2024,00:00,1655.5", "P-1,01.03.2024,00:00,103", zone="+00:00"))
    assert (
        office.run("import", "a.csv", a=workshop("P-1,2024-02-16T10:30:00+01:00,2105.25,7", ""))[1]
        == "a.csv: 1 new, 0 changed\n"
    )
    assert office.report("2024-02") == ["P-1 power 545750 Wh"]
    assert office.values("SELECT count(*) FROM readings") == [(2,)]


@pytest.mark.requirement("exchange", kind="boundary")
def test_exchange_at_the_zero(office):
    """The old meter and the new one may go round as well."""
    office.load(
        workshop("P-1,2024-01-10T00:00:00Z,3,99000", "P-1,2024-01-20T00:00:00Z,0.5,90100"),
        norda("P-1 2024-01-01T00:00:00Z 99.990 kWh", "P-1 2024-02-01T00:00:00Z 10 kWh"),
    )
    assert office.report("2024-01") == [f"P-1 power {13000 + 1000500 + 9910000} Wh"]


@pytest.mark.requirement("exchange", kind="boundary")
def test_exchange_is_a_reading(office):
    """A month that begins with an exchange is no estimate, and the first and last thing that is known may be one."""
    office.load(
        workshop("W-1,2024-01-01T00:00:00Z,44,5", "W-1,2024-03-01T00:00:00+00:00,9,1"),
        aqua("W-1;2024-02-01 00:00;6", "W-1;2024-02-21 00:00;8"),
    )
    assert office.values(MONTHLY) == [("W-1", "water", "2024-01", 1000, 0), ("W-1", "water", "2024-02", 3000, 0)]


@pytest.mark.requirement("exchange-estimate", kind="boundary")
def test_estimates_beside_an_exchange(office):
    """The straight line ends and begins at the exchange."""
    office.load(
        aqua("W-1;2024-01-22 00:00;100", "W-1;2024-02-21 00:00;30"),
        workshop("W-1,2024-02-11T00:00:00Z,120,10"),
        aqua("W-1;2024-03-22 00:00;60"),
    )
    assert office.values(MONTHLY) == [("W-1", "water", "2024-02", 39000, 1)]


@pytest.mark.requirement("exchange-first", kind="boundary")
def test_list_before_the_readings(office):
    """An exchange of a meter that nobody has read is kept until somebody has."""
    office.load(workshop("P-1,2024-01-10T00:00:00Z,50,1"))
    assert (office.report("2024-01"), office.values("SELECT * FROM readings"), office.values(MONTHLY)) == ([], [], [])
    office.load(norda("P-1 2024-01-01T00:00:00Z 49 kWh", "P-1 2024-02-01T00:00:00Z 2 kWh"))
    assert office.report("2024-01") == ["P-1 power 2000 Wh"]


@pytest.mark.requirement("exchange-import", kind="core")
def test_list_again(office):
    """Exchanges are known by meter and moment."""
    first = workshop("P-1,2024-01-10T00:00:00Z,50,1", "P-2,2024-01-10T00:00:00Z,50,1")
    again = workshop(
        "P-1,2024-01-10T01:00:00+01:00,50.0,1.000", "P-2,2024-01-10T00:00:00Z,50,1.5", "P-1,2024-01-11T00:00:00Z,2,0"
    )
    output = office.run("import", "a.csv", "a.csv", "b.csv", a=first, b=again)[1]
    assert output == "a.csv: 2 new, 0 changed\na.csv: 0 new, 0 changed\nb.csv: 1 new, 1 changed\n"


@pytest.mark.requirement("all-or-nothing-3", kind="error", retired="round-6")
def test_mistakes_of_the_workshop(office):
    """A line of the list that cannot be read keeps the call from importing anything."""
    lines = ["P-1,2024-01-10T00:00:00,5,1", "P-1,2024-01-10T00:00:00Z,5", 'P-1,2024-01-10T00:00:00Z,"5,5",1']
    files = {f"f{number}": workshop("P-1,2024-01-09T00:00:00Z,5,1", line) for number, line in enumerate(lines)}
    answers = office.each(*(f"import b.csv {name}.csv" for name in files), b=aqua("W-1;2024-01-01 00:00;1"), **files)
    assert answers == [(1, "", f"error: {name}.csv:3: cannot read") for name in files]
    assert office.run("import", "b.csv")[1] == "b.csv: 1 new, 0 changed\n"


@pytest.mark.requirement("exchange", kind="integration")
@pytest.mark.parametrize("seed", [21, 22])
def test_months_of_a_busy_town(office, seed):
    """Exchanges and zeros of many meters come to what a model works out."""
    town = Town(seed, meters=50, busy=True)
    office.load(town.workshop(), *town.files())
    shown, months = office.contents("readings", "monthly")
    assert shown == readings(town.sent)
    assert months == monthly(town.sent, town.exchanges)


@pytest.mark.requirement("take-over-exchange", kind="integration")
def test_exchange_in_an_older_database(office):
    """The list of the workshop goes into the user's own database as well."""
    office.take_over()
    office.load(workshop('"P-77, Küche",2024-01-16T00:00:00Z,10300,1'))
    office.load(norda("X-1 2024-01-01T00:00:00Z 99.999 l", "X-1 2024-02-01T00:00:00Z 99.999 l"))
    lines = office.report("2024-01")
    assert "P-77, Küche power 10535500 Wh" in lines
    assert "X-1 water 0 l" in lines
