"""DEPTH: the best prices of both sides."""

import pytest

SENT = (
    "BID a rye 100 5\nBID b rye 99 50\nBID c rye 100 6\nBID d rye 7 1\nASK e rye 120 7\n"
    "ASK f rye 1000 1\nASK g rye 119 3\n"
    "BID h oats 101 9\n"
)


@pytest.mark.requirement("depth", kind="core")
def test_depth(bourse):
    """DEPTH has the best prices of the bids, then of the asks, best first, with quantity and number of orders."""
    answers = bourse.answers(f"{SENT}DEPTH rye 2\n").splitlines()[8:]
    assert answers == ["LEVEL BID 100 11 2", "LEVEL BID 99 50 1", "LEVEL ASK 119 3 1", "LEVEL ASK 120 7 1", "END"]


@pytest.mark.requirement("depth", kind="boundary")
def test_fewer(bourse):
    """Where there are fewer prices there are fewer lines, and END alone where there is none."""
    answers = bourse.answers(f"{SENT}CANCEL c\nCANCEL g\nDEPTH rye 1000000\nDEPTH barley 3\nDEPTH oats 1").splitlines()[
        10:
    ]
    rye = [
        "LEVEL BID 100 5 1",
        "LEVEL BID 99 50 1",
        "LEVEL BID 7 1 1",
        "LEVEL ASK 120 7 1",
        "LEVEL ASK 1000 1 1",
        "END",
    ]
    assert answers == [*rye, "END", "LEVEL BID 101 9 1", "END"]


@pytest.mark.requirement("depth", kind="error")
def test_refused(bourse):
    """A DEPTH has a good and a number of prices."""
    assert (
        bourse.answers("DEPTH rye\nDEPTH rye 0\nDEPTH rye 1000001\nDEPTH rye 1 1")
        == "ERR 1 request\nERR 2 word\nERR 3 word\nERR 4 request\n"
    )


@pytest.mark.requirement("depth", kind="integration")
def test_after_trades(bourse):
    """What was traded is in no DEPTH, nor a price of which nothing is left."""
    answers = bourse.answers(f"{SENT}BID x rye 120 4\nASK y rye 100 8\nDEPTH rye 1\nDEPTH rye 2\n").splitlines()
    assert answers[-8:] == [
        "LEVEL BID 100 3 1",
        "LEVEL ASK 120 6 1",
        "END",
        "LEVEL BID 100 3 1",
        "LEVEL BID 99 50 1",
        "LEVEL ASK 120 6 1",
        "LEVEL ASK 1000 1 1",
        "END",
    ]
