"""Who comes loses where he would trade with himself; and what rests at a price and better."""

import random

import pytest

SENT = "ASK a rye 101 5 BY farm\nASK b rye 102 7 BY mill\nASK c rye 103 6 BY farm\nASK d oats 103 1 BY inn\n"


@pytest.mark.requirement("own-comes", kind="core")
def test_new_order_is_gone(bourse):
    """What is left of a new order is gone where it would trade with its own member; what rests stays."""
    answers = bourse.answers(f"{SENT}BID x rye 110 9 BY mill\nOPEN mill\nCANCEL x\nBEST rye\n").splitlines()[4:]
    assert answers == [
        "TRADE rye 101 5 x a",
        "VOID x 4",
        "ORDER ASK b rye 102 7",
        "END",
        "ERR 7 unknown",
        "BEST rye - - 102 7",
    ]


@pytest.mark.requirement("own-comes", kind="boundary")
def test_done_before(bourse):
    """A new order that is done, or whose price does not reach, before it meets its own member's is no such case."""
    answers = bourse.answers(f"{SENT}BID x rye 110 5 BY mill\nBID y rye 101 2 BY mill\n").splitlines()[4:]
    assert answers == ["TRADE rye 101 5 x a", "DONE x", "REST y 2"]


@pytest.mark.requirement("own-comes", kind="integration")
def test_sent_anew_by_a_change(bourse):
    """An order that a CHANGE sends anew is gone likewise, and in no book."""
    answers, book = bourse.day(f"{SENT}BID x rye 90 9 BY mill\nCHANGE x 102 9\n")
    assert answers.splitlines()[4:] == ["REST x 9", "TRADE rye 101 5 x a", "VOID x 4"]
    assert [line.split()[1] for line in bourse.orders(book)] == ["b", "c", "d"]


@pytest.mark.requirement("volume", kind="core")
def test_volume(bourse):
    """VOLUME is what rests on one side at a price and at better ones, of one good."""
    volumes = [
        "rye ASK 102 12",
        "rye ASK 100 0",
        "rye ASK 101 5",
        "rye ASK 1000000 18",
        "rye BID 96 9",
        "rye BID 1 10",
        "rye BID 97 0",
        "oats ASK 103 1",
        "barley BID 1 0",
    ]
    asked = "".join(f"VOLUME {volume.rpartition(' ')[0]}\n" for volume in volumes)
    answers = bourse.answers(f"{SENT}BID e rye 96 4\nBID f rye 96 5\nBID g rye 95 1\n{asked}").splitlines()[7:]
    assert answers == [f"VOLUME {volume}" for volume in volumes]


@pytest.mark.requirement("volume", kind="error")
def test_refused(bourse):
    """A VOLUME has a good, a side and a price."""
    requests = [
        "VOLUME rye",
        "VOLUME rye BUY 1",
        "VOLUME rye bid 1",
        "VOLUME rye BID 0",
        "VOLUME rye BID 1 1",
        "VOLUME BID rye 1",
    ]
    codes = ["request", "word", "word", "word", "request", "word"]
    assert bourse.answers("\n".join(requests)).splitlines() == [
        f"ERR {number} {code}" for number, code in enumerate(codes, 1)
    ]


@pytest.mark.requirement("volume", kind="integration")
def test_volume_of_any_day(bourse):
    """VOLUME is right after trades, changes, cancels and ends at prices of all sizes, and after a book is read."""
    dice, model, requests, now = random.Random(81), bourse.model(), [], 1
    for number in range(700):
        roll = dice.random()
        price = min(1000000, max(1, round(10 ** dice.uniform(0, 6))))
        price += 3 if price < 999990 and roll > 0.3 else 0
        side, other = ("BID", "ASK") if price < 30000 else ("ASK", "BID")
        until = now + dice.randint(1, 60)
        request = f"{side if roll < 0.5 else other} o{number} rye {price} {dice.randint(1, 99)} UNTIL {until}"
        if roll > 0.95:
            now += 1
            request = f"CLOCK {now}"
        elif roll > 0.75:
            request = f"VOLUME rye {dice.choice(['BID', 'ASK'])} {price}"
        elif roll > 0.65:
            request = dice.choice(
                [
                    f"CHANGE o{dice.randrange(number + 1)} {price} {dice.randint(1, 99)}",
                    f"CANCEL o{dice.randrange(number + 1)}",
                ]
            )
        if model.would_know(request):
            requests.append(f"{request}\n")
    asked = "".join(
        f"VOLUME rye {side} {price}\n"
        for side in ("BID", "ASK")
        for price in (1, 99, 100, 101, 9999, 10000, 10001, 12345, 999999, 1000000)
    )
    answers, book = bourse.day("".join(requests) + asked)
    model = bourse.model()
    assert answers == model.answers("".join(requests) + asked)
    assert bourse.answers(asked, with_book=True) == bourse.model(book).answers(asked)
