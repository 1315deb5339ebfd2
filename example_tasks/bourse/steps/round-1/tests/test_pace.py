"""Large days: what a request costs does not grow with what rests."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("pace", kind="core")
def test_many_prices(bourse):
    """Orders at thousands of prices come, trade and go."""
    dice = random.Random(11)
    sent = [f"ASK a{n} rye {dice.randint(500000, 900000)} 2" for n in range(8000)]
    sent += [f"BID b{n} rye {dice.randint(500000, 510000)} 3" for n in range(1500)]
    model = bourse.model()
    answers = model.answers(text(sent))
    leaving = [f"CANCEL {id}" for id in dice.sample(sorted(model.orders), 4000)]
    answers += model.answers(text(leaving))
    bourse.keeps_pace(text(sent + leaving), answers)


@pytest.mark.requirement("pace", kind="core")
def test_one_price(bourse):
    """Orders that rest by thousands at one price go from anywhere among them, while others take from them."""
    dice = random.Random(12)
    ids = [f"a{n}" for n in range(9000)]
    sent = [f"BID {id} rye 500 5" for id in ids]
    gone = dice.sample(ids, 8000)
    taken = sorted({*ids} - {*gone}, key=lambda id: int(id[1:]))
    sent += [f"CANCEL {id}" for id in gone] + [f"ASK b{n} rye 500 5" for n in range(900)]
    answers = [f"REST {id} 5" for id in ids] + [f"GONE {id} 5" for id in gone]
    for n in range(900):
        answers += [f"TRADE rye 500 5 b{n} {taken[n]}", f"DONE b{n}"]
    bourse.keeps_pace(text(sent), text(answers))


@pytest.mark.requirement("pace", kind="core")
def test_best_of_many(bourse):
    """BEST is asked after every order that comes to one price."""
    sent, answers = [], []
    for n in range(8000):
        sent += [f"ASK a{n} rye 700 3", "BEST rye"]
        answers += [f"REST a{n} 3", f"BEST rye - - 700 {3 * n + 3}"]
    bourse.keeps_pace(text(sent), text(answers))


@pytest.mark.requirement("pace", kind="integration")
def test_a_large_book(bourse):
    """A book of thousands of orders and goods is read, and written again."""
    orders = [f"BID a{n} good-{n % 5000} {n + 1} 4" for n in range(8000)]
    sent = [f"CANCEL a{n}" for n in range(0, 8000, 2)]
    answers = [f"GONE a{n} 4" for n in range(0, 8000, 2)]
    before = text(["bourse 1", *orders])
    model = bourse.model(before)
    model.answers(text(sent))
    bourse.keeps_pace(text(sent), text(answers), book=before, after=model.book())
