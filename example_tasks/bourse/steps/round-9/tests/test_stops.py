"""Stops: orders that wait for a price."""

import random

import pytest

SENT = "ASK a rye 100 5\nASK b rye 105 5\nASK c rye 110 5\nBID d rye 90 5\nBID e rye 85 5\n"


def after(bourse, requests, sent=SENT):
    return bourse.answers(sent + "".join(f"{request}\n" for request in requests)).splitlines()[len(sent.splitlines()) :]


@pytest.mark.requirement("stop", kind="core")
def test_woken(bourse):
    """A trade at its trigger or above wakes a bid, one at its trigger or below an ask, and it is an order then."""
    scenes = [
        (
            "BID s rye 100 105 2",
            "BID x rye 100 1",
            ["TRADE rye 100 1 x a", "DONE x", "WAKE s", "TRADE rye 100 2 s a", "DONE s"],
        ),
        (
            "BID s rye 99 105 2",
            "BID x rye 100 1",
            ["TRADE rye 100 1 x a", "DONE x", "WAKE s", "TRADE rye 100 2 s a", "DONE s"],
        ),
        ("ASK s rye 90 91 2", "ASK x rye 90 1", ["TRADE rye 90 1 x d", "DONE x", "WAKE s", "REST s 2"]),
        (
            "ASK s rye 95 85 6",
            "ASK x rye 90 1",
            ["TRADE rye 90 1 x d", "DONE x", "WAKE s", "TRADE rye 90 4 s d", "TRADE rye 85 2 s e", "DONE s"],
        ),
    ]
    rest = "REST a 5\nREST b 5\nREST c 5\nREST d 5\nREST e 5\nWAIT s\n"
    bourse.apart(
        [(f"{SENT}STOP {stop}\n{wakes}\n", rest + "\n".join(answers) + "\n") for stop, wakes, answers in scenes]
    )


@pytest.mark.requirement("stop", kind="boundary")
def test_not_woken(bourse):
    """A trade on the wrong side of its trigger or in another good wakes no stop, nor an order without a trade."""
    scenes = [
        ("BID s rye 101 105 2", "BID x rye 100 1", ["TRADE rye 100 1 x a", "DONE x"]),
        ("ASK s rye 89 85 6", "ASK x rye 90 1", ["TRADE rye 90 1 x d", "DONE x"]),
        ("BID s oats 1 105 2", "BID x rye 100 1", ["TRADE rye 100 1 x a", "DONE x"]),
        ("BID s rye 1 105 2", "BID x rye 99 1", ["REST x 1"]),
    ]
    rest = "REST a 5\nREST b 5\nREST c 5\nREST d 5\nREST e 5\nWAIT s\n"
    bourse.apart(
        [(f"{SENT}STOP {stop}\n{wakes}\n", rest + "\n".join(answers) + "\n") for stop, wakes, answers in scenes]
    )


@pytest.mark.requirement("stop", kind="boundary")
def test_trades_before_it_wake_nothing(bourse):
    """A stop waits for a trade that happens after it came."""
    answers = after(bourse, ["BID x rye 100 1", "STOP BID s rye 100 105 2", "BID y rye 1 1", "BID z rye 100 1"])
    assert answers[2:] == [
        "WAIT s",
        "REST y 1",
        "TRADE rye 100 1 z a",
        "DONE z",
        "WAKE s",
        "TRADE rye 100 2 s a",
        "DONE s",
    ]


@pytest.mark.requirement("stop-order", kind="core")
def test_who_came_first_is_next(bourse):
    """Of those that are woken the one that came first is next, also where another one's trades have woken it."""
    stops = ["STOP BID s rye 105 1 1", "STOP BID t rye 99 105 7", "STOP BID u rye 100 1 2", "STOP BID v rye 98 1 3"]
    answers = after(bourse, [*stops, "BID x rye 100 1"])[4:]
    woken = [
        "WAKE t",
        "TRADE rye 100 4 t a",
        "TRADE rye 105 3 t b",
        "DONE t",
        "WAKE s",
        "REST s 1",
        "WAKE u",
        "REST u 2",
        "WAKE v",
        "REST v 3",
    ]
    assert answers == ["TRADE rye 100 1 x a", "DONE x", *woken]


