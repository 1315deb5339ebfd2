"""An ID is used once, and SHOW tells what became of it."""

import random

import pytest

SENT = (
    "ASK a rye 100 5\nBID b rye 100 2\nSTOP BID s rye 300 200 2\nBID c rye 90 4 UNTIL 3\n"
    "BID d rye 80 1\nCANCEL d\nCLOCK 4\n"
)


@pytest.mark.requirement("once", kind="core")
def test_an_id_is_used_once(bourse):
    """No order and no stop gets an ID that one ever had, whatever has become of that one."""
    again = "".join(f"BID {id} rye 1 1\nSTOP ASK {id} rye 1 1 1\n" for id in "abscd")
    assert bourse.answers(SENT + again).splitlines()[-10:] == [f"ERR {number} duplicate" for number in range(8, 18)]


@pytest.mark.requirement("once", kind="integration")
def test_on_all_later_days(bourse):
    """An ID is used on all later days as well, also one that was gone the day before."""
    book = bourse.day(SENT)[1]
    assert [line for line in book.splitlines() if line.startswith("USED")] == ["USED b", "USED c", "USED d"]
    answers, after = bourse.day("BID d rye 1 1\nBID b rye 1 1\nCANCEL s\n")
    assert answers == "ERR 1 duplicate\nERR 2 duplicate\nGONE s 2\n"
    assert after.splitlines()[2:] == ["ASK a rye 100 3 HAD 2", "USED b", "USED c", "USED d", "USED s"]
    assert bourse.answers("BID s rye 1 1\nSHOW s\n", with_book=True) == "ERR 1 duplicate\nSHOW s GONE\n"


@pytest.mark.requirement("once", kind="boundary")
def test_refused_requests_use_none(bourse):
    """A request that is refused uses no ID; one that was changed or voided keeps its own used."""
    sent = (
        "CLOCK 5\nBID x rye 0 1\nBID x rye 1 1 UNTIL 4\nSTOP BID x rye 1 1\nCANCEL x\nSHOW x\n"
        "BID x rye 1 1\nCHANGE x 2 1\nCHANGE x 2 2\n"
    )
    answers = [
        "CLOCK 5",
        "ERR 2 word",
        "ERR 3 late",
        "ERR 4 request",
        "ERR 5 unknown",
        "ERR 6 unknown",
        "REST x 1",
        "REST x 1",
        "REST x 2",
    ]
    assert bourse.answers(sent).splitlines() == answers


@pytest.mark.requirement("once", kind="integration")
def test_voided(bourse):
    """The ID of an order that met its own member's is used as well, and that of a stop by the order that it became."""
    sent = (
        "ASK a rye 5 9 BY mill\nBID v rye 5 1 BY mill\nBID v rye 1 1\nSTOP BID s rye 5 1 1\n"
        "BID w rye 5 1\nSHOW s\nSHOW v\nBID s rye 1 1\n"
    )
    answers = [
        "VOID v 1",
        "ERR 3 duplicate",
        "WAIT s",
        "TRADE rye 5 1 w a",
        "DONE w",
        "WAKE s",
        "REST s 1",
        "SHOW s RESTS BID rye 1 1",
        "SHOW v GONE",
        "ERR 8 duplicate",
    ]
    assert bourse.answers(sent).splitlines()[1:] == answers


@pytest.mark.requirement("show", kind="core")
def test_show(bourse):
    """SHOW has what rests with what is left, and says of anything else whether it waits or is gone."""
    asked = "".join(f"SHOW {id}\n" for id in ("a", "b", "c", "d", "s", "e"))
    answers = bourse.answers(SENT + asked).splitlines()[-6:]
    assert answers == [
        "SHOW a RESTS ASK rye 100 3",
        "SHOW b GONE",
        "SHOW c GONE",
        "SHOW d GONE",
        "SHOW s WAITS",
        "ERR 13 unknown",
    ]


@pytest.mark.requirement("show", kind="error")
def test_refused(bourse):
    """SHOW has one ID."""
    assert bourse.answers("SHOW\nSHOW a b\nSHOW a_b\n") == "ERR 1 request\nERR 2 request\nERR 3 word\n"


