"""Nobody trades with himself; and a request of which the letter says two things."""

import random
import re

import pytest

SENT = "ASK a rye 100 5 BY mill\nASK b rye 101 7 BY farm\nASK c rye 102 6 BY mill\nASK d rye 103 1\n"


@pytest.mark.requirement("own-rests", kind="core", retired="round-8")
def test_resting_order_is_gone(bourse):
    """A resting order of the same member is gone instead of trading, and the new order goes on."""
    answers = bourse.answers(f"{SENT}BID x rye 110 10 BY mill\nOPEN mill\n").splitlines()[4:]
    assert answers == [
        "VOID a 5",
        "TRADE rye 101 7 x b",
        "VOID c 6",
        "TRADE rye 103 1 x d",
        "REST x 2",
        "ORDER BID x rye 110 2",
        "END",
    ]


@pytest.mark.requirement("own-orders", kind="boundary")
def test_only_what_would_trade(bourse):
    """Own orders that the new one does not reach, by its price or because it is done, stay."""
    sent = f"{SENT}BID x rye 99 1 BY mill\nBID y rye 110 2 BY farm\nOPEN farm\nOPEN mill\n"
    answers = ["REST x 1", "TRADE rye 100 2 y a", "DONE y", "ORDER ASK b rye 101 7", "END"]
    opened = ["ORDER ASK a rye 100 3", "ORDER ASK c rye 102 6", "ORDER BID x rye 99 1", "END"]
    assert bourse.answers(sent).splitlines()[4:] == [*answers, *opened]


@pytest.mark.requirement("own-orders", kind="boundary")
def test_nobody_is_not_a_member(bourse):
    """Orders without a member trade with each other, and members with other members."""
    sent = f"{SENT}BID x rye 110 5 BY inn\nCLEAR mill\nCLEAR farm\nBID y rye 110 1\n"
    answers = bourse.answers(sent).splitlines()[4:]
    assert answers == [
        "TRADE rye 100 5 x a",
        "DONE x",
        "GONE c 6",
        "END",
        "GONE b 7",
        "END",
        "TRADE rye 103 1 y d",
        "DONE y",
    ]


@pytest.mark.requirement("own-rests", kind="integration", retired="round-8")
def test_sent_anew_by_a_change(bourse):
    """An order that a CHANGE sends anew does not trade with its own member's either, on the next day neither."""
    bourse.day(f"{SENT}BID x rye 90 8 BY mill\n")
    answers = bourse.answers("CHANGE x 101 9\n", with_book=True)
    assert answers == "VOID a 5\nTRADE rye 101 7 x b\nREST x 2\n"


def own_days(bourse, seed):
    dice, model, requests = random.Random(seed), bourse.model(), []
    for number in range(400):
        side, member = dice.choice(["BID", "ASK"]), dice.choice(["mill", "farm"])
        request = f"{side} o{number} rye {dice.randint(98, 102)} {dice.randint(1, 9)} BY {member}"
        if dice.random() > 0.8:
            request = f"CHANGE o{dice.randrange(number + 1)} {dice.randint(98, 102)} {dice.randint(1, 9)}"
        if model.would_know(request):
            requests.append(f"{request}\n")
    return "".join(requests)


@pytest.mark.requirement("own-orders", kind="integration")
def test_any_day_of_two_members(bourse):
    """Days of two members who meet themselves all the time are answered as the contract has it."""
    requests = own_days(bourse, 61)
    assert bourse.answers(requests) == bourse.model().answers(requests)


@pytest.mark.requirement("bust-doubt", kind="core", retired="round-7")
def test_question_is_asked(workspace):
    """QUESTIONS.md names BUST and quotes both of the sentences that cannot be kept together."""
    questions = " ".join(re.sub(r"[>*_`\"]", " ", workspace.read_text("QUESTIONS.md")).split()).lower()
    for words in ("bust n", "a bust touches no order", "both orders get back what they traded in it"):
        assert words.replace("bust n", "bust") in questions, f"QUESTIONS.md does not have: {words}"


@pytest.mark.requirement("bust-doubt", kind="core", retired="round-7")
def test_neither_is_built(bourse):
    """BUST is refused until there is an answer, and what it is about in doubt stays; the rest is built."""
    answers = bourse.answers(
        f"{SENT}BID x rye 100 2 BY mill\nBID y rye 101 4\nBUST 1\nBUST 9\nDEPTH rye 9\n"
    ).splitlines()[4:]
    levels = ["LEVEL BID 100 2 1", "LEVEL ASK 101 3 1", "LEVEL ASK 102 6 1", "LEVEL ASK 103 1 1", "END"]
    assert answers == [
        "VOID a 5",
        "REST x 2",
        "TRADE rye 101 4 y b",
        "DONE y",
        "ERR 7 request",
        "ERR 8 request",
        *levels,
    ]
