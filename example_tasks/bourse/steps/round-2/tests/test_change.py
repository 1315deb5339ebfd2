"""CHANGE: another price and quantity for an order that rests."""

import pytest


@pytest.mark.requirement("change-place", kind="core")
def test_less_keeps_the_place(bourse):
    """An order of which less is left keeps its place before younger ones of its size."""
    sent = "ASK a rye 100 5\nASK b rye 100 3\nCHANGE a 100 3\nBID c rye 100 4\n"
    assert bourse.answers(sent).splitlines()[2:] == ["REST a 3", "TRADE rye 100 3 c a", "TRADE rye 100 1 c b", "DONE c"]


@pytest.mark.requirement("change-place", kind="boundary")
def test_the_same_keeps_the_place(bourse):
    """A CHANGE to what there is changes nothing, not even the place."""
    sent = "ASK a rye 100 5\nASK b rye 100 5\nCHANGE a 100 5\nBID c rye 100 5\n"
    assert bourse.answers(sent).splitlines()[2:] == ["REST a 5", "TRADE rye 100 5 c a", "DONE c"]


@pytest.mark.requirement("change-more", kind="core")
def test_more_goes_behind(bourse):
    """An order of which more is left than before is behind those that were there."""
    sent = "ASK a rye 100 2\nASK b rye 100 5\nCHANGE a 100 5\nBID c rye 100 6\n"
    assert bourse.answers(sent).splitlines()[2:] == ["REST a 5", "TRADE rye 100 5 c b", "TRADE rye 100 1 c a", "DONE c"]


@pytest.mark.requirement("change-price", kind="core")
def test_another_price(bourse):
    """An order with another price trades as a new one, under its ID, or rests behind those of this price."""
    sent = (
        "ASK a rye 100 5\nBID b rye 90 2\nASK c rye 95 1\nCHANGE a 95 1\nBID d rye 95 1\nCHANGE a 90 6\nDEPTH rye 5\n"
    )
    answers = ["REST a 1", "TRADE rye 95 1 d c", "DONE d", "TRADE rye 90 2 a b", "REST a 4", "LEVEL ASK 90 4 1", "END"]
    assert bourse.answers(sent).splitlines()[3:] == answers


@pytest.mark.requirement("change-price", kind="boundary")
def test_back_again(bourse):
    """An order that went to another price and came back is behind those that were there all the time."""
    sent = "ASK a rye 100 5\nASK b rye 100 5\nCHANGE a 101 5\nCHANGE a 100 5\nBID c rye 100 6\n"
    answers = ["REST a 5", "REST a 5", "TRADE rye 100 5 c b", "TRADE rye 100 1 c a", "DONE c"]
    assert bourse.answers(sent).splitlines()[2:] == answers


@pytest.mark.requirement("change-price", kind="boundary")
def test_all_of_it_trades(bourse):
    """An order of which a CHANGE leaves nothing is done, and known no more."""
    sent = "ASK a rye 100 5\nBID b rye 90 8\nCHANGE a 80 5\nCHANGE a 80 5\nBEST rye\n"
    assert bourse.answers(sent).splitlines()[2:] == [
        "TRADE rye 90 5 a b",
        "DONE a",
        "ERR 4 unknown",
        "BEST rye 90 3 - -",
    ]


@pytest.mark.requirement("change-left", kind="core", retired="round-3")
def test_quantity_is_what_is_left(bourse):
    """The quantity of a CHANGE is what is left of the order, whatever it has traded."""
    sent = "ASK a rye 100 9\nBID b rye 100 4\nCHANGE a 100 4\nBEST rye\n"
    assert bourse.answers(sent).splitlines()[3:] == ["REST a 4", "BEST rye - - 100 4"]


@pytest.mark.requirement("change-price", kind="integration")
def test_in_the_book(bourse):
    """An order that went behind is behind in the book, one that kept its place is not."""
    sent = "ASK a rye 100 9\nASK b rye 100 9\nASK c rye 100 9\nCHANGE b 101 9\nCHANGE a 100 7\n"
    book = bourse.day(sent)[1]
    assert bourse.orders(book) == ["ASK a rye 100 7", "ASK c rye 100 9", "ASK b rye 101 9"]


@pytest.mark.requirement("change-price", kind="error")
def test_refused(bourse):
    """A CHANGE that is refused changes nothing."""
    sent = "ASK a rye 100 9\nCHANGE b 100 9\nCHANGE a 0 9\nCHANGE a 100 0\nCHANGE a 100\nCHANGE a rye 100 9\nBEST rye"
    answers = "REST a 9\nERR 2 unknown\nERR 3 word\nERR 4 word\nERR 5 request\nERR 6 request\nBEST rye - - 100 9\n"
    assert bourse.answers(sent) == answers
