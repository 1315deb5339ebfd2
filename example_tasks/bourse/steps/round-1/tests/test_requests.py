"""CANCEL, BEST, and requests that are refused."""

import random

import pytest

RESTING = "BID one rye 100 5\n"


@pytest.mark.requirement("cancel", kind="core")
def test_cancel(bourse):
    """A cancelled order is gone, with what was left of it, and trades no more."""
    sent = "ASK a rye 100 9\nBID b rye 100 2\nCANCEL a\nBID c rye 100 1\nCANCEL a\nCANCEL b\n"
    answers = "REST a 9\nTRADE rye 100 2 b a\nDONE b\nGONE a 7\nREST c 1\nERR 5 unknown\nERR 6 unknown\n"
    assert bourse.answers(sent) == answers


@pytest.mark.requirement("cancel", kind="boundary")
def test_cancel_in_the_middle(bourse):
    """What rests before and behind a cancelled order trades as if it had never come."""
    sent = "".join(f"BID {id} rye 100 1\n" for id in "abcd") + "CANCEL b\nCANCEL d\nASK s rye 100 9\n"
    assert bourse.answers(sent).splitlines()[6:] == ["TRADE rye 100 1 s a", "TRADE rye 100 1 s c", "REST s 7"]


@pytest.mark.requirement("best", kind="core")
def test_best(bourse):
    """BEST has the best price of each side with all that rests at it, of this good alone."""
    sent = [
        "BEST rye",
        "BID a rye 100 5",
        "BID b rye 99 50",
        "BEST rye",
        "ASK c rye 120 8",
        "ASK d rye 120 7",
        "ASK e rye 1000 1",
        "BID f oats 110 1",
        "BEST rye",
        "BID g rye 120 9",
        "BEST rye",
        "CANCEL d",
        "CANCEL a",
        "BEST rye",
        "BEST oats",
    ]
    answers = [line for line in bourse.answers("\n".join(sent)).splitlines() if line.startswith("BEST")]
    assert answers == [
        "BEST rye - - - -",
        "BEST rye 100 5 - -",
        "BEST rye 100 5 120 15",
        "BEST rye 100 5 120 6",
        "BEST rye 99 50 1000 1",
        "BEST oats 110 1 - -",
    ]


WRONG = {
    "request": [
        "",
        "bid x rye 1 1",
        "BID",
        "BID x rye 1",
        "CANCEL",
        "CANCEL one two",
        "BEST",
        "SELL x rye 1 1",
        "HELP",
        " BEST rye",
        "BEST  rye",
        "BEST rye ",
    ],
    "word": [
        "BID x! rye 1 1",
        "ASK x r/e 1 1",
        "BID x rye 0 1",
        "BID x rye 1 0",
        "BID x rye 1000001 1",
        "BID x rye 1 1000001",
        "BID x rye 01 1",
        "ASK x rye +1 1",
        "ASK x rye 1.5 1",
        "ASK x rye -1 1",
        f"BID {'x' * 33} rye 1 1",
        "CANCEL a_b",
        "BEST a:b",
        "BID one rye 0 1",
        "BEST rye\r",
    ],
    "duplicate": ["BID one rye 1 1", "ASK one oats 1 1"],
    "unknown": ["CANCEL two", "CANCEL One"],
}


@pytest.mark.requirement("errors", kind="error")
def test_refused(bourse):
    """A request that is refused is answered with its line and the first code that applies, and changes nothing."""
    wrong = [(request, code) for code, requests in WRONG.items() for request in requests]
    answers = bourse.answers(RESTING + "\n".join(request for request, _ in wrong) + "\nBEST rye").splitlines()
    assert answers == [
        "REST one 5",
        *(f"ERR {number} {code}" for number, (_, code) in enumerate(wrong, 2)),
        "BEST rye 100 5 - -",
    ]


@pytest.mark.requirement("errors", kind="boundary")
def test_limits_belong_to_it(bourse):
    """The longest names and the largest numbers are right, and of two faults the first code counts."""
    longest = "Az09-" * 6 + "zz"
    sent = f"BID {longest} {longest} 1000000 1000000\nBID {longest} {longest} 0\nBID {longest} {longest} 0 1\n"
    assert bourse.answers(sent) == f"REST {longest} 1000000\nERR 2 request\nERR 3 word\n"


@pytest.mark.requirement("errors", kind="boundary")
def test_nothing(bourse):
    """A day without a request is a day."""
    assert (bourse.answers(""), bourse.answers("BID a rye 3 1\nBEST rye")) == ("", "REST a 1\nBEST rye 3 1 - -\n")


def any_day(seed, length=400):
    """Return requests of a day in a small room, in which most orders meet."""
    dice = random.Random(seed)
    requests, sent = [], []
    for number in range(length):
        roll = dice.random()
        if roll < 0.72:
            sent.append(f"o{number}")
            good = dice.choice(["rye", "oats"])
            requests.append(
                f"{dice.choice(['BID', 'ASK'])} o{number} {good} {dice.randint(95, 105)} {dice.randint(1, 9)}"
            )
        elif roll < 0.86 and sent:
            requests.append(f"CANCEL {sent.pop(dice.randrange(len(sent)))}")
        else:
            requests.append(f"BEST {dice.choice(['rye', 'oats'])}")
    return requests


@pytest.mark.requirement("day", kind="integration")
def test_any_day(bourse):
    """Days of all sorts of requests are answered as the contract has it, order after order."""
    for seed in (1, 2):
        model = bourse.model()
        requests = "".join(f"{request}\n" for request in any_day(seed) if model.would_know(request))
        assert bourse.answers(requests) == bourse.model().answers(requests)
