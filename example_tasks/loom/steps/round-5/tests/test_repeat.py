"""Edition 5: what is repeated, and how often at most."""

import pytest
from tool import asks, marks, outs, patterns, told


def prints(answers, expected):
    """Assert that each pattern prints its lines."""
    assert dict(zip(expected, map(tuple, answers), strict=True)) == {
        text: (0, rows, "") for text, rows in expected.items()
    }


REPEATED = {
    ".width 4\n.repeat 3\nknit 1\n.end\nrow": "000.\n",
    ".width 4\n.repeat 0\nknit 99\n.end\nrow": "....\n",
    ".width 4\n .repeat 0x2 ; twice\n yarn r1\n add r1, 1\n\tknit 1\n\n .end;\nrow": "01..\n",
    ".width 4\n.repeat 2\n.repeat 2\nskip 1\n.end\nrow\n.end": "....\n" * 2,
    ".width 9\n.repeat 2\nskip 1\n.repeat 3\nknit 1\n.end\n.end\nrow": ".000.000.\n",
    ".width 9\n.repeat 3\n.data 1, 2\n.end\n.data 3\nload r1, 5\nknit r1\nload r1, 6\n"
    "skip r1\nknit r1\nrow": "00...000.\n",
    ".width 4\njmp a\n.repeat 5\nknit 1\n.end\na: knit 1\ncall b\nrow\nhalt\n.repeat 2\nhalt\n.end\nb: ret": "0...\n",
    ".width 9\n" + ".repeat 1\n" * 8 + "knit 2\n" + ".end\n" * 8 + "row": "00.......\n",
    ".width 3\n.repeat 1000\n.repeat 4\nset r1, r1\n.end\n.end\n.repeat 96\nrow\n.end\n": "...\n" * 96,
    ".width 3\n.repeat 2\njmp a\n.end\na: row": "...\n",
}


@pytest.mark.requirement("repeat", kind="core")
@asks(patterns(REPEATED))
def test_repeat(loom):
    """What stands between `.repeat` and `.end` stands there so many times, with others in it."""
    prints(*loom.answers(), REPEATED)


@pytest.mark.requirement("repeat", kind="integration")
def test_in_included_files(loom):
    """An included file has repetitions of its own."""
    files = {
        "p.knit": '.width 5\n.include "a"\n.repeat 2\nknit k\n.end\nrow\n.const k, 1',
        "a": ".repeat 2\nskip 1\n.end",
    }
    files |= {"q.knit": 'row\n.include "b"\n.end', "b": "skip 1\n .repeat 2\nskip 1"}
    files |= {"r.knit": '.include "c"', "c": "row\n .end"}
    runs = [["run", name] for name in ("p.deck", "p.knit", "q.knit", "r.knit")]
    built, *answers = loom.all([["build", "p.knit", "p.deck"], *runs], files)
    assert (built.status, outs(answers)) == (0, ["..00.\n", "..00.\n", "", ""])
    assert answers[2:] == [(3, "", "b:2:2: repeat\n"), (3, "", "c:2:2: repeat\n")]


ERRORS = {
    "repeat": [
        ".repeat 2\n @a: halt\n.end",
        ".repeat 2\n.repeat 2\n.end\n@a:\n.end",
        ".repeat 2\n @.width 5\n.end",
        ".repeat 0\n @.const a, 5\n.end",
        '.repeat 2\n @.include "none"\n.end',
        # The first of these patterns, which is there and is not read all the same.
        '.repeat 2\n @.include "p0.knit"\n.end',
        "row\n@.end",
        ".repeat 2\n.end\n  @.end ; twice",
        "row\n @.repeat 2\nrow",
        "@.repeat 2\n.repeat 3\n.end",
        "@.repeat 2\nhlt",
        ".repeat 1\n" * 8 + "@.repeat 1\n" + ".end\n" * 9,
        ".repeat 1\n.end\n" * 9 + "@.end",
    ],
    "number": [".repeat @-1\n.end", ".repeat @1001\n.end", ".repeat @5x\n.end"],
    "operand": [
        ".repeat@\n.end",
        ".repeat @r1\n.end",
        ".repeat 2, @3\n.end",
        ".repeat 2\n.end @2",
        ".repeat @a\n.end",
    ],
    "word": [".repeat 0\n@hlt\n.end", ".repeat 1000\nrow\n @hlt\n.end"],
    "name": [".repeat 0\njmp @a\n.end", ".repeat 9\nset r1, @a\n.end"],
}


@pytest.mark.requirement("repeat-errors", kind="error")
@asks(marks(ERRORS))
def test_errors(loom):
    """What cannot be repeated, and what does not belong together, is the error `repeat`."""
    told(*loom.answers(), ERRORS)


DEEP = ".repeat 1000\n" * 8
TOO_MUCH = {
    "limit": [
        ".repeat 1000\nrow\nrow\nrow\nrow\n.end\n" + "row\n" * 96 + "@row",
        ".repeat 1000\n@row\nrow\nrow\nrow\nrow\n.end",
        "row\n.repeat 512\nrow\nrow\nrow\nrow\nrow\nrow\nrow\n@row\n.end",
        DEEP + "@row\n" + ".end\n" * 8,
        ".repeat 1000\n@row\n" + ".repeat 1000\n" * 7 + "row\n" + ".end\n" * 8,
        ".repeat 1000\n.data 7\n.end\n.data " + "7, " * 24 + "@7, 7",
        DEEP + ".data @1, 2\n" + ".end\n" * 8,
        "row\n.repeat 1000\n.data 7\n.end\n.repeat 4\n.repeat 8\n.data @7\n.end\n.end",
        ".repeat 2\n.repeat 1000\n.repeat 3\n@halt\n.end\n.data 5\n.end\n.end",
    ],
    "word": [DEEP + "@hlt\n" + ".end\n" * 8, "@hlt\n" + DEEP + "row\n" + ".end\n" * 8],
}


@pytest.mark.requirement("repeat-limit", kind="error")
@asks(marks(TOO_MUCH))
def test_too_much(loom):
    """What is too much is told where it stands first, and at once, however often it is to be repeated."""
    told(*loom.answers(), TOO_MUCH)


NOTHING = {
    DEEP + ".end\n" * 8 + "row\n.width 2": "..\n",
    ".repeat 0\n" + ".repeat 1000\n" * 7 + "row\n.data 5\n" + ".end\n" * 8 + "row\n.width 2": "..\n",
    ".repeat 1000\n" * 7 + ".repeat 0\nrow\n" + ".end\n" * 8 + "row\n.width 2": "..\n",
    (DEEP + "; nothing\n" + ".end\n" * 8) * 200 + "row\n.width 2": "..\n",
}
NO_ROOM = {"limit": [DEEP + "@row\n.data 5\n" + ".end\n" * 8]}


@pytest.mark.requirement("repeat-limit", kind="boundary")
@asks(patterns(NOTHING), marks(NO_ROOM))
def test_nothing_is_soon_repeated(loom):
    """Nothing, repeated as often as can be, is nothing, and takes no time; so does what is repeated 0 times."""
    nothing, refused = loom.answers()
    prints(nothing, NOTHING)
    told(refused, NO_ROOM)
