"""Edition 5: what does not fit becomes the nearest that does, and not in decks that are older."""

import functools
import random

import pytest
from model import NUMBERS, POWERS, Run, chance_codes, deck, pattern, showing, shown
from tool import asks, decks, ends, outs, patterns

CASES = [
    (32767, "add", 1, 32767),
    (-32768, "add", -1, -32768),
    (-32768, "sub", 1, -32768),
    (20000, "sub", -20000, 32767),
    (300, "mul", 300, 32767),
    (-32768, "mul", -32768, 32767),
    (-300, "mul", 300, -32768),
    (-32768, "div", -1, 32767),
    (-32768, "mul", 1, -32768),
    (32766, "add", 1, 32767),
    (-7, "div", 2, -4),
    (-32768, "sub", -32768, 0),
]


def computing(left, word, right):
    parts = [("set", "r1", left), (word, "r1", right), ("set", "r2", left), ("set", "r3", right), (word, "r2", "r3")]
    return showing(parts, ["r1", "r2"])


FLAGS = ".width 2\nset r1, 32767\nadd r1, 1\njlt bad\njeq bad\nset r1, 256\nmul r1, 256\njeq bad\nknit 1\nbad: row"


@pytest.mark.requirement("nearest", kind="core")
@asks(patterns(pattern(computing(*case[:3]), POWERS, 16) for case in CASES), patterns([FLAGS]))
def test_nearest(loom):
    """Sums, products and quotients that do not fit become the nearest that does, and set flags by that."""
    answers, flags = loom.answers()
    assert dict(zip(CASES, outs(answers), strict=True)) == {case: 2 * shown(case[3]) for case in CASES}
    assert flags[0].out == "0.\n"


@pytest.mark.requirement("nearest", kind="integration")
def test_decks_of_each_edition(loom):
    """Decks of editions 1 to 4 keep 16 bits, one that is built now does not, side by side; each divides as it did."""
    code = showing([("set", "r1", 32767), ("add", "r1", 2), ("set", "r2", -7), ("div", "r2", 2)], ["r1", "r2"])
    files = {f"{edition}.deck": deck(edition, code, POWERS, 16) for edition in (1, 3, 4)} | {
        "p.knit": pattern(code, POWERS, 16)
    }
    commands = [["build", "p.knit", "p.deck"], *(["run", f"{name}.deck"] for name in (1, "p", 3, "p", 4, "p", 1))]
    new, oldest, older = shown(32767) + shown(-4), shown(-32767) + shown(-3), shown(-32767) + shown(-4)
    rows = ["", oldest, new, oldest, new, older, new, oldest]
    assert outs(loom.all(commands, files)) == rows


@pytest.mark.requirement("deck-5", kind="core", retired="round-6")
def test_bytes(loom):
    """What is built is a deck of edition 5, byte for byte, with what is repeated as often as it is."""
    text = pattern(computing(1, "add", 2), POWERS, 16)
    repeated = [("row",), ("skip", 1), ("skip", 1)] * 3
    built = loom.built(text, ".repeat 3\nrow\n.repeat 2\nskip 1\n.end\n.data 5\n.end")
    assert built == [deck(5, computing(1, "add", 2), POWERS, 16), deck(5, repeated, [5, 5, 5])]


EDITIONS = (1, 4, 5)
WORDS = ["add", "sub", "mul", "div", "mod"]


@functools.cache
def at_random():
    chance = random.Random(501)
    codes = chance_codes(chance, 5) + chance_codes(chance, 2, faults=True)
    for _ in range(15):
        codes.append(computing(chance.choice(NUMBERS), chance.choice(WORDS), chance.choice(NUMBERS[1:])))
    return codes


@pytest.mark.requirement("deck-5", kind="integration")
@asks(lambda: decks(deck(edition, code, POWERS, 16) for code in at_random() for edition in EDITIONS))
def test_many(loom):
    """Decks of all editions so far, at random, run as each did."""
    (answers,) = loom.answers()
    runs = [Run(code, POWERS, 16, rules=edition) for code in at_random() for edition in EDITIONS]
    assert ends(answers) == [("".join(run.rows), run.fault) for run in runs]


@functools.cache
def patterns_at_random():
    return chance_codes(random.Random(502), 8)


@pytest.mark.requirement("nearest", kind="integration")
@asks(lambda: patterns(pattern(code, POWERS, 16) for code in patterns_at_random()))
def test_many_patterns(loom):
    """Patterns at random do what the newest manual says."""
    (answers,) = loom.answers()
    assert outs(answers) == ["".join(Run(code, POWERS, 16).rows) for code in patterns_at_random()]