@pytest.mark.requirement("book-5", kind="core")
def test_used_are_sorted(bourse):
    """The IDs that are used are in the book in the order of their bytes, behind everything else."""
    ids = ["a10", "a9", "B", "-", "b", "Z", "0", "a-1"]
    sent = "".join(f"BID {id} rye 1 1\nCANCEL {id}\n" for id in ids) + "STOP BID s rye 1 1 1\nBID r rye 1 1\n"
    book = bourse.day(sent)[1]
    used = [f"USED {id}" for id in ("-", "0", "B", "Z", "a-1", "a10", "a9", "b")]
    assert book.splitlines() == ["bourse 5", "CLOCK 0", "BID r rye 1 1", "STOP BID s rye 1 1 1", *used]


@pytest.mark.requirement("book-5", kind="error")
@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ("BID a rye 1 1\nUSED a\n", 4),
        ("USED a\nUSED b\nUSED a\n", 5),
    ],
    ids=["rests", "twice"],
)
def test_damaged(bourse, lines, number):
    """A book with an ID twice, whatever its lines are, is refused."""
    book = f"bourse 5\nCLOCK 0\n{lines}"
    bourse.write(book)
    status, answers, errors = bourse.run("BEST rye\n", with_book=True)
    assert (status, answers, errors.startswith(f"bourse: {bourse.path}:{number}: "), bourse.book()) == (
        3,
        "",
        True,
        book,
    )


@pytest.mark.requirement("older-books", kind="integration")
@pytest.mark.parametrize(
    "before",
    [
        "bourse 1\nBID a rye 100 7\n",
        "bourse 4\nCLOCK 2\nBID a rye 100 7\nSTOP BID s rye 300 1 1\n",
    ],
    ids=["first", "ninth"],
)
def test_books_of_all_deliveries(bourse, before):
    """Of a book of an earlier delivery all is known that it has, and an ID that it has is used."""
    answers, after = bourse.day("BID a rye 1 1\nCANCEL a\nBID a rye 1 1\nBID b rye 1 1\n", before)
    assert answers == "ERR 1 duplicate\nGONE a 7\nERR 3 duplicate\nREST b 1\n"
    stops = [line for line in before.splitlines() if line.startswith("STOP")]
    clock = "CLOCK 2" if "CLOCK" in before else "CLOCK 0"
    assert after.splitlines() == ["bourse 5", clock, "BID b rye 1 1", *stops, "USED a"]


@pytest.mark.requirement("three-days", kind="integration")
def test_any_three_days(bourse):
    """Three days of everything, one after the other, are answered and kept as the contract has it."""
    dice, book, now, number = random.Random(101), "bourse 5\nCLOCK 0\n", 0, 0
    bourse.write(book)
    for _day in range(3):
        model, requests = bourse.model(book), []
        for _ in range(350):
            number += 1
            roll, by = dice.random(), dice.choice(["", "", " BY mill", " BY farm"])
            price, size, earlier = dice.randint(85, 115), dice.randint(1, 9), f"o{dice.randrange(number) + 1}"
            until = f" UNTIL {now + dice.randint(0, 9)}" if roll < 0.2 and now else ""
            request = f"{dice.choice(['BID', 'ASK'])} o{number} rye {price} {size}{by}{until}"
            if roll > 0.95:
                now += 1
                request = f"CLOCK {now}"
            elif roll > 0.9:
                request = dice.choice(["DEPTH rye 3", "RANGE rye", "OPEN mill", f"VOLUME rye BID {price}"])
            elif roll > 0.7:
                request = dice.choice([f"CHANGE {earlier} {price} {size}", f"CANCEL {earlier}", f"SHOW {earlier}"])
            elif roll > 0.5:
                request = f"STOP {dice.choice(['BID', 'ASK'])} o{number} rye {dice.randint(80, 120)} {price} {size}{by}"
            if model.would_know(request) and not (request.startswith("SHOW") and earlier not in model.used):
                requests.append(f"{request}\n")
        expected = bourse.model(book)
        answers, book = bourse.day("".join(requests))
        assert answers == expected.answers("".join(requests))
        assert book == expected.book()
