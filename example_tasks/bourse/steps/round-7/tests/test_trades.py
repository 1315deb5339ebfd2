"""Busts and ranges of the day's trades, and orders that are valid through their time."""

import random

import pytest

# Trades: 1 of 3 at 100, 2 of 2 at 105, 3 of 4 at 98, 4 of 1 at 105.
SENT = (
    "ASK a rye 100 3\nASK b rye 105 9\nBID c rye 105 5\nBID d rye 98 4\nASK e rye 98 4\n"
    "BID f rye 105 1\nASK g oats 7 2\nBID h oats 8 2\n"
)


def after(bourse, requests):
    answers = bourse.answers(SENT + "".join(f"{request}\n" for request in requests)).splitlines()
    return answers[answers.index("DONE h") + 1 :]


@pytest.mark.requirement("range", kind="core")
def test_range(bourse):
    """RANGE has the lowest and the highest price and the quantity of a good's trades."""
    assert after(bourse, ["RANGE rye", "RANGE oats", "RANGE barley"]) == [
        "RANGE rye 98 105 10",
        "RANGE oats 7 7 2",
        "RANGE barley - - 0",
    ]


@pytest.mark.requirement("bust", kind="core")
def test_bust(bourse):
    """A busted trade counts in no range, and no order is touched."""
    requests = [
        "DEPTH rye 9",
        "BUST 3",
        "RANGE rye",
        "BUST 2",
        "RANGE rye",
        "BUST 4",
        "RANGE rye",
        "BUST 1",
        "RANGE rye",
        "RANGE oats",
        "DEPTH rye 9",
        "CANCEL b",
    ]
    depth = ["LEVEL ASK 105 6 1", "END"]
    ranges = [
        "BUSTED 3",
        "RANGE rye 100 105 6",
        "BUSTED 2",
        "RANGE rye 100 105 4",
        "BUSTED 4",
        "RANGE rye 100 100 3",
        "BUSTED 1",
        "RANGE rye - - 0",
    ]
    assert after(bourse, requests) == [*depth, *ranges, "RANGE oats 7 7 2", *depth, "GONE b 6"]


@pytest.mark.requirement("bust", kind="integration")
def test_trades_after_a_bust(bourse):
    """Trades after a bust count, and go on with the numbers."""
    requests = ["BUST 1", "BUST 3", "BID x rye 105 2", "RANGE rye", "BUST 6", "RANGE rye", "BUST 7"]
    answers = [
        "BUSTED 1",
        "BUSTED 3",
        "TRADE rye 105 2 x b",
        "DONE x",
        "RANGE rye 105 105 5",
        "BUSTED 6",
        "RANGE rye 105 105 3",
        "ERR 15 unknown",
    ]
    assert after(bourse, requests) == answers


@pytest.mark.requirement("bust", kind="error")
def test_refused(bourse):
    """A trade is busted once, and one that there is not today never."""
    requests = ["BUST 6", "BUST 5", "BUST 5", "BUST 0", "BUST", "BUST one", "RANGE", "RANGE r_e"]
    codes = [
        "ERR 9 unknown",
        "BUSTED 5",
        "ERR 11 unknown",
        "ERR 13 request",
        "ERR 14 word",
        "ERR 15 request",
        "ERR 16 word",
    ]
    answers = after(bourse, requests)
    # Whether 0 is no number or that of no trade, no letter says.
    assert answers.pop(3) in ("ERR 12 word", "ERR 12 unknown")
    assert answers == codes


@pytest.mark.requirement("range", kind="integration")
def test_a_day_is_one_run(bourse):
    """The next day has no trades yet, and counts from 1."""
    bourse.day(SENT)
    answers = bourse.answers("RANGE rye\nBUST 1\nBID x rye 105 2\nBUST 1\n", with_book=True)
    assert answers == "RANGE rye - - 0\nERR 2 unknown\nTRADE rye 105 2 x b\nDONE x\nBUSTED 1\n"


@pytest.mark.requirement("through", kind="core")
def test_valid_through(bourse):
    """An order rests, and trades, while the clock stands at its time, and is gone when it is set to a later one."""
    sent = "BID a rye 100 5 UNTIL 30\nCLOCK 30\nASK b rye 100 1\nCLOCK 30\nCLOCK 31\nBEST rye\n"
    assert bourse.answers(sent).splitlines()[1:] == [
        "CLOCK 30",
        "TRADE rye 100 1 b a",
        "DONE b",
        "CLOCK 30",
        "EXPIRED a 4",
        "CLOCK 31",
        "BEST rye - - - -",
    ]


@pytest.mark.requirement("through", kind="boundary")
def test_late(bourse):
    """An order may come with the time at which the clock stands, and with none before."""
    sent = "CLOCK 30\nBID a rye 100 5 UNTIL 30\nBID b rye 100 5 UNTIL 29\nCLOCK 31\n"
    assert bourse.answers(sent) == "CLOCK 30\nREST a 5\nERR 3 late\nEXPIRED a 5\nCLOCK 31\n"


@pytest.mark.requirement("bust-day", kind="integration")
def test_any_day_of_busts(bourse):
    """Days on which half of the trades are busted are answered as the contract has it."""
    dice, model, requests = random.Random(71), bourse.model(), []
    for number in range(500):
        standing = [n for n, trade in enumerate(model.trades, 1) if trade]
        side, good = dice.choice(["BID", "ASK"]), dice.choice(["rye", "oats"])
        request = f"{side} o{number} {good} {dice.randint(90, 110)} {dice.randint(1, 9)}"
        if dice.random() > 0.6 and standing:
            request = dice.choice([f"BUST {dice.choice(standing)}", "RANGE rye", "RANGE oats"])
        model.answers(request)
        requests.append(f"{request}\n")
    sent = "".join(requests)
    assert bourse.answers(sent) == bourse.model().answers(sent)
