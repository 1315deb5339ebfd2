"""Edition 2: faults, and what a run may cost."""

import random

import pytest
from model import POWERS, Run, chance_codes, deck
from tool import is_line

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


@pytest.mark.requirement("faults", kind="error")
@pytest.mark.parametrize("kind", FAULTS)
def test_fault(loom, kind):
    """What cannot be carried out is a fault of its kind in its instruction, behind the rows before it."""
    patterns = [pattern for pattern, _ in FAULTS[kind]]
    answers = loom.runs(patterns)
    got = {pattern: (each.out, each.fault) for pattern, each in zip(patterns, answers, strict=True)}
    assert got == {pattern: ("." * 40 + "\n", (kind, address)) for pattern, address in FAULTS[kind]}


@pytest.mark.requirement("faults", kind="boundary")
def test_what_is_no_fault(loom):
    """The last cell, colour, place of the stack and needle are there, and the end is an address."""
    patterns = [
        "load r1, 1023\nstore r1, 0\nload r1, r1\nrow",
        "yarn 15\nyarn 0\nrow",
        "push 5\n" * 64 + "pop r1\npush 6\n" + "pop r2\n" * 64 + "row",
        "push 5\n" * 63 + "call a\nrow\nhalt\na: ret",
        "row\npush 3\nret",
        "row\npush 4\nret\nknit 99",
        "skip 20\nskip 20\nskip 0\nknit 0\nrow",
        "rand r1, 1\nrand r1, 32767\nrow",
    ]
    answers = loom.runs(patterns)
    assert dict(zip(patterns, map(tuple, answers), strict=True)) == dict.fromkeys(patterns, (0, "." * 40 + "\n", ""))
    assert loom.runs(["row\nknit 99"])[0].fault == ("needle", 1)


@pytest.mark.requirement("faults", kind="core", retired="round-6")
def test_message(loom):
    """A fault is told with its kind and its address, and a batch goes on behind it."""
    answers = loom.runs(["row\nknit 5\ndiv r1, 0", "row"])
    assert answers == [(4, "." * 40 + "\n", "loom: fault: divide at 2\n"), (0, "." * 40 + "\n", "")]
    assert loom.one("run", "p0.knit") == answers[0]


@pytest.mark.requirement("faults", kind="integration")
def test_many_faults(loom):
    """Decks of edition 1 at random come to the faults of the manual, behind the rows of the manual."""
    codes = chance_codes(random.Random(201), 30, faults=True, rules=1)
    runs = [Run(code, POWERS, 16, rules=1) for code in codes]
    answers = loom.runs([deck(1, code, POWERS, 16) for code in codes], kind="deck")
    assert [(answer.out, answer.fault) for answer in answers] == [("".join(run.rows), run.fault) for run in runs]


@pytest.mark.requirement("budget", kind="core")
def test_budget_of_its_own(loom):
    """Without --budget a run has 100000 instructions, and not one more."""
    count = "set r1, 24999\n{0}: sub r1, 1\njne {0}\n"
    fits = count.format("a") + count.format("b") + "row\nhalt"
    answers = loom.runs([fits, "row\n" + fits, "row\n" + fits.removesuffix("\nhalt")])
    row = "." * 40 + "\n"
    assert answers[0] == (0, row, "")
    assert (answers[1].out, answers[1].fault) == (2 * row, ("budget", 8))
    assert answers[2] == (0, 2 * row, "")


@pytest.mark.requirement("budget", kind="boundary")
def test_budget(loom):
    """--budget is how many instructions may be carried out; the end of the pattern is none, a `halt` is one."""
    files = {"a.knit": ".width 1\n" + "row\n" * 5, "b.knit": ".width 1\n" + "row\n" * 5 + "halt", "c.knit": "div r1, 0"}
    files["d.deck"] = deck(1, [("row",)] * 5, (), 1)
    runs = [("a.knit", 5), ("a.knit", 4), ("b.knit", 6), ("b.knit", 5), ("d.deck", 1), ("d.deck", "000000005")]
    runs += [("c.knit", 1), ("a.knit", 999999999)]
    answers = loom.all([["run", name, "--budget", str(budget)] for name, budget in runs], files)
    budget, ends = "budget", None
    expected = [(5, ends), (4, (budget, 4)), (5, ends), (5, (budget, 5)), (1, (budget, 1)), (5, ends)]
    assert [(len(answer.out) // 2, answer.fault) for answer in answers] == [*expected, (0, ("divide", 0)), (5, ends)]


@pytest.mark.requirement("budget", kind="boundary", retired="round-7")
def test_stitches_cost_nothing(loom):
    """A `knit` is one instruction, however many stitches it has."""
    pattern = ".width 200\nyarn 1\n" + "knit 200\nrow\n" * 3
    assert loom.runs([pattern], "--budget", "7")[0] == (0, ("1" * 200 + "\n") * 3, "")


@pytest.mark.requirement("budget", kind="error")
def test_what_is_no_budget(loom):
    """What is no budget is status 2, and the pattern is not run."""
    words = ["0", "000", "-1", "+5", "", "5x", "1_0", "0x10", "1234567890", " 5", "5\n", "\u0665", "5.0"]
    commands = [["run", "a.knit", "--budget", word] for word in words]
    commands += [["run", "a.knit", "--budget"], ["run", "--budget", "5", "a.knit"], ["run", "a.knit", "5"]]
    commands += [["run", "a.knit", "--budget", "5", "x"], ["run", "a.knit", "--budget=5"]]
    for command, answer in zip(commands, loom.all(commands, {"a.knit": "row"}), strict=True):
        assert (answer.status, answer.out) == (2, ""), command
        assert is_line(answer.err, "loom: usage: "), command
    assert loom.one("run", "a.knit", "--budget", "1").status == 0


@pytest.mark.requirement("row-limit", kind="boundary")
def test_rows(loom):
    """A run prints 10000 rows, and the next one is a fault."""
    pattern = ".width 1\nset r1, {}\na: row\nsub r1, 1\njne a\nhalt"
    ends, fault = loom.runs([pattern.format(10000), pattern.format(10001)])
    assert ends == (0, ".\n" * 10000, "")
    assert (fault.out, fault.fault) == (".\n" * 10000, ("rows", 1))
