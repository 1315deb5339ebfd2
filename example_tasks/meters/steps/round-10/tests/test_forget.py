"""Meters are forgotten up to a day."""

import shlex

import pytest
from files import aqua, prices, workshop
from model import Town, kept, monthly, readings, stamp, suspects

READINGS = "SELECT meter, at, value FROM readings ORDER BY meter, at"
PRICES = prices("water,2024-01-01,100", "power,2024-01-01,31")
YEAR = aqua(*(f"{meter};2024-0{month}-01 00:00;{10 * month}" for meter in ("W-1", "W-2") for month in range(1, 5)))


def forget(office, *arguments):
    status, output, errors = office.run("forget", *arguments)
    assert (status, errors) == (0, "")
    return output


@pytest.mark.requirement("forget", kind="core")
def test_forget(office):
    """Readings and exchanges from before the day go, those of its first moment stay, and no other meter notices."""
    office.load(YEAR, workshop("W-1,2024-01-15T00:00:00Z,15,15"))
    assert forget(office, "W-1", "2024-03-01") == "W-1: 3 forgotten\n"
    assert [row[:2] for row in office.values(READINGS) if row[0] == "W-1"] == [
        ("W-1", "2024-03-01T00:00:00Z"),
        ("W-1", "2024-04-01T00:00:00Z"),
    ]
    assert office.values("SELECT meter, count(*) FROM monthly GROUP BY meter ORDER BY meter") == [
        ("W-1", 1),
        ("W-2", 3),
    ]
    assert office.each("report 2024-02", "report 2024-03", "forget W-1 2024-03-01") == [
        (0, "W-1 water - l\nW-2 water 10000 l", ""),
        (0, "W-1 water 10000 l\nW-2 water 10000 l", ""),
        (0, "W-1: 0 forgotten", ""),
    ]


@pytest.mark.requirement("forget-bills", kind="core")
def test_bills_stay(office):
    """Bills of a meter that is forgotten stay as they are, and there are no further ones."""
    office.load(PRICES, YEAR)
    assert office.each("bill 2024-01", "forget W-1 2025-01-01", "bill 2024-01", "bill 2024-02", "report 2024-02") == [
        (0, "W-1 1000 cents\nW-2 1000 cents", ""),
        (0, "W-1: 4 forgotten", ""),
        (0, "", ""),
        (0, "W-2 1000 cents", ""),
        (0, "W-2 water 10000 l", ""),
    ]
    assert office.values("SELECT meter, month, number, amount, cents FROM bills ORDER BY month, meter") == [
        ("W-1", "2024-01", 1, 10000, 1000),
        ("W-2", "2024-01", 1, 10000, 1000),
        ("W-2", "2024-02", 1, 10000, 1000),
    ]


@pytest.mark.requirement("forget-return", kind="core")
def test_it_does_not_come_back(office):
    """Old files and new corrections of what is forgotten are passed over, and not counted."""
    office.load(YEAR)
    forget(office, "W-1", "2024-03-01")
    listed = workshop("W-1,2024-02-29T23:59:59Z,1,2", "W-1,2024-03-09T00:00:00Z,32,0")
    newer = aqua(
        "W-1;2024-02-29 23:59;1", "W-1;2024-03-01 00:00;29", "W-1;2024-01-01 00:00;x", issued="2025-01-01 00:00"
    )
    assert office.run("import", "a.csv", "b.csv", "c.csv", a=YEAR, b=newer, c=listed) == (
        0,
        "a.csv: 0 new, 0 changed\nb.csv: 0 new, 1 changed, 1 rejected\nc.csv: 1 new, 0 changed\n",
        "",
    )
    assert [row for row in office.values(READINGS) if row[0] == "W-1"] == [
        ("W-1", "2024-03-01T00:00:00Z", 29000),
        ("W-1", "2024-04-01T00:00:00Z", 40000),
    ]


@pytest.mark.requirement("forget-return", kind="boundary")
def test_later_day_counts(office):
    """A meter may be forgotten before there is anything of it, and of two days the later one counts."""
    office.load(PRICES)
    days = [("W-1", "2024-02-01"), ("W-1", "2024-03-01"), ("W-2", "2024-03-01"), ("W-2", "2024-02-01")]
    answers = office.each(*(f"forget {meter} {day}" for meter, day in days))
    assert answers == [(0, f"{meter}: 0 forgotten", "") for meter, _ in days]
    assert office.run("import", "a.csv", a=YEAR)[1] == "a.csv: 4 new, 0 changed\n"
    assert office.values("SELECT min(at) FROM readings GROUP BY meter") == [("2024-03-01T00:00:00Z",)] * 2


