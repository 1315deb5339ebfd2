"""The exchange's clock, and orders that end."""

import random

import pytest

SENT = "BID a rye 100 5 UNTIL 30\nASK b rye 120 7 BY farm UNTIL 20\nBID c oats 90 6 BY mill UNTIL 30\nBID d rye 95 1\n"


@pytest.mark.requirement("expired", kind="core")
def test_orders_end(bourse):
    """When the clock has passed their time, orders are gone, the earliest first and then as they came."""
    answers = bourse.answers(
        f"{SENT}BID e rye 99 4 UNTIL 25\nCLOCK 19\nCLOCK 31\nCANCEL a\nDEPTH rye 5\n"
    ).splitlines()[5:]
    expired = ["EXPIRED b 7", "EXPIRED e 4", "EXPIRED a 5", "EXPIRED c 6"]
    assert answers == ["CLOCK 19", *expired, "CLOCK 31", "ERR 8 unknown", "LEVEL BID 95 1 1", "END"]


@pytest.mark.requirement("expired", kind="boundary")
def test_gone_before(bourse):
    """What was traded, cancelled or cleared before its time does not expire, and of the rest what is left."""
    sent = f"{SENT}ASK x rye 100 2\nCLEAR farm\nCANCEL c\nCLOCK 500\n"
    assert bourse.answers(sent).splitlines()[-2:] == ["EXPIRED a 3", "CLOCK 500"]


@pytest.mark.requirement("expired", kind="boundary")
def test_until_at_the_time(bourse):
    """An order is gone before its time has passed by two, and rests before its time."""
    answers = bourse.answers("BID a rye 100 5 UNTIL 30\nCLOCK 29\nBEST rye\nCLOCK 31\nBEST rye\n").splitlines()[1:]
    assert answers == ["CLOCK 29", "BEST rye 100 5 - -", "EXPIRED a 5", "CLOCK 31", "BEST rye - - - -"]


@pytest.mark.requirement("ends-at", kind="boundary", retired="round-7")
def test_ends_at_its_time(bourse):
    """An order ends when the clock is set to its time, and none comes with the time at which the clock stands."""
    sent = "BID a rye 100 5 UNTIL 30\nCLOCK 30\nBID b rye 100 5 UNTIL 30\n"
    assert bourse.answers(sent) == "REST a 5\nEXPIRED a 5\nCLOCK 30\nERR 3 late\n"


@pytest.mark.requirement("expired", kind="integration")
def test_a_change_leaves_the_time(bourse):
    """An order that was changed has its time still, also when it was sent anew, and comes where it came last."""
    sent = f"{SENT}CHANGE a 101 5\nCHANGE c 90 2\nCHANGE b 120 8\nCLOCK 31\n"
    assert bourse.answers(sent).splitlines()[-4:] == ["EXPIRED b 8", "EXPIRED c 2", "EXPIRED a 5", "CLOCK 31"]


@pytest.mark.requirement("id-again", kind="integration", retired="round-10")
def test_id_of_an_order_that_has_ended(bourse):
    """An ID may be used again when its order has ended, and the new order has the old one's time no more."""
    sent = (
        "BID a rye 100 5 UNTIL 3\nCANCEL a\nBID a rye 100 6\nCLOCK 4\nBID b rye 90 1 UNTIL 5\nCLOCK 6\n"
        "BID b rye 90 1\nCLOCK 9\nBEST rye\n"
    )
    answers = [
        "REST a 5",
        "GONE a 5",
        "REST a 6",
        "CLOCK 4",
        "REST b 1",
        "EXPIRED b 1",
        "CLOCK 6",
        "REST b 1",
        "CLOCK 9",
        "BEST rye 100 6 - -",
    ]
    assert bourse.answers(sent).splitlines() == answers


@pytest.mark.requirement("clock", kind="error")
def test_refused(bourse):
    """The clock does not go back, and no order comes too late; of two faults the first code counts."""
    requests = [
        "CLOCK 7",
        "CLOCK 7",
        "CLOCK 6",
        "CLOCK 0",
        "CLOCK",
        "CLOCK 1000001",
        "BID a rye 1 1 UNTIL 6",
        "BID a rye 1 1 UNTIL 0",
    ]
    requests += [
        "BID a rye 1 1 UNTIL 9 BY mill",
        "BID a rye 1 1",
        "BID a rye 1 1 UNTIL 6",
        "BID a rye 1 1 UNTIL 9",
        "BID a rye 0 1 UNTIL 6",
        "BEST rye",
    ]
    codes = ["late", "word", "request", "word", "late", "word", "request"]
    answers = ["CLOCK 7", "CLOCK 7", *(f"ERR {number} {code}" for number, code in enumerate(codes, 3)), "REST a 1"]
    assert bourse.answers("\n".join(requests)).splitlines() == [
        *answers,
        "ERR 11 late",
        "ERR 12 duplicate",
        "ERR 13 word",
        "BEST rye 1 1 - -",
    ]


