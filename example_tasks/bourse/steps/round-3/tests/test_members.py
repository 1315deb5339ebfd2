"""Orders of members."""

import random

import pytest

SENT = (
    "BID a rye 100 5 BY mill\nASK b rye 120 7 BY farm\nBID c oats 90 6 BY mill\nBID d rye 95 1\n"
    "BID e rye 99 4 BY mill\n"
)


@pytest.mark.requirement("open", kind="core")
def test_open(bourse):
    """OPEN has a member's resting orders of all goods, in the order in which they came, with what is left."""
    answers = bourse.answers(f"{SENT}ASK x rye 100 2\nCANCEL e\nOPEN mill\nOPEN farm\nOPEN nobody\n").splitlines()[8:]
    assert answers == ["ORDER BID a rye 100 3", "ORDER BID c oats 90 6", "END", "ORDER ASK b rye 120 7", "END", "END"]


@pytest.mark.requirement("open", kind="integration")
def test_open_after_change(bourse):
    """An order that was sent anew is the last of its member's, one that kept its place is where it was."""
    answers = bourse.answers(f"{SENT}CHANGE a 101 5\nCHANGE c 90 2\nOPEN mill\n").splitlines()[7:]
    assert answers == ["ORDER BID c oats 90 2", "ORDER BID e rye 99 4", "ORDER BID a rye 101 5", "END"]


@pytest.mark.requirement("clear", kind="core")
def test_clear(bourse):
    """CLEAR has all orders of one member gone, and nobody else's."""
    answers = bourse.answers(f"{SENT}CLEAR mill\nOPEN mill\nCANCEL c\nCLEAR mill\nDEPTH rye 5\n").splitlines()[5:]
    gone = ["GONE a 5", "GONE c 6", "GONE e 4", "END", "END", "ERR 8 unknown", "END"]
    assert answers == [*gone, "LEVEL BID 95 1 1", "LEVEL ASK 120 7 1", "END"]


@pytest.mark.requirement("members", kind="error")
def test_refused(bourse):
    """An order may end with BY and a member's word, and with nothing else."""
    wrong = [
        "BID x rye 1 1 BY",
        "BID x rye 1 1 BY a BY b",
        "BID x rye 1 1 by a",
        "BID x rye 1 1 HAD 1",
        "BID x rye 1 1 BY a HAD 1",
        "CANCEL x BY a",
    ]
    words = ["BID x rye 1 1 BY a_b", "OPEN a_b", "CLEAR a:b"]
    answers = bourse.answers("\n".join([*wrong, *words, "OPEN", "CLEAR a b", "OPEN a"])).splitlines()
    numbers = range(1, 12)
    codes = ["request"] * len(wrong) + ["word"] * len(words) + ["request"] * 2
    assert answers == [*(f"ERR {number} {code}" for number, code in zip(numbers, codes, strict=True)), "END"]


@pytest.mark.requirement("book-2", kind="core")
def test_book(bourse):
    """The book says whose an order is and what it has traded, where it has, and begins with its edition."""
    book = bourse.day(f"{SENT}ASK x rye 95 11\n")[1]
    assert bourse.orders(book) == ["ASK b rye 120 7 BY farm", "BID c oats 90 6 BY mill", "ASK x rye 95 1 HAD 10"]


@pytest.mark.requirement("book-2-first-line", kind="core", retired="round-5")
def test_first_line(bourse):
    """The book that is written begins with its edition."""
    assert bourse.day("BEST rye\n")[1] == "bourse 2\n"


@pytest.mark.requirement("book-2", kind="integration")
def test_next_day(bourse):
    """Members, and what has traded, are known on the next day."""
    bourse.day(f"{SENT}ASK x rye 100 2 BY farm\n")
    answers, book = bourse.day("CHANGE a 100 4\nOPEN mill\nCLEAR farm\n")
    opened = ["ORDER BID a rye 100 2", "ORDER BID c oats 90 6", "ORDER BID e rye 99 4", "END"]
    assert answers.splitlines() == ["REST a 2", *opened, "GONE b 7", "END"]
    assert bourse.orders(book)[0] == "BID a rye 100 2 BY mill HAD 2"


@pytest.mark.requirement("older-books", kind="integration")
def test_book_of_the_first_delivery(bourse):
    """A book of the first delivery is read, and what it has is nobody's and has traded nothing."""
    answers, book = bourse.day("CHANGE a 100 3\nOPEN mill\nBEST rye\n", "bourse 1\nBID a rye 100 7\nASK b rye 120 5\n")
    assert answers == "REST a 3\nEND\nBEST rye 100 3 120 5\n"
    assert bourse.orders(book) == ["BID a rye 100 3", "ASK b rye 120 5"]


@pytest.mark.requirement("change-whole", kind="core")
def test_change_is_of_the_whole(bourse):
    """The quantity of a CHANGE includes what the order has traded."""
    sent = "ASK a rye 100 9\nBID b rye 100 4\nCHANGE a 100 7\nBEST rye\nCHANGE a 101 10\nBEST rye\n"
    assert bourse.answers(sent).splitlines()[3:] == ["REST a 3", "BEST rye - - 100 3", "REST a 6", "BEST rye - - 101 6"]


@pytest.mark.requirement("change-whole", kind="core")
def test_nothing_is_left(bourse):
    """An order that has traded as much as a CHANGE allows, or more, is gone with what was left of it."""
    answers = "REST a 9\nTRADE rye 100 4 b a\nDONE b\nGONE a 5\nBEST rye - - - -\n"
    bourse.apart(
        [(f"ASK a rye 100 9\nBID b rye 100 4\nCHANGE a 100 {left}\nBEST rye\n", answers) for left in (4, 3, 1)]
    )


@pytest.mark.requirement("change-whole", kind="boundary")
def test_what_it_has_traded_in_all(bourse):
    """What an order has traded counts from when it was first sent, as the new one and as the resting one."""
    sent = "BID b rye 100 2\nASK a rye 100 9\nBID c rye 100 3\nCHANGE a 90 9\nBID d rye 90 1\nCHANGE a 95 7\nBEST rye\n"
    answers = ["REST a 4", "TRADE rye 90 1 d a", "DONE d", "REST a 1", "BEST rye - - 95 1"]
    assert bourse.answers(sent).splitlines()[-5:] == answers


def members_day(seed):
    dice = random.Random(seed)
    requests = []
    for number in range(400):
        roll, member = dice.random(), dice.choice(["mill", "farm", "inn"])
        if roll < 0.7:
            by = f" BY {member}" if dice.random() < 0.8 else ""
            verb = dice.choice(["BID", "ASK"])
            requests.append(f"{verb} o{number} rye {dice.randint(97, 103)} {dice.randint(1, 9)}{by}")
        elif roll < 0.85:
            requests.append(f"CHANGE o{dice.randrange(number + 1)} {dice.randint(97, 103)} {dice.randint(1, 9)}")
        else:
            requests.append(dice.choice([f"OPEN {member}", f"OPEN {member}", "DEPTH rye 3", "BEST rye"]))
    return [*requests, "CLEAR mill", "OPEN inn"]


@pytest.mark.requirement("members-day", kind="integration")
def test_any_day_of_members(bourse):
    """Days of members, changes and depths are answered, and kept, as the contract has it."""
    model = bourse.model()
    requests = "".join(f"{request}\n" for request in members_day(31) if model.would_know(request))
    answers, book = bourse.day(requests)
    model = bourse.model()
    assert answers == model.answers(requests)
    assert book == model.book()
