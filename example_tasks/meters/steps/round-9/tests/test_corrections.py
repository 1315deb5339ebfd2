"""Corrections of bills, and a request that contradicts itself."""

import pytest
from files import aqua, at, norda, prices, volt
from model import Town, cost, monthly

BILLS = "SELECT meter, month, number, amount, cents FROM bills ORDER BY meter, month, number"
TARIFF = [("water", "2023-01-01", "199.9"), ("power", "2023-01-01", "31.25"), ("power", "2024-03-13", "34.875")]
PRICES = prices("water,2024-01-01,100", "power,2024-01-01,31")
MONTHS = aqua(
    "W-1;2024-01-01 00:00;10", "W-1;2024-02-01 00:00;14", "W-2;2024-01-01 00:00;10", "W-2;2024-02-01 00:00;11"
)


@pytest.fixture(scope="module")
def story(shared_office):
    """What `bill` printed after each import of a year: {(import, month): its answer}.

    Each test looks at its own meters, whose names begin with the same letter.
    """
    year = iter(range(2031, 2099))

    def newer(*lines):
        """A file that counts more than all before."""
        return aqua(*lines, issued=f"{next(year)}-01-01 00:00")

    shown = {"A-1": 14, "A-2": 11, "B-1": 14, "C-1": 14, "D-1": 14}
    lines = [
        f"{meter};2024-0{month}-01 00:00;{value}"
        for meter, last in shown.items()
        for month, value in [(1, 10), (2, last)]
    ]
    power = ["E-1,01.01.2024,00:00,10", "E-1,01.02.2024,00:00,14", "E-2,01.01.2024,00:00,10", "E-2,01.02.2024,00:00,11"]
    imports = [
        [
            prices("water,2024-01-01,100", "power,2024-01-01,100"),
            aqua(*lines, "F-1;2024-01-01 00:00;0", "F-1;2024-03-01 00:00;60"),
            volt(*power, zone="+00:00"),
        ],
        [
            newer("A-1;2024-02-01 00:00;13,5", "B-1;2024-02-01 00:00;15", "C-1;2024-02-01 00:00;14,001"),
            newer("B-1;2024-02-01 00:00;14", "D-1;2024-02-01 00:00;9"),
            prices("power,2024-01-11,200"),
            volt("E-2,11.01.2024,00:00,10.9", zone="+00:00"),
            aqua("F-1;2024-02-01 00:00;20", "F-3;2024-01-01 00:00;0", "F-3;2024-02-01 00:00;1"),
        ],
        [
            newer("A-1;2024-02-01 00:00;20", "A-2;2024-01-01 00:00;9", "B-1;2024-02-01 00:00;15"),
            volt("E-1,01.02.2024,00:00,16.2", zone="+00:00", issued="01.01.2031 00:00"),
        ],
        [newer("B-1;2024-02-01 00:00;14")],
    ]
    answers = {}
    for number, texts in enumerate(imports):
        shared_office.load(*texts)
        months = ["2024-01", "2024-02"][: 2 if number < 2 else 1]
        given = shared_office.each(*(f"bill {month}" for month in months))
        answers |= {(number, month): answer for month, answer in zip(months, given, strict=False)}
    return answers


def printed(story, letter, month="2024-01"):
    """Return the lines of the meters of a letter after each of the imports after which the month was billed."""
    answers = [answer for (_, billed), answer in story.items() if billed == month]
    assert [(status, errors) for status, _, errors in answers] == [(0, "")] * len(answers)
    return [[line for line in output.splitlines() if line.startswith(letter)] for _, output, _ in answers]


@pytest.mark.requirement("correction", kind="core")
def test_corrections(story, shared_office):
    """A meter whose amount has changed gets the difference on one more bill, and the others get nothing."""
    assert printed(story, "A") == [
        ["A-1 400 cents", "A-2 100 cents"],
        ["A-1 -50 cents"],
        ["A-1 650 cents", "A-2 100 cents"],
        [],
    ]
    rows = [row for row in shared_office.rows(f"SELECT * FROM ({BILLS})") if row["meter"].startswith("A")]
    assert [list(row) for row in shared_office.rows("SELECT * FROM bills LIMIT 2")] == [
        ["meter", "month", "number", "amount", "cents"]
    ] * 2
    assert [tuple(row.values()) for row in rows] == [
        ("A-1", "2024-01", 1, 4000, 400),
        ("A-1", "2024-01", 2, -500, -50),
        ("A-1", "2024-01", 3, 6500, 650),
        ("A-2", "2024-01", 1, 1000, 100),
        ("A-2", "2024-01", 2, 1000, 100),
    ]


@pytest.mark.requirement("correction", kind="boundary")
def test_back_again(story):
    """An amount that goes back to what it was is corrected, too, and one that went there and back in between is not."""
    assert printed(story, "B") == [["B-1 400 cents"], [], ["B-1 100 cents"], ["B-1 -100 cents"]]


