"""Large days of orders of all sizes at one price."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("size-pace", kind="core")
def test_all_sizes_at_one_price(bourse):
    """Small orders take from the largest of thousands, which is another one each time."""
    dice = random.Random(42)
    sent = [f"ASK a{n} rye 500 {dice.randint(900, 1000000)}" for n in range(8000)]
    sent += [f"BID b{n} rye 500 {dice.randint(1, 900)}" for n in range(3000)]
    bourse.keeps_pace(text(sent), bourse.model().answers(text(sent)))


@pytest.mark.requirement("size-pace", kind="core")
def test_smaller_by_change(bourse):
    """Orders that rest by thousands at one price are made smaller, one after the other, and nothing else."""
    sent = [f"BID a{n} rye 500 1000" for n in range(5000)]
    sent += [f"CHANGE a{n} 500 {n + 1}" for n in range(5000)] + ["ASK b rye 500 4999"]
    answers = [f"REST a{n} 1000" for n in range(5000)]
    model = bourse.model()
    answers = model.answers(text(sent))
    bourse.keeps_pace(text(sent), answers)
