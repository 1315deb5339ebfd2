"""Edition 1: what instructions do, seen by the rows that are printed."""

import functools
import random

import pytest
from model import POWERS, Run, chance_codes, deck, pattern, showing, shown
from tool import asks, decks, outs, patterns

OVERFLOWS = [
    (32767, "add", 1, -32768),
    (-32768, "add", -1, 32767),
    (-32768, "sub", 1, 32767),
    (20000, "sub", -20000, -25536),
    (300, "mul", 300, 24464),
    (-32768, "mul", -32768, 0),
    (181, "mul", 182, -32594),
    (-32768, "div", -1, -32768),
]
FITS = [
    (32766, "add", 1, 32767),
    (5, "sub", 9, -4),
    (-181, "mul", 181, -32761),
    (100, "div", 7, 14),
    (100, "mod", 7, 2),
    (6, "div", -2, -3),
    (7, "div", 9, 0),
    (-32768, "mod", -1, 0),
]
NEGATIVE_REST = [(-7, "div", 2, -3), (-7, "mod", 2, -1), (7, "div", -2, -3), (7, "mod", -2, 1), (-7, "div", -2, 3)]
NEGATIVE_REST += [(-7, "mod", -2, -1), (-32768, "mod", 7, -1), (-1, "div", 32767, 0)]


def computing(left, word, right):
    """Return code that computes once with a number, once with a register, and shows both."""
    return showing(
        [("set", "r1", left), (word, "r1", right), ("set", "r2", left), ("set", "r3", right), (word, "r2", "r3")],
        ["r1", "r2"],
    )


def computed(cases, edition=None):
    """Ask for runs of patterns, or of decks of an edition, that show what comes of each case."""
    codes = [computing(*case[:3]) for case in cases]
    if edition:
        return decks(deck(edition, code, POWERS, 16) for code in codes)
    return patterns(pattern(code, POWERS, 16) for code in codes)


def computes(answers, cases):
    """Assert that each case shows what it has."""
    expected = {case: (0, 2 * shown(case[3]), "") for case in cases}
    assert dict(zip(cases, map(tuple, answers), strict=True)) == expected


@pytest.mark.requirement("wrap", kind="boundary", retired="round-5")
@asks(computed(OVERFLOWS))
def test_overflow(loom):
    """What does not fit keeps its lower 16 bits, with a sign."""
    computes(*loom.answers(), OVERFLOWS)


@pytest.mark.requirement("wrap", kind="boundary")
@asks(computed(OVERFLOWS, 1))
def test_overflow_in_decks(loom):
    """A deck of edition 1 computes with 16 bits for good."""
    computes(*loom.answers(), OVERFLOWS)


@pytest.mark.requirement("quotient", kind="core", retired="round-4")
@asks(computed(NEGATIVE_REST))
def test_quotients(loom):
    """Quotients are cut off towards 0, and what is left has the sign of what was divided."""
    computes(*loom.answers(), NEGATIVE_REST)


@pytest.mark.requirement("quotient", kind="core")
@asks(computed(NEGATIVE_REST, 1))
def test_quotients_in_decks(loom):
    """A deck of edition 1 cuts quotients off towards 0 for good."""
    computes(*loom.answers(), NEGATIVE_REST)


@pytest.mark.requirement("sums", kind="core")
@asks(computed(FITS), computed(FITS, 1))
def test_what_fits(loom):
    """Sums, differences, products and quotients that fit are what they are, with numbers and with registers."""
    for answers in loom.answers():
        computes(answers, FITS)


FLAGS = """.width 4
    jeq bad          ; off at the start
    jlt bad
{}
bad: yarn 9
    knit 4
    row
    halt
z:  skip 1
    jlt zl
    knit 1
    row
    halt
zl: knit 2
    row
    halt
"""


FLAG_BODIES = {
    "add to 0": ("set r1, -5\n add r1, 5\n jeq z", ".0..\n"),
    "sub below 0": ("sub r1, 5\n jge bad\n jeq bad\n jmp z", ".00.\n"),
    "mul by 0": ("set r1, 5\n mul r1, 0\n jeq z", ".0..\n"),
    "div to 0": ("set r1, 5\n div r1, 9\n jeq z", ".0..\n"),
    "mod to 0": ("set r1, 6\n mod r1, 3\n jne bad\n jmp z", ".0..\n"),
    "set": ("sub r1, 1\n set r2, 0\n jeq bad\n jmp z", ".00.\n"),
    "load": ("sub r1, 1\n load r2, 3\n jeq bad\n jmp z", ".00.\n"),
    "pop": ("sub r1, 1\n push 0\n pop r2\n jeq bad\n jmp z", ".00.\n"),
    "store": ("sub r1, 1\n store r7, 3\n jeq bad\n jmp z", ".00.\n"),
    "rand": ("sub r1, 1\n rand r2, 1\n jeq bad\n jmp z", ".00.\n"),
    "call": ("sub r1, 1\n call on\n on: jge bad\n jmp z", ".00.\n"),
    "cleared by add": ("sub r1, 1\n add r1, 3\n jlt bad\n cmp r1, 2\n jeq z", ".0..\n"),
    "cleared by cmp": ("mul r1, 0\n cmp r1, 1\n jeq bad\n jmp z", ".00.\n"),
}