@pytest.mark.requirement("correction-prices", kind="boundary")
def test_rules_of_today(story):
    """A new price alone corrects nothing; with another amount the month costs what it costs by the prices of today."""
    assert printed(story, "E") == [["E-1 400 cents", "E-2 100 cents"], [], ["E-1 640 cents"], []]


@pytest.mark.requirement("correction", kind="boundary")
def test_no_cents(story, shared_office):
    """A correction may be of 0 cents."""
    assert printed(story, "C") == [["C-1 400 cents"], ["C-1 0 cents"], [], []]
    bills = [row for row in shared_office.values(BILLS) if row[0] == "C-1"]
    assert bills == [("C-1", "2024-01", 1, 4000, 400), ("C-1", "2024-01", 2, 1, 0)]


@pytest.mark.requirement("correction", kind="boundary")
def test_no_amount(story, shared_office):
    """A month that has no amount any more is not corrected."""
    assert printed(story, "D") == [["D-1 400 cents"], [], [], []]
    assert shared_office.values("SELECT * FROM monthly WHERE meter = 'D-1'") == []


@pytest.mark.requirement("correction", kind="core")
def test_estimate_is_replaced(story):
    """A true reading takes the place of an estimate, in both months that it is between."""
    assert printed(story, "F") == [["F-1 3100 cents"], ["F-1 -1100 cents", "F-3 100 cents"], [], []]
    assert printed(story, "F", "2024-02") == [["F-1 2900 cents"], ["F-1 1100 cents"]]


def corrected_town(seed):
    """Return a town of which many readings are sent once more, with other values."""
    town = Town(seed, meters=20)
    first = [prices(*map(",".join, TARIFF)), *town.files()]
    ((issued, town.late),) = town.versions([at("2025-01-01 00:00")])
    return town.imported(first, town.files(town.late, issued), asks=["bill 2024-03"], group="corrections")


@pytest.mark.requirement("correction", kind="integration")
@pytest.mark.parametrize("town", [corrected_town(seed) for seed in (61, 62)])
def test_corrections_of_a_town(seen, town):
    """After all corrections the bills of a meter add up to what a model works out."""
    tariff = [(kind, at(f"{day} 00:00"), cents) for kind, day, cents in TARIFF]
    before = {row[0]: row[3] for row in monthly(town.sent) if row[2] == "2024-03"}
    costs = {meter: cost(town.sent, (), tariff, meter, "2024-03") for meter in before}
    lines = [f"{meter} {costs[meter]} cents" for meter in before]
    assert seen.printed("bill 2024-03", *town.meters, call=0) == lines
    now = list({(each.meter, each.moment): each for each in [*town.sent, *town.late]}.values())
    after = {row[0]: row[3] for row in monthly(now) if row[2] == "2024-03"}
    changed = {meter: cost(now, (), tariff, meter, "2024-03") for meter in after if after[meter] != before.get(meter)}
    lines = [f"{meter} {changed[meter] - costs.get(meter, 0)} cents" for meter in changed]
    assert seen.printed("bill 2024-03", *town.meters) == lines
    totals = {}
    for meter, amount, cents in seen.values("bills", "meter amount cents", *town.meters):
        amounts, total = totals.get(meter, (0, 0))
        totals[meter] = amounts + amount, total + cents
    assert totals == {meter: (amount, changed.get(meter, costs.get(meter))) for meter, amount in after.items()}


@pytest.mark.requirement("take-over-numbers", kind="integration")
def test_bills_of_an_older_database(office):
    """Bills of the user's database have the number 1, and are corrected only if the amount changes."""
    office.take_over()
    assert office.bill("2024-01") == []
    select = "SELECT number, amount, cents FROM bills WHERE meter = 'N-1' AND month = '2024-01' ORDER BY number"
    assert office.values(select) == [(1, 205500, 6371)]
    office.load(norda("N-1 2024-02-01T00:00:00Z 1.441 kWh", issued="2025-01-01T00:00:00Z"))
    assert office.bill("2024-01") == ["N-1 31 cents"]
    assert office.values(select) == [(1, 205500, 6371), (2, 1000, 31)]


@pytest.mark.requirement("forget-doubt", kind="boundary")
def test_nothing_is_forgotten(office):
    """As long as nobody knows which of the two holds, neither bills nor the readings behind them go."""
    office.load(PRICES, MONTHS)
    billed, _ = office.each("bill 2024-01", "forget W-2")
    assert billed == (0, "W-1 400 cents\nW-2 100 cents", "")
    bills, readings = office.tables("SELECT number, cents FROM bills ORDER BY meter", "SELECT * FROM readings")
    assert bills == [{"number": 1, "cents": 400}, {"number": 1, "cents": 100}]
    assert len(readings) == 4


@pytest.mark.requirement("forget-doubt", kind="integration")
def test_nothing_is_forgotten_by_hand(office):
    """The user's own database still has the meter that is to be forgotten, with its bills."""
    office.take_over()
    assert "W-1002 water 3009 l" in office.report("2024-01")
    assert office.values("SELECT number, cents FROM bills WHERE meter = 'W-1002' AND month = '2024-01'") == [(1, 633)]
