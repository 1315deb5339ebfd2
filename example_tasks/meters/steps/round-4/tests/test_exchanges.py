"""Meters that go round, and meters that are exchanged."""

import pytest
from files import aqua, norda, volt, workshop
from model import Town, monthly, readings

TOWNS = [Town(seed, meters=25, busy=True) for seed in (21, 22)]


@pytest.mark.requirement("round", kind="core")
@pytest.mark.imports(
    volt(
        "Round,01.01.2024,00:00,99871.25", "Round,01.02.2024,00:00,214.75", "Round,01.03.2024,00:00,215", zone="+00:00"
    )
)
def test_gone_round(seen):
    """A power meter that shows less than before has gone round once."""
    assert seen.values("monthly", "amount", "Round") == [(343500,), (250,)]
    assert seen.values("readings", "value", "Round") == [(99871250,), (214750,), (215000,)]


@pytest.mark.requirement("round", kind="boundary")
@pytest.mark.imports(
    aqua(
        "Litre;2024-01-01 00:00;99999,999",
        "Litre;2024-02-01 00:00;0",
        "Litre;2024-03-01 00:00;95000",
        "Litre;2024-04-01 00:00;0,001",
    )
)
def test_last_litre(seen):
    """A water meter goes round, too, and after 99999.999 comes 0; it may do so twice."""
    assert seen.values("monthly", "amount", "Litre") == [(1,), (95000000,), (5000001,)]


@pytest.mark.requirement("round", kind="boundary")
@pytest.mark.imports(
    aqua(
        "Over;2024-01-01 00:00;99990",
        "Over;2024-01-31 00:00;99996",
        "Over;2024-02-02 00:00;2",
        "Over;2024-03-01 00:00;5",
    )
)
def test_estimate_over_the_zero(seen):
    """The straight line goes on where the meter went round."""
    assert seen.values("monthly", "month amount estimated", "Over") == [("2024-01", 9000, 1), ("2024-02", 6000, 1)]


@pytest.mark.requirement("round-always", kind="core", retired="round-6")
@pytest.mark.imports(aqua("Fall;2024-01-01 00:00;50000", "Fall;2024-02-01 00:00;20000,5"), asks=["report 2024-01"])
def test_any_fall(seen):
    """Whatever is less than at the reading before has gone round."""
    assert seen.report("2024-01", "Fall") == ["Fall water 70000500 l"]


@pytest.mark.requirement("exchange", kind="core")
@pytest.mark.imports(
    volt("Exchange,01.02.2024,00:00,1655.5", "Exchange,01.03.2024,00:00,103", zone="+00:00"),
    workshop("Exchange,2024-02-16T10:30:00+01:00,2105.25,7", ""),
)
def test_exchange(seen):
    """What was used is on the old meter until the exchange, and on the new one from then on."""
    assert seen.imported() == ["1 new, 0 changed"]
    assert seen.values("monthly", "month amount estimated", "Exchange") == [("2024-02", 545750, 0)]
    assert len(seen.rows("readings", "Exchange")) == 2


@pytest.mark.requirement("exchange", kind="boundary")
@pytest.mark.imports(
    [
        workshop("Zero,2024-01-10T00:00:00Z,3,99000", "Zero,2024-01-20T00:00:00Z,0.5,90100"),
        norda("Zero 2024-01-01T00:00:00Z 99.990 kWh", "Zero 2024-02-01T00:00:00Z 10 kWh"),
    ],
    asks=["report 2024-01"],
)
def test_exchange_at_the_zero(seen):
    """The old meter and the new one may go round as well."""
    assert seen.report("2024-01", "Zero") == [f"Zero power {13000 + 1000500 + 9910000} Wh"]


@pytest.mark.requirement("exchange", kind="boundary")
@pytest.mark.imports(
    [
        workshop("First,2024-01-01T00:00:00Z,44,5", "First,2024-03-01T00:00:00+00:00,9,1"),
        aqua("First;2024-02-01 00:00;6", "First;2024-02-21 00:00;8"),
    ]
)
def test_exchange_is_a_reading(seen):
    """A month that begins with an exchange is no estimate, and the first and last thing that is known may be one."""
    assert seen.values("monthly", "month amount estimated", "First") == [("2024-01", 1000, 0), ("2024-02", 3000, 0)]