@pytest.mark.requirement("flags", kind="core")
@asks(patterns(FLAGS.format(body) for body, _ in FLAG_BODIES.values()))
def test_flags(loom):
    """Flags are off at the start, and set by what computes and by nothing else."""
    (answers,) = loom.answers()
    assert {name: answer.out for name, answer in zip(FLAG_BODIES, answers, strict=True)} == {
        name: rows for name, (_, rows) in FLAG_BODIES.items()
    }
    assert {(answer.status, answer.err) for answer in answers} == {(0, "")}


PAIRS = [
    (1, 2),
    (2, 2),
    (3, 2),
    (-32768, 1),
    (32767, -1),
    (-1, 1),
    (1, -1),
    (-32768, 32767),
    (-5, -5),
    (32767, -32768),
]


def comparing(pairs):
    """Return a pattern that prints for each pair which of the jumps are taken."""
    text = ".width 4\n"
    for index, (left, right) in enumerate(pairs):
        text += f" set r1, {left}\n cmp r1, {right}\n"
        for word in ("jeq", "jne", "jlt", "jge"):
            text += f" {word} {word}{index}\n skip 1\n jmp {word}x{index}\n{word}{index}: knit 1\n{word}x{index}:\n"
        text += " row\n"
    return text


@pytest.mark.requirement("compare", kind="boundary")
@asks(patterns([comparing(PAIRS)]))
def test_compare(loom):
    """Numbers are compared as they are, however far apart, and each jump goes where it should."""
    rows = ""
    for left, right in PAIRS:
        holds = (left == right, left != right, left < right, left >= right)
        rows += "".join("0" if each else "." for each in holds) + "\n"
    assert loom.answers() == [[(0, rows, "")]]


BELOW = [10, 16, 2, 1, 100, 32767, 7, 16, 5, 30000]


def rolling():
    """Return programs that show the first five numbers at random, and the last five."""
    code = []
    for index, each in enumerate(BELOW):
        code += [("set", "r2", each), ("rand", "r1", "r2"), ("store", "r1", 20 + index)]
    for index in range(len(BELOW)):
        code += [("load", f"r{index % 5 + 1}", 20 + index)]
    registers = [f"r{n}" for n in range(1, 6)]
    return showing(code[:-5], registers), showing(code, registers)


@pytest.mark.requirement("random", kind="core")
@asks(lambda: patterns(pattern(each, POWERS, 16) for each in [*rolling(), rolling()[0]]))
def test_random_numbers(loom):
    """`rand` gives the numbers of the manual, each run the same ones from the start."""
    (answers,) = loom.answers()
    state, rows = 1, []
    for each in BELOW:
        state = (1103515245 * state + 12345) % 2**31
        rows.append(shown(state // 65536 % each))
    assert outs(answers) == ["".join(rows[:5]), "".join(rows[5:]), "".join(rows[:5])]


ROWS = {
    "yarn 10\nknit 3\nskip 2\nyarn 15\nknit 1\nrow\nrow\nskip 40\nrow\nknit 40\nrow\n": [
        "aaa..f" + "." * 34,
        "." * 40,
        "." * 40,
        "f" * 40,
    ],
    ".width 1\nknit 1\nrow\nyarn 9\nknit 0\nskip 0\nrow\nknit 1\n": ["0", "."],
    ".width 200\nset r5, 199\nskip r5\nyarn r0\nknit 1\nrow\n": ["." * 199 + "0"],
    "set r3, 12\nyarn r3\nskip 1\nknit 2\nrow\n.width 5\n": [".cc.."],
}


@pytest.mark.requirement("rows", kind="core")
@asks(patterns(ROWS))
def test_rows(loom):
    """A row has a character for each needle; what is not knit is a dot, and the colour a hexadecimal digit."""
    (answers,) = loom.answers()
    assert [answer.out.splitlines() for answer in answers] == list(ROWS.values())
    assert {(answer.status, answer.err) for answer in answers} == {(0, "")}


CALLS = """.width 9
.data 4, -4
call a
knit 1
row
push 1
push r1
pop r2              ; 2
knit r2
pop r2
skip r2
knit 1
row
load r3, 0
load r4, 1
add r4, 9
store r4, 1023
store r3, r3
load r5, 4
load r6, 1023
knit r5
skip 1
sub r6, 3
knit r6
row
halt
a: add r1, 1
call b
ret
b: add r1, 1
yarn r1
ret
"""


@pytest.mark.requirement("machine", kind="core")
@asks(patterns([CALLS]))
def test_calls_and_stack(loom):
    """Calls come back behind themselves, numbers come off the stack in turn, cells keep what they have."""
    assert loom.answers() == [[(0, "2........\n22.2.....\n2222.22..\n", "")]]


@functools.cache
def at_random(seed):
    return chance_codes(random.Random(seed), 12, rules=1)


@pytest.mark.requirement("machine", kind="integration", retired="round-4")
@asks(lambda: patterns(pattern(code, POWERS, 16) for code in at_random(101)))
def test_many_patterns(loom):
    """Patterns at random do what the manual says."""
    (answers,) = loom.answers()
    assert outs(answers) == ["".join(Run(code, POWERS, 16, rules=1).rows) for code in at_random(101)]


@pytest.mark.requirement("machine", kind="integration")
@asks(lambda: decks(deck(1, code, POWERS, 16) for code in at_random(102)))
def test_many_decks(loom):
    """Decks of edition 1 at random do what the manual said then, for good."""
    (answers,) = loom.answers()
    rows = ["".join(Run(code, POWERS, 16, rules=1).rows) for code in at_random(102)]
    assert [tuple(answer) for answer in answers] == [(0, each, "") for each in rows]