@pytest.mark.requirement("forget-first", kind="boundary")
def test_what_is_left_stands_for_itself(office):
    """What is left is compared with nothing from before, so the first reading that is left is no suspect."""
    office.load(
        aqua("W-1;2024-01-01 00:00;50", "W-1;2024-02-01 00:00;4", "W-1;2024-02-11 00:00;3", "W-1;2024-03-01 00:00;9")
    )
    assert office.values("SELECT value FROM suspects ORDER BY at") == [(4000,), (3000,), (9000,)]
    forget(office, "W-1", "2024-01-02")
    assert office.values("SELECT value FROM suspects ORDER BY at") == [(3000,)]
    assert office.values("SELECT month, amount, estimated FROM monthly") == [("2024-02", 5000, 0)]


@pytest.mark.requirement("forget-rejects", kind="boundary")
def test_rejects_stay(office):
    """What was rejected stays where it is."""
    office.run("import", "a.csv", a=aqua("W-1;2024-01-01 00:00;x", "W-1;2024-01-02 00:00;5"))
    assert forget(office, "W-1", "2024-06-01") == "W-1: 1 forgotten\n"
    assert office.values("SELECT text FROM rejects") == [("W-1;2024-01-01 00:00;x",)]


@pytest.mark.requirement("forget-error", kind="error")
def test_wrong_calls(office):
    """Without a date that exists nothing is removed, and without a database there is a message."""
    calls = ["W-1", "W-1 2024-02-30", "W-1 2024-06", "W-1 2024-06-01 x", ""]
    without, _, *wrong = office.each(
        "forget W-1 2024-01-01", "import a.csv", *(f"forget {call}" for call in calls), a=YEAR
    )
    assert without == (1, "", "error: no meters.db")
    for status, output, errors in wrong:
        assert (status, output) == (2, "")
        assert "usage:" in errors
    assert office.values("SELECT count(*) FROM readings") == [(8,)]


@pytest.mark.requirement("forget", kind="integration")
@pytest.mark.parametrize("seed", [71, 72])
def test_a_town_that_forgets(office, seed):
    """What is left of many meters is what a model works out of it, also after all files were imported again."""
    town = Town(seed, meters=12, busy=True)
    sent = town.with_slips()
    files = [*town.files(sent), town.workshop()]
    office.load(*files)
    days = {meter: f"2024-03-{town.random.randrange(1, 29):02}" for meter in town.random.sample(sorted(town.meters), 3)}
    answers = office.each(*(f"forget {shlex.quote(meter)} {day}" for meter, day in days.items()))
    assert [answer[::2] for answer in answers] == [(0, "")] * 3
    office.load(*files)
    left = [each for each in kept(sent) if stamp(each.moment) >= days.get(each.meter, "")]
    exchanges = [each for each in town.exchanges if stamp(each.moment) >= days.get(each.meter, "")]
    read = {each.meter for each in left}
    exchanges = [each for each in exchanges if each.meter in read]
    shown, doubted, months = office.contents("readings", "suspects", "monthly")
    assert shown == readings(left)
    assert doubted == suspects(left, exchanges)
    assert months == monthly(left, exchanges)


@pytest.mark.requirement("take-over-forget", kind="integration")
def test_an_older_database(office):
    """A meter of the user's database can be forgotten, and its corrected bills stay."""
    office.take_over()
    select = "SELECT month, number, amount, cents FROM bills WHERE meter = 'N-2' ORDER BY month, number"
    bills = office.values(select)
    assert [row[:2] for row in bills][:2] == [("2024-01", 1), ("2024-01", 2)]
    assert bills[0] == ("2024-01", 1, 3253, 685)
    amounts = office.values("SELECT amount FROM monthly WHERE meter = 'N-2' AND month = '2024-01'")
    assert amounts == [(bills[0][2] + bills[1][2],)]
    assert forget(office, "N-2", "2024-06-01") == "N-2: 4 forgotten\n"
    assert office.values(select) == bills
    assert office.values("SELECT count(*) FROM readings WHERE meter = 'N-2'") == [(0,)]
