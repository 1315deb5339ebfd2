"""Among orders of one price the largest trades first."""

import random

import pytest


@pytest.mark.requirement("size-first", kind="core")
@pytest.mark.parametrize(("side", "other"), [("ASK", "BID"), ("BID", "ASK")], ids=["asks", "bids"])
def test_largest_first(bourse, side, other):
    """Of orders of one price the largest trades first, whenever it came, and equal ones as they came."""
    sent = "".join(
        f"{side} {id} rye 100 {size}\n" for id, size in [("a", 3), ("b", 20), ("c", 100), ("d", 20), ("e", 4)]
    )
    answers = bourse.answers(f"{sent}{other} x rye 100 147\n").splitlines()[5:]
    # Of c are left 100, which are all; then b and d, then e, then a.
    assert answers == [
        *(f"TRADE rye 100 {n} x {id}" for n, id in [(100, "c"), (20, "b"), (20, "d"), (4, "e"), (3, "a")]),
        "DONE x",
    ]


@pytest.mark.requirement("size-first", kind="core")
def test_what_is_left_counts(bourse):
    """An order that has traded a part is behind those of which more is left."""
    sent = "ASK a rye 100 10\nASK b rye 100 8\nASK c rye 100 6\nBID x rye 100 3\nBID y rye 100 3\nBID z rye 100 4\n"
    answers = bourse.answers(sent).splitlines()[3:]
    trades = ["TRADE rye 100 3 x a", "DONE x", "TRADE rye 100 3 y b", "DONE y", "TRADE rye 100 4 z a", "DONE z"]
    assert answers == trades


@pytest.mark.requirement("size-first", kind="boundary")
def test_equal_by_what_is_left(bourse):
    """Of orders of which equally much is left by now, the one that came first trades first."""
    sent = "ASK a rye 100 5\nASK b rye 100 9\nASK c rye 100 5\nBID x rye 100 4\nBID y rye 100 11\n"
    answers = bourse.answers(sent).splitlines()[3:]
    assert answers == [
        "TRADE rye 100 4 x b",
        "DONE x",
        "TRADE rye 100 5 y a",
        "TRADE rye 100 5 y b",
        "TRADE rye 100 1 y c",
        "DONE y",
    ]


@pytest.mark.requirement("size-first", kind="boundary")
def test_price_before_size(bourse):
    """A better price comes before a larger order."""
    sent = "BID a rye 100 900\nBID b rye 101 1\nASK x rye 90 2\n"
    assert bourse.answers(sent).splitlines()[2:] == ["TRADE rye 101 1 x b", "TRADE rye 100 1 x a", "DONE x"]


@pytest.mark.requirement("size-first", kind="integration")
def test_after_a_change(bourse):
    """An order that a CHANGE made smaller is behind larger ones, and among equal ones where it came."""
    sent = "ASK a rye 100 9\nASK b rye 100 5\nASK c rye 100 6\nCHANGE a 100 5\nBID x rye 100 12\n"
    answers = bourse.answers(sent).splitlines()[4:]
    assert answers == ["TRADE rye 100 6 x c", "TRADE rye 100 5 x a", "TRADE rye 100 1 x b", "DONE x"]


@pytest.mark.requirement("size-first", kind="integration")
def test_next_day(bourse):
    """Sizes count on the next day, and the book keeps to the order in which orders came."""
    book = bourse.day("ASK a rye 100 5\nASK b rye 100 9\nASK c rye 100 9\nBID w rye 100 1\n")[1]
    assert [line.split()[1] for line in bourse.orders(book)] == ["a", "b", "c"]
    answers = bourse.answers("BID x rye 100 10\n", with_book=True)
    assert answers == "TRADE rye 100 9 x c\nTRADE rye 100 1 x b\nDONE x\n"


@pytest.mark.requirement("size-day", kind="integration")
def test_any_day_at_one_price(bourse):
    """Days on which nearly all meet at one price are answered as the contract has it."""
    dice, model, requests = random.Random(41), bourse.model(), []
    for number in range(500):
        roll = dice.random()
        request = f"{'ASK' if roll < 0.5 else 'BID'} o{number} rye 100 {dice.randint(1, 12 if roll < 0.5 else 16)}"
        if roll > 0.8:
            request = f"CHANGE o{dice.randrange(number + 1)} 100 {dice.randint(1, 12)}"
        if model.would_know(request):
            requests.append(f"{request}\n")
    sent = "".join(requests)
    assert bourse.answers(sent) == bourse.model().answers(sent)