@pytest.mark.requirement("book-3", kind="core")
def test_book(bourse):
    """The book says when orders end and at which time the clock stands, and the next day begins there."""
    book = bourse.day(f"{SENT}ASK x rye 100 2\nCLOCK 11\n")[1]
    orders = [
        "BID a rye 100 3 UNTIL 30 HAD 2",
        "ASK b rye 120 7 BY farm UNTIL 20",
        "BID c oats 90 6 BY mill UNTIL 30",
        "BID d rye 95 1",
    ]
    assert (book.splitlines()[1], bourse.orders(book)) == ("CLOCK 11", orders)
    answers, book = bourse.day("CLOCK 10\nBID y rye 1 1 UNTIL 10\nCLOCK 21\n")
    assert answers == "ERR 1 late\nERR 2 late\nEXPIRED b 7\nCLOCK 21\n"
    assert (book.splitlines()[1], bourse.orders(book)) == ("CLOCK 21", [orders[0], *orders[2:]])


@pytest.mark.requirement("book-3-first-line", kind="core", retired="round-9")
def test_first_line(bourse):
    """The book that is written begins with its edition and with the clock, which stands at 0 at first."""
    assert bourse.day("BEST rye\n")[1] == "bourse 3\nCLOCK 0\n"


@pytest.mark.requirement("older-books", kind="integration")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "bourse 2\nBID a rye 100 7 BY mill HAD 3\nASK b rye 120 5 HAD 1\n",
            ["BID a rye 100 7 BY mill HAD 3", "ASK b rye 120 5 HAD 1"],
        ),
        ("bourse 3\nCLOCK 0\nBID a rye 100 7 UNTIL 9\n", ["BID a rye 100 7 UNTIL 9"]),
    ],
    ids=["third", "fifth"],
)
def test_books_of_all_deliveries(bourse, before, after):
    """Books of the third and the fifth delivery are read, with all that they have."""
    answers, book = bourse.day("BEST rye\nCLOCK 1\n", before)
    assert answers.splitlines()[-1] == "CLOCK 1"
    assert bourse.orders(book) == after
    assert "CLOCK 1" in book.splitlines()


@pytest.mark.requirement("book-3", kind="error")
@pytest.mark.parametrize(
    ("book", "line"), [("bourse 3\nBID a rye 100 7\n", 2), ("bourse 3\nCLOCK 5\nCLOCK 6\n", 3)], ids=["none", "two"]
)
def test_no_clock(bourse, book, line):
    """A book of this edition without its clock, or with two, is none."""
    bourse.write(book)
    status, answers, errors = bourse.run("BEST rye\n", with_book=True)
    assert (status, answers, errors.startswith(f"bourse: {bourse.path}:{line}: "), bourse.book()) == (3, "", True, book)


@pytest.mark.requirement("clock-day", kind="integration")
def test_any_day_of_the_clock(bourse):
    """Days on which orders of members end, trade and change are answered, and kept, as the contract has it."""
    dice, model, requests, now = random.Random(51), bourse.model(), [], 0
    for number in range(500):
        roll = dice.random()
        by = dice.choice(["", " BY mill", " BY farm"])
        until = f" UNTIL {now + dice.randint(1, 12)}" if dice.random() < 0.7 else ""
        request = f"{dice.choice(['BID', 'ASK'])} o{number} rye {dice.randint(97, 103)} {dice.randint(1, 9)}{by}{until}"
        if roll > 0.9:
            now += dice.randint(0, 3)
            request = f"CLOCK {now or 1}"
        elif roll > 0.75:
            request = f"CHANGE o{dice.randrange(number + 1)} {dice.randint(97, 103)} {dice.randint(1, 9)}"
        if model.would_know(request):
            requests.append(f"{request}\n")
    answers, book = bourse.day("".join(requests))
    model = bourse.model()
    assert answers == model.answers("".join(requests))
    assert book == model.book()
