"""Orders trade as far as prices meet, and rest with what is left."""

import pytest


@pytest.mark.requirement("rest", kind="core")
def test_nothing_to_trade_with(bourse):
    """An order that meets none rests with all of its quantity."""
    answers = bourse.answers("BID b1 rye 100 7\nASK a1 rye 101 9\nBEST rye\n")
    assert answers == "REST b1 7\nREST a1 9\nBEST rye 100 7 101 9\n"


@pytest.mark.requirement("trade", kind="core")
def test_two_orders(bourse):
    """Two orders trade where their prices meet, at the price of the one that rests, for what both want."""
    bourse.apart(
        [
            ("ASK r rye 100 5\nBID c rye 120 5\n", "REST r 5\nTRADE rye 100 5 c r\nDONE c\n"),
            ("BID r rye 120 5\nASK c rye 120 5\n", "REST r 5\nTRADE rye 120 5 c r\nDONE c\n"),
            ("ASK r rye 100 5\nBID c rye 100 8\n", "REST r 5\nTRADE rye 100 5 c r\nREST c 3\n"),
            ("BID r rye 120 50\nASK c rye 90 8\n", "REST r 50\nTRADE rye 120 8 c r\nDONE c\n"),
        ]
    )


@pytest.mark.requirement("trade", kind="boundary")
def test_no_trade(bourse):
    """Two orders rest beside each other where prices do not meet, or goods or sides are not those of a trade."""
    scenes = [
        ("BID c rye 100 5", "BEST rye 100 5 101 5"),
        ("BID c oats 101 5", "BEST rye - - 101 5"),
        ("ASK c rye 90 5", "BEST rye - - 90 5"),
    ]
    bourse.apart([(f"ASK r rye 101 5\n{sent}\nBEST rye\n", f"REST r 5\nREST c 5\n{best}\n") for sent, best in scenes])


@pytest.mark.requirement("trade", kind="core")
def test_what_is_left_trades_on(bourse):
    """What is left of an order, resting or new, is there for the next one, and no more than that."""
    answers = bourse.answers("ASK a rye 100 10\nBID b rye 100 4\nBID c rye 100 9\nASK d rye 99 5\n")
    assert (
        answers
        == "REST a 10\nTRADE rye 100 4 b a\nDONE b\nTRADE rye 100 6 c a\nREST c 3\nTRADE rye 100 3 d c\nREST d 2\n"
    )


@pytest.mark.requirement("best-price", kind="core")
@pytest.mark.parametrize(
    ("resting", "coming", "prices"),
    [
        ("ASK {id} rye {price} 1", "BID c rye 1000000 4", ["9", "10", "100", "1000"]),
        ("BID {id} rye {price} 1", "ASK c rye 1 4", ["1000", "100", "10", "9"]),
    ],
    ids=["lowest-ask", "highest-bid"],
)
def test_best_price_first(bourse, resting, coming, prices):
    """A new order takes the lowest asks, or the highest bids, first, by their numbers."""
    sent = [resting.format(id=f"r{price}", price=price) for price in ("100", "9", "1000", "10")]
    answers = bourse.answers("\n".join([*sent, coming])).splitlines()
    assert answers[4:] == [*(f"TRADE rye {price} 1 c r{price}" for price in prices), "DONE c"]


@pytest.mark.requirement("first-come", kind="core")
def test_who_came_first(bourse):
    """Among orders of one price and one size those trade first that came first, whatever their IDs."""
    sent = "".join(f"ASK {id} rye 100 2\n" for id in ("m", "z", "a"))
    assert bourse.answers(sent + "BID c rye 100 6").splitlines()[3:6] == [
        f"TRADE rye 100 2 c {id}" for id in ("m", "z", "a")
    ]


@pytest.mark.requirement("time-first", kind="core", retired="round-4")
def test_time_before_size(bourse):
    """Among orders of one price those trade first that came first, however large."""
    sent = "ASK small rye 100 2\nASK large rye 100 50\nBID c rye 100 3\n"
    assert bourse.answers(sent).splitlines()[2:] == ["TRADE rye 100 2 c small", "TRADE rye 100 1 c large", "DONE c"]


@pytest.mark.requirement("time-first", kind="boundary", retired="round-4")
def test_time_of_what_is_left(bourse):
    """An order that has traded a part keeps its place before younger ones."""
    sent = "BID x rye 100 9\nBID y rye 100 8\nASK c rye 100 5\nASK d rye 100 5\n"
    assert bourse.answers(sent).splitlines()[4:] == ["TRADE rye 100 4 d x", "TRADE rye 100 1 d y", "DONE d"]


@pytest.mark.requirement("id-again", kind="boundary", retired="round-10")
@pytest.mark.parametrize("gone", ["CANCEL a", "BID b rye 100 5"], ids=["cancelled", "traded"])
def test_id_of_an_order_that_is_gone(bourse, gone):
    """The ID of an order that rests no more may be used again."""
    answers = bourse.answers(f"ASK a rye 100 5\n{gone}\nBID a rye 90 1\nBEST rye\n")
    assert answers.splitlines()[-2:] == ["REST a 1", "BEST rye 90 1 - -"]