@pytest.mark.requirement("stop-order", kind="boundary")
def test_woken_stays_woken(bourse):
    """One request's trades wake both sides, and what they have woken becomes an order, whatever happens then."""
    stops = ["STOP ASK s rye 90 300 1", "STOP BID t rye 85 1 1", "STOP ASK u rye 84 300 1"]
    answers = after(bourse, [*stops, "ASK x rye 85 7"])[3:]
    assert answers == ["TRADE rye 90 5 x d", "TRADE rye 85 2 x e", "DONE x", "WAKE s", "REST s 1", "WAKE t", "REST t 1"]


@pytest.mark.requirement("stop-order", kind="integration")
def test_woken_by_a_change(bourse):
    """The trades of an order that a CHANGE sends anew wake stops as well."""
    answers = after(bourse, ["STOP BID s rye 100 1 1", "CHANGE d 100 2"])
    assert answers == ["WAIT s", "TRADE rye 100 2 d a", "DONE d", "WAKE s", "REST s 1"]


@pytest.mark.requirement("stop-waits", kind="core")
def test_it_does_not_rest(bourse):
    """No request knows a stop that waits, but CANCEL and those that would use its ID."""
    requests = [
        "STOP BID s rye 300 200 2 BY mill",
        "BEST rye",
        "DEPTH rye 1",
        "VOLUME rye BID 200",
        "OPEN mill",
        "CLEAR mill",
        "CHANGE s 1 1",
        "BID s rye 1 1",
        "STOP ASK s rye 1 1 1",
        "STOP BID a rye 1 1 1",
    ]
    answers = after(bourse, [*requests, "CANCEL s", "CANCEL s", "BID x rye 100 5", "BEST rye"])
    asked = [
        "BEST rye 90 5 100 5",
        "LEVEL BID 90 5 1",
        "LEVEL ASK 100 5 1",
        "END",
        "VOLUME rye BID 200 0",
        "END",
        "END",
    ]
    refused = [
        "ERR 12 unknown",
        "ERR 13 duplicate",
        "ERR 14 duplicate",
        "ERR 15 duplicate",
        "GONE s 2",
        "ERR 17 unknown",
    ]
    assert answers == ["WAIT s", *asked, *refused, "TRADE rye 100 5 x a", "DONE x", "BEST rye 90 5 105 5"]


@pytest.mark.requirement("stop-waits", kind="integration")
def test_cancelled_is_not_woken(bourse):
    """A stop that was cancelled is woken by no trade, nor one that was woken before."""
    requests = ["STOP BID s rye 100 1 2", "STOP BID t rye 100 1 3", "CANCEL s", "BID x rye 100 1", "BID y rye 100 1"]
    assert after(bourse, requests)[3:] == [
        "TRADE rye 100 1 x a",
        "DONE x",
        "WAKE t",
        "REST t 3",
        "TRADE rye 100 1 y a",
        "DONE y",
    ]


@pytest.mark.requirement("stop", kind="integration")
def test_own_member(bourse):
    """A stop that is woken is its member's order, and trades with its own no more than any other."""
    requests = ["STOP BID s rye 100 105 9 BY mill", "ASK m rye 101 1 BY mill", "BID x rye 100 1", "OPEN mill"]
    answers = [
        "TRADE rye 100 1 x a",
        "DONE x",
        "WAKE s",
        "TRADE rye 100 4 s a",
        "VOID s 5",
        "ORDER ASK m rye 101 1",
        "END",
    ]
    assert after(bourse, requests)[2:] == answers


@pytest.mark.requirement("stop", kind="error")
def test_refused(bourse):
    """A stop has a side, a trigger and what orders have, but no time."""
    wrong = [
        "STOP s rye 1 1 1",
        "STOP BID s rye 1 1 1 UNTIL 5",
        "STOP BID s rye 1 1 1 BY a UNTIL 5",
        "STOP BID s rye 1 1 1 BY",
    ]
    words = [
        "STOP BEST s rye 1 1 1",
        "STOP BID s rye 0 1 1",
        "STOP BID s rye 1 0 1",
        "STOP BID s rye 1 1 0",
        "STOP BID a! rye 1 1 1",
    ]
    answers = after(bourse, [*wrong, *words], sent="BEST rye\n")
    assert answers == [f"ERR {number} {'request' if number < 6 else 'word'}" for number in range(2, 11)]


