"""Large days of VOLUME."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("volume-pace", kind="core")
def test_volume_of_many_prices(bourse):
    """VOLUME is asked of any price while thousands of prices are asked, and orders come and go."""
    dice = random.Random(82)
    prices = dice.sample(range(1, 1000001), 9000)
    sent = [f"ASK a{price} rye {price} 1" for price in prices]
    answers = [f"REST a{price} 1" for price in prices]
    # Thousands of prices are below any that is asked for, and those below are counted here beforehand.
    ordered = sorted(prices)
    for n in range(3000):
        index = dice.randrange(5000, 9000)
        sent += [f"ASK x{n} rye 2 7", f"VOLUME rye ASK {ordered[index]}", f"CANCEL x{n}"]
        answers += [f"REST x{n} 7", f"VOLUME rye ASK {ordered[index]} {index + 8}", f"GONE x{n} 7"]
    bourse.keeps_pace(text(sent), text(answers))
