"""Large days of orders of all sizes at one price."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("size-pace", kind="core")
def test_all_sizes_at_one_price(bourse):
    """Small orders take from the largest of thousands, which is another one each time."""
    dice = random.Random(42)
    sent = [f"ASK a{n} rye 500 {dice.randint(900, 1000000)}" for n in range(9000)]
    sent += [f"BID b{n} rye 500 {dice.randint(1, 900)}" for n in range(3000)]
    bourse.keeps_pace(text(sent), bourse.model().answers(text(sent)))