@pytest.mark.requirement("exchange-estimate", kind="boundary")
@pytest.mark.imports(
    [
        aqua("Beside;2024-01-22 00:00;100", "Beside;2024-02-21 00:00;30"),
        workshop("Beside,2024-02-11T00:00:00Z,120,10"),
        aqua("Beside;2024-03-22 00:00;60"),
    ]
)
def test_estimates_beside_an_exchange(seen):
    """The straight line ends and begins at the exchange."""
    assert seen.values("monthly", "month amount estimated", "Beside") == [("2024-02", 39000, 1)]


@pytest.mark.requirement("exchange-first", kind="boundary")
@pytest.mark.imports(
    workshop("Before,2024-01-10T00:00:00Z,50,1"),
    norda("Before 2024-01-01T00:00:00Z 49 kWh", "Before 2024-02-01T00:00:00Z 2 kWh"),
    asks=["report 2024-01"],
)
def test_list_before_the_readings(seen):
    """An exchange of a meter that nobody has read is kept until somebody has."""
    assert seen.report("2024-01", "Before", call=0) == []
    assert seen.rows("readings", "Before", call=0) == seen.rows("monthly", "Before", call=0) == []
    assert seen.report("2024-01", "Before") == ["Before power 2000 Wh"]


@pytest.mark.requirement("exchange-import", kind="core")
@pytest.mark.imports(
    workshop("Again-1,2024-01-10T00:00:00Z,50,1", "Again-2,2024-01-10T00:00:00Z,50,1"),
    [
        workshop("Again-1,2024-01-10T00:00:00Z,50,1", "Again-2,2024-01-10T00:00:00Z,50,1"),
        workshop(
            "Again-1,2024-01-10T01:00:00+01:00,50.0,1.000",
            "Again-2,2024-01-10T00:00:00Z,50,1.5",
            "Again-1,2024-01-11T00:00:00Z,2,0",
        ),
    ],
)
def test_list_again(seen):
    """Exchanges are known by meter and moment."""
    assert seen.imported(call=0) == ["2 new, 0 changed"]
    assert seen.imported() == ["0 new, 0 changed", "1 new, 1 changed"]


@pytest.mark.requirement("all-or-nothing-3", kind="error", retired="round-6")
def test_mistakes_of_the_workshop(office):
    """A line of the list that cannot be read keeps the call from importing anything."""
    lines = ["P-1,2024-01-10T00:00:00,5,1", "P-1,2024-01-10T00:00:00Z,5", 'P-1,2024-01-10T00:00:00Z,"5,5",1']
    files = {f"f{number}": workshop("P-1,2024-01-09T00:00:00Z,5,1", line) for number, line in enumerate(lines)}
    answers = office.each(*(f"import b.csv {name}.csv" for name in files), b=aqua("W-1;2024-01-01 00:00;1"), **files)
    assert answers == [(1, "", f"error: {name}.csv:3: cannot read") for name in files]
    assert office.run("import", "b.csv")[1] == "b.csv: 1 new, 0 changed\n"


@pytest.mark.requirement("exchange", kind="integration")
@pytest.mark.parametrize("town", [town.imported([town.workshop(), *town.files()]) for town in TOWNS])
def test_months_of_a_busy_town(seen, town):
    """Exchanges and zeros of many meters come to what a model works out."""
    assert seen.tuples("readings", town.meters) == readings(town.sent)
    assert seen.tuples("monthly", town.meters) == monthly(town.sent, town.exchanges)


@pytest.mark.requirement("take-over-exchange", kind="integration")
def test_exchange_in_an_older_database(office):
    """The list of the workshop goes into the user's own database as well."""
    office.take_over()
    office.load(
        workshop('"P-77, Küche",2024-01-16T00:00:00Z,10300,1'),
        norda("X-1 2024-01-01T00:00:00Z 99.999 l", "X-1 2024-02-01T00:00:00Z 99.999 l"),
    )
    lines = office.report("2024-01")
    assert "P-77, Küche power 10535500 Wh" in lines
    assert "X-1 water 0 l" in lines