@pytest.mark.requirement("book-4", kind="core")
def test_book(bourse):
    """Stops that wait are in the book behind the orders, in the order in which they came, and wait on the next day."""
    requests = (
        "STOP BID s rye 110 200 2 BY mill\nSTOP ASK t rye 85 80 1\nBID y rye 70 1\n"
        "STOP BID r rye 100 1 4\nSTOP BID q oats 1 1 1\nCANCEL q\n"
    )
    book = bourse.day(SENT + requests)[1].splitlines()
    assert book[6:10] == [
        "BID e rye 85 5",
        "BID y rye 70 1",
        "STOP BID s rye 110 200 2 BY mill",
        "STOP ASK t rye 85 80 1",
    ]
    assert book[10] == "STOP BID r rye 100 1 4"
    answers, after = bourse.day("BID s rye 1 1\nBID x rye 100 1\nOPEN mill\nBID z rye 110 10\nOPEN mill\n")
    trades = [
        "TRADE rye 100 4 z a",
        "TRADE rye 105 5 z b",
        "TRADE rye 110 1 z c",
        "DONE z",
        "WAKE s",
        "TRADE rye 110 2 s c",
        "DONE s",
    ]
    assert answers.splitlines() == [
        "ERR 1 duplicate",
        "TRADE rye 100 1 x a",
        "DONE x",
        "WAKE r",
        "REST r 4",
        "END",
        *trades,
        "END",
    ]
    assert [line for line in after.splitlines() if line.startswith("STOP")] == ["STOP ASK t rye 85 80 1"]


@pytest.mark.requirement("book-4-first-line", kind="core", retired="round-10")
def test_first_line(bourse):
    """The book that is written begins with its edition."""
    assert bourse.day("CLOCK 4\n")[1] == "bourse 4\nCLOCK 4\n"


@pytest.mark.requirement("book-4", kind="error")
def test_damaged(bourse):
    """A book with a stop whose ID an order has is refused."""
    book = "bourse 4\nCLOCK 0\nBID a rye 1 1\nSTOP BID a rye 1 1 1\n"
    bourse.write(book)
    status, answers, errors = bourse.run("BEST rye\n", with_book=True)
    assert (status, answers, errors.startswith(f"bourse: {bourse.path}:4: "), bourse.book()) == (3, "", True, book)


@pytest.mark.requirement("older-books", kind="integration")
def test_book_of_the_fifth_delivery(bourse):
    """A book with a clock and without stops is read with its clock."""
    answers = bourse.day("CLOCK 6\nBID b rye 1 1 UNTIL 7\nCLOCK 9\n", "bourse 3\nCLOCK 7\nBID a rye 100 7 UNTIL 8\n")[0]
    assert answers == "ERR 1 late\nREST b 1\nEXPIRED b 1\nEXPIRED a 7\nCLOCK 9\n"


@pytest.mark.requirement("stop-day", kind="integration")
def test_any_day_of_stops(bourse):
    """Days on which stops wake each other are answered, and kept, as the contract has it."""
    for seed in (91, 92):
        dice, model, requests = random.Random(seed), bourse.model(), []
        for number in range(400):
            roll = dice.random()
            by = dice.choice(["", "", " BY mill", " BY farm"])
            request = f"{dice.choice(['BID', 'ASK'])} o{number} rye {dice.randint(85, 115)} {dice.randint(1, 9)}{by}"
            if roll > 0.9:
                request = f"CANCEL o{dice.randrange(number + 1)}"
            elif roll > 0.4:
                side, trigger, price = dice.choice(["BID", "ASK"]), dice.randint(80, 120), dice.randint(85, 115)
                request = f"STOP {side} o{number} rye {trigger} {price} {dice.randint(1, 9)}{by}"
            if model.would_know(request):
                requests.append(f"{request}\n")
        answers, book = bourse.day("".join(requests), "bourse 4\nCLOCK 0\n")
        model = bourse.model()
        assert answers == model.answers("".join(requests))
        assert book == model.book()
