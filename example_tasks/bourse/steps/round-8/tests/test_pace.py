"""Large days of VOLUME."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("volume-pace", kind="core")
def test_volume_of_many_prices(bourse):
    """VOLUME is asked of any price while thousands of prices are asked, and orders come and go."""
    dice = random.Random(82)
    prices = dice.sample(range(3, 1000001), 8000)
    sent = [f"ASK a{price} rye {price} 1" for price in prices]
    answers = [f"REST a{price} 1" for price in prices]
    ordered = sorted(prices)
    for n in range(600):
        sent.append(f"ASK x{n} rye 2 7")
        answers.append(f"REST x{n} 7")
        for index in [dice.randrange(4000, 8000) for _ in range(10)]:  # So many prices are better.
            sent.append(f"VOLUME rye ASK {ordered[index]}")
            answers.append(f"VOLUME rye ASK {ordered[index]} {index + 8}")
        sent.append(f"CANCEL x{n}")
        answers.append(f"GONE x{n} 7")
    bourse.keeps_pace(text(sent), text(answers))
