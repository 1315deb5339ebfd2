"""Large days of DEPTH and CHANGE."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("depth-pace", kind="core")
def test_depth_of_many_prices(bourse):
    """DEPTH is asked while thousands of prices are bid, at the best of which orders come and go."""
    prices = random.Random(21).sample(range(1, 500000), 8000)
    sent = [f"BID b{price} rye {price} 4" for price in prices]
    answers = [f"REST b{price} 4" for price in prices]
    best = sorted(prices)[-3:]
    for n in range(1800):
        sent += [f"BID x{n} rye {600000 + n} 1", "DEPTH rye 4", f"CANCEL x{n}"]
        levels = [f"LEVEL BID {price} 4 1" for price in reversed(best)]
        answers += [f"REST x{n} 1", f"LEVEL BID {600000 + n} 1 1", *levels, "END", f"GONE x{n} 1"]
    bourse.keeps_pace(text(sent), text(answers))


@pytest.mark.requirement("change-pace", kind="core")
def test_change_among_many(bourse):
    """Orders that rest by thousands at one price and go to another one by CHANGE."""
    ids = [f"a{n}" for n in range(9000)]
    moved = random.Random(22).sample(ids, 8000)
    sent = [f"ASK {id} rye 500 5" for id in ids] + [f"CHANGE {id} 501 5" for id in moved] + ["DEPTH rye 2"]
    answers = [f"REST {id} 5" for id in ids + moved] + ["LEVEL ASK 500 5000 1000", "LEVEL ASK 501 40000 8000", "END"]
    bourse.keeps_pace(text(sent), text(answers))
