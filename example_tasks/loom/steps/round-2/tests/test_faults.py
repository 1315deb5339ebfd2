"""Edition 2: faults, and what a run may cost."""

import functools
import random

import pytest
from model import POWERS, Run, chance_codes, deck
from tool import asks, decks, ends, is_line, patterns

FAULTS = {
    "divide": [("set r1, 5\nrow\ndiv r1, 0\nrow", 2), ("set r1, -32768\nrow\nmod r1, r0", 2), ("row\ndiv r0, r0", 1)],
    "drum": [
        ("row\nload r1, -1", 1),
        ("row\nload r1, 1024", 1),
        ("set r2, 1024\nrow\nstore r1, r2", 2),
        ("row\nstore r1, -1", 1),
        ("row\nload r1, -32768", 1),
        ("row\nstore r1, 32767", 1),
    ],
    "yarn": [("row\nyarn 16", 1), ("row\nyarn -1", 1), ("set r1, 300\nrow\nyarn r1", 2), ("row\nyarn -32768", 1)],
    "count": [
        ("row\nknit -1", 1),
        ("row\nskip -1", 1),
        ("row\nknit -32768", 1),
        ("row\nrand r1, 0", 1),
        ("row\nrand r1, -5", 1),
        ("row\nskip 40\nskip -1", 2),
    ],
    "needle": [
        ("row\nknit 41", 1),
        ("row\nskip 32767", 1),
        ("row\nknit 40\nknit 1\nrow", 2),
        ("row\nskip 20\nknit 21", 2),
        ("row\nknit 39\nskip 2", 2),
    ],
    "stack": [
        ("row\npop r1", 1),
        ("row\nret", 1),
        ("row\nf: call f", 1),
        ("row\n" + "push 5\n" * 65, 65),
        ("row\n" + "push 5\n" * 64 + "jmp a\na: call a", 66),
        ("row\npush 1\npop r1\npop r1", 3),
    ],
    "jump": [
        ("row\npush -1\nret", 2),
        ("row\npush 4\nret", 2),
        ("row\npush 32767\nret", 2),
        ("row\npush -3\nret\nrow", 2),
    ],
    "budget": [("row\na: jmp a", 1), ("row\na: add r1, 1\njmp a", 2), ("row\na: call b\nb: pop r1\njmp a", 1)],
}


ROW = "." * 40 + "\n"


@functools.cache
def faulty(kind):
    """Ask for the runs that come to a fault; what never ends is given less than what it has by itself."""
    options = ["--budget", "1000"] if kind == "budget" else []
    return patterns([text for text, _ in FAULTS[kind]], *options)


@pytest.mark.requirement("faults", kind="error")
@pytest.mark.parametrize("kind", FAULTS)
@asks(faulty)
def test_fault(loom, kind):
    """What cannot be carried out is a fault of its kind in its instruction, behind the rows before it."""
    (answers,) = loom.answers()
    got = {text: found for (text, _), found in zip(FAULTS[kind], ends(answers), strict=True)}
    assert got == {text: (ROW, (kind, address)) for text, address in FAULTS[kind]}


NO_FAULT = [
    "load r1, 1023\nstore r1, 0\nload r1, r1\nrow",
    "yarn 15\nyarn 0\nrow",
    "push 5\n" * 64 + "pop r1\npush 6\n" + "pop r2\n" * 64 + "row",
    "push 5\n" * 63 + "call a\nrow\nhalt\na: ret",
    "row\npush 3\nret",
    "row\npush 4\nret\nknit 99",
    "skip 20\nskip 20\nskip 0\nknit 0\nrow",
    "rand r1, 1\nrand r1, 32767\nrow",
]


@pytest.mark.requirement("faults", kind="boundary")
@asks(patterns(NO_FAULT), patterns(["row\nknit 99"]))
def test_what_is_no_fault(loom):
    """The last cell, colour, place of the stack and needle are there, and the end is an address."""
    answers, faults = loom.answers()
    assert dict(zip(NO_FAULT, map(tuple, answers), strict=True)) == dict.fromkeys(NO_FAULT, (0, ROW, ""))
    assert faults[0].fault == ("needle", 1)


@pytest.mark.requirement("faults", kind="core", retired="round-6")
def test_message(loom):
    """A fault is told with its kind and its address, and a batch goes on behind it."""
    files = {"a.knit": "row\nknit 5\ndiv r1, 0", "b.knit": "row"}
    fault = (4, ROW, "loom: fault: divide at 2\n")
    assert loom.all([["run", "a.knit"], ["run", "b.knit"]], files) == [fault, (0, ROW, "")]
    assert loom.one("run", "a.knit") == fault


