"""Edition 4: quotients of negative numbers, in patterns and not in decks that are older."""

import functools
import random

import pytest
from model import NUMBERS, POWERS, Run, chance_codes, deck, pattern, showing, shown
from tool import asks, decks, ends, outs, patterns

CASES = [(-7, 2, -4, 1), (-7, -2, 4, 1), (7, -2, -3, 1), (7, 2, 3, 1), (-8, 2, -4, 0), (-1, 32767, -1, 32766)]
CASES += [
    (-32768, 7, -4682, 6),
    (-32768, 32767, -2, 32766),
    (32767, -32768, 0, 32767),
    (-1, -32768, 1, 32767),
    (0, -5, 0, 0),
]


def dividing(left, right):
    parts = [("set", "r1", left), ("div", "r1", right), ("set", "r2", left), ("set", "r3", right), ("mod", "r2", "r3")]
    return showing(parts, ["r1", "r2"])


FLAGS = ".width 2\nset r1, -9\nmod r1, 5\njlt bad\njeq bad\nset r1, -1\ndiv r1, 5\njge bad\nknit 1\nbad: row"


@pytest.mark.requirement("euclid", kind="core")
@asks(patterns(pattern(dividing(*case[:2]), POWERS, 16) for case in CASES), patterns([FLAGS]))
def test_quotients(loom):
    """What is left is never negative and less than the divisor without its sign."""
    answers, flags = loom.answers()
    expected = {case: shown(case[2]) + shown(case[3]) for case in CASES}
    assert dict(zip(CASES, outs(answers), strict=True)) == expected
    assert flags[0].out == "0.\n"


@pytest.mark.requirement("euclid", kind="integration")
def test_old_and_new_decks(loom):
    """A deck that is built now divides by the new rule, one of edition 1 or 3 by the old one, side by side."""
    code = dividing(-7, 2)
    files = {
        "p.knit": pattern(code, POWERS, 16),
        "one.deck": deck(1, code, POWERS, 16),
        "three.deck": deck(3, code, POWERS, 16),
    }
    commands = [["build", "p.knit", "p.deck"], *(["run", f"{name}.deck"] for name in ("one", "p", "three", "p", "one"))]
    new, old = shown(-4) + shown(1), shown(-3) + shown(-1)
    assert outs(loom.all(commands, files)) == ["", old, new, old, new, old]


@pytest.mark.requirement("deck-4", kind="core", retired="round-5")
def test_bytes(loom):
    """What is built is a deck of edition 4, byte for byte."""
    code = dividing(-7, 2)
    assert loom.built(pattern(code, POWERS, 16)) == [deck(4, code, POWERS, 16)]


EDITIONS = (1, 3, 4)


@functools.cache
def at_random():
    chance = random.Random(401)
    divisions = [dividing(chance.choice(NUMBERS), chance.choice(NUMBERS[1:])) for _ in range(12)]
    return chance_codes(chance, 5, rules=1) + divisions


@pytest.mark.requirement("deck-4", kind="integration")
@asks(lambda: decks(deck(edition, code, POWERS, 16) for code in at_random() for edition in EDITIONS))
def test_many(loom):
    """Decks of all editions so far, at random, run as each did."""
    (answers,) = loom.answers()
    runs = [Run(code, POWERS, 16, rules=edition) for code in at_random() for edition in EDITIONS]
    assert ends(answers) == [("".join(run.rows), run.fault) for run in runs]
