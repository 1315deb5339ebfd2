"""Edition 1: what a pattern may look like."""

import pytest
from tool import asks, marks, outs, patterns, told


def latin(texts):
    """Ask for runs of patterns, whose characters are bytes."""
    return patterns(text.encode("latin-1") for text in texts)


def same(answers, texts, expected):
    """Assert that all patterns print the same."""
    assert dict(zip(texts, map(tuple, answers), strict=True)) == dict.fromkeys(texts, (0, expected, ""))


CHECK = """.width 1
    set r1, {}
    cmp r1, {}
    jeq ok
    halt
ok: cmp r1, 0
    jeq nil
    yarn 1
    knit 1
    row
    halt
nil: row
"""


FORMS = {
    5: ["5", "0x5", "0b101", "0x0005", "0" * 5000 + "5"],
    -300: ["-300", "-0x12c", "-0x12C", "-0b100101100", "-000300"],
    32767: ["32767", "0x7fff", "0x7FfF"],
    -32768: ["-32768", "-0x8000"],
    0: ["0", "-0", "0x0", "00", "-0b0"],
}
NUMBERS = {CHECK.format(text, value): "1\n" if value else ".\n" for value, texts in FORMS.items() for text in texts}
NO_NUMBERS = ["32768", "-32769", "0x8000", "0o17", "1_000", "0X10", "0B1", "5x", "--5", "- 5", "-", "0x", "0b2", "1e3"]
NO_NUMBERS += ["0xffff", "99999999999999999999", "9" * 5000, "0x-5", "1.0", "-r1", "5 5"]
REFUSED = {"number": [f"set r1, @{text}" for text in NO_NUMBERS]}


@pytest.mark.requirement("numbers", kind="boundary")
@asks(patterns(NUMBERS), marks(REFUSED))
def test_numbers(loom):
    """Numbers are decimal, hexadecimal or binary, with or without a minus, and with zeros at the front."""
    numbers, refused = loom.answers()
    assert dict(zip(NUMBERS, map(tuple, numbers), strict=True)) == {text: (0, row, "") for text, row in NUMBERS.items()}
    told(refused, REFUSED)


LAYOUTS = [
    ".width 3\nknit 2\nrow\n",
    ".width 3\r\nknit 2\r\nrow\r\n",
    "\n\n ; nothing\n.width 3 ; needles\n\tknit\t2\n  row   ; the end: really",
    ".width\t3\nknit 2;two\nrow;",
    "a:knit 2\nb: row\n.width 3",
    '; \xff\x00\x0b\x0c\x85 \x1c ; ; : "\nknit 2 ;\x0brow\nrow\n.width 3\n',
    ".width 3\n a:\n b:\n\n c: knit 2\n set r1 ,\t5\n set r1,5\n row\n end:\n",
]


@pytest.mark.requirement("layout", kind="core")
@asks(latin(LAYOUTS))
def test_layout(loom):
    """Blanks, tabs, comments, ends of lines and empty lines change nothing."""
    same(*loom.answers(), LAYOUTS, "00.\n")


LONG = "a" * 31 + "_"
NAMES = [
    f" jmp {LONG}\n knit 1\n{LONG}: knit colour\n row\n .const colour, 2\n .width 3",
    ".width 3\n jmp add\nr8: halt\nadd: knit set\n row\n.const set, 0x2\n",
    ".width 3\n.const _9, 2\nr: set r0, _9\n knit r0\n jmp end\nrow:\nend: row",
    ".width 3\n.const a, 2\n.const r10, 40\n knit a\n cmp r1, r10\n jeq a9\n row\na9:",
]


@pytest.mark.requirement("names", kind="boundary")
@asks(patterns(NAMES))
def test_names(loom):
    """Names of any words, long ones, and names that are used above where they are defined."""
    same(*loom.answers(), NAMES, "00.\n")


@pytest.mark.requirement("include", kind="core")
def test_include(loom):
    """The lines of an included file stand where it is included, as seen from the file that includes it."""
    files = {
        "p.knit": '.width 4\n.data 1\n.include "parts/a.knit"\n.data 3\n knit two\n row\n load r1, 2\n knit r1\n row\n',
        "parts/a.knit": ' knit 1\n.include "b.knit"\n.const two, 2',
        "parts/b.knit": ".data 2\n skip 1\n",
        "b.knit": "knit 99",
    }
    answers = loom.all([["run", "p.knit"], ["build", "p.knit", "p.deck"], ["run", "p.deck"]], files)
    assert outs(answers) == ["0.00\n000.\n", "", "0.00\n000.\n"]


DATA = [
    ".width 9\n.data 1, -2\n load r1, 1\n add r1, 5\n knit r1\n row\n.data 0x3\n load r1, 2\n knit r1\n row\n",
    ".width 9\n" + ".data 3, 3\n" * 512 + " load r1, 1023\n knit r1\n row\n load r1, 0\n knit r1\n row\n",
]


@pytest.mark.requirement("data", kind="core")
@asks(patterns(DATA))
def test_data(loom):
    """Data fill the drum from cell 0 on, negative ones too; up to 1024 of them."""
    same(*loom.answers(), DATA, "000......\n" * 2)