@functools.cache
def at_random():
    return chance_codes(random.Random(201), 10, faults=True, rules=1)


@pytest.mark.requirement("faults", kind="integration")
@asks(lambda: decks(deck(1, code, POWERS, 16) for code in at_random()))
def test_many_faults(loom):
    """Decks of edition 1 at random come to the faults of the manual, behind the rows of the manual."""
    (answers,) = loom.answers()
    runs = [Run(code, POWERS, 16, rules=1) for code in at_random()]
    assert ends(answers) == [("".join(run.rows), run.fault) for run in runs]


COUNT = "set r1, 24999\n{0}: sub r1, 1\njne {0}\n"
LONG = "row\n" + COUNT.format("a") + COUNT.format("b") + "row\n"


@pytest.mark.requirement("budget", kind="core")
@asks(patterns([LONG, LONG + "halt"]))
def test_budget_of_its_own(loom):
    """Without --budget a run has 100000 instructions, and not one more."""
    ((fits, fault),) = loom.answers()
    assert fits == (0, 2 * ROW, "")
    assert (fault.out, fault.fault) == (2 * ROW, ("budget", 8))


FIVE = ".width 1\n" + "row\n" * 5
BUDGETS = [
    (patterns([FIVE], "--budget", "5"), (5, None)),
    (patterns([FIVE], "--budget", "4"), (4, ("budget", 4))),
    (patterns([FIVE + "halt"], "--budget", "6"), (5, None)),
    (patterns([FIVE + "halt"], "--budget", "5"), (5, ("budget", 5))),
    (decks([deck(1, [("row",)] * 5, (), 1)], "--budget", "1"), (1, ("budget", 1))),
    (decks([deck(1, [("row",)] * 5, (), 1)], "--budget", "000000005"), (5, None)),
    (patterns(["div r1, 0"], "--budget", "1"), (0, ("divide", 0))),
    (patterns([FIVE], "--budget", "999999999"), (5, None)),
]


@pytest.mark.requirement("budget", kind="boundary")
@asks(*(ask for ask, _ in BUDGETS))
def test_budget(loom):
    """--budget is how many instructions may be carried out; the end of the pattern is none, a `halt` is one."""
    got = [(len(answer.out) // 2, answer.fault) for (answer,) in loom.answers()]
    assert got == [expected for _, expected in BUDGETS]


KNITS = ".width 200\nyarn 1\n" + "knit 200\nrow\n" * 3


@pytest.mark.requirement("budget", kind="boundary", retired="round-7")
@asks(patterns([KNITS], "--budget", "7"))
def test_stitches_cost_nothing(loom):
    """A `knit` is one instruction, however many stitches it has."""
    assert loom.answers() == [[(0, ("1" * 200 + "\n") * 3, "")]]


@pytest.mark.requirement("budget", kind="error")
def test_what_is_no_budget(loom):
    """What is no budget is status 2, and the pattern is not run."""
    words = ["0", "000", "-1", "+5", "", "5x", "1_0", "0x10", "1234567890", " 5", "5\n", "\u0665", "5.0"]
    commands = [["run", "a.knit", "--budget", word] for word in words]
    commands += [["run", "a.knit", "--budget"], ["run", "--budget", "5", "a.knit"], ["run", "a.knit", "5"]]
    commands += [["run", "a.knit", "--budget", "5", "x"], ["run", "a.knit", "--budget=5"]]
    right = ["run", "a.knit", "--budget", "1"]
    *answers, last = loom.all([*commands, right], {"a.knit": "row"})
    for command, answer in zip(commands, answers, strict=True):
        assert (answer.status, answer.out) == (2, ""), command
        assert is_line(answer.err, "loom: usage: "), command
    assert last.status == 0


MANY_ROWS = ".width 1\nset r1, 100\na: " + "row\n" * 100 + "sub r1, 1\njne a\n"


@pytest.mark.requirement("row-limit", kind="boundary")
@asks(patterns([MANY_ROWS + "halt", MANY_ROWS + "row\nhalt"]))
def test_rows(loom):
    """A run prints 10000 rows, and the next one is a fault."""
    ((fits, fault),) = loom.answers()
    assert fits == (0, ".\n" * 10000, "")
    assert (fault.out, fault.fault) == (".\n" * 10000, ("rows", 103))
