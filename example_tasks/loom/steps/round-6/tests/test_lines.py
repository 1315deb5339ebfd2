"""Edition 6: decks that know where their instructions stand."""

import pytest
from model import deck, instruction, sealed, two
from tool import asks, decks

ROW = "." * 40 + "\n"
FILES = {
    "hall/p.knit": '; one\n.include "parts/a.knit"\n.repeat 2\n row\n.end\n'
    '.include "parts/a.knit"\ncall f\nhalt\n.include "z"',
    "hall/parts/a.knit": '\n skip 1 ; three\n.include "b.knit"\n',
    "hall/parts/b.knit": "skip 1\n\n.data 5",
    "hall/z": "\nhalt\nf: div r1, r0\n",
}
CODE = [("skip", 1), ("skip", 1), ("row",), ("row",), ("skip", 1), ("skip", 1), ("call", 9), ("halt",), ("halt",)]
CODE += [("div", "r1", "r0")]
NAMES = [b"p.knit", b"parts/a.knit", b"parts/b.knit", b"z"]
LINES = [(1, 2), (2, 1), (0, 4), (0, 4), (1, 2), (2, 1), (0, 7), (0, 8), (3, 2), (3, 3)]
PRINTED = ROW + ROW


@pytest.mark.requirement("deck-6", kind="core", retired="round-7")
def test_bytes(loom):
    """A deck has its files, and the line of each instruction, whatever directory it is built in."""
    commands = [["build", "hall/p.knit", "one.deck"], ["build", f"{loom.here}/hall/../hall/p.knit", "two.deck"]]
    commands += [["build", "hall/z", "three.deck"], ["build", "d.knit", "four.deck"]]
    answers = loom.all(commands, {**FILES, "d.knit": ".data 5"})
    assert [answer.status for answer in answers] == [0] * 4
    expected = deck(6, CODE, [5, 5], files=NAMES, lines=LINES)
    assert [loom.tree[f"{name}.deck"] for name in ("one", "two")] == [expected] * 2
    single = deck(6, [("halt",), ("div", "r1", "r0")], files=[b"z"], lines=[(0, 2), (0, 3)])
    assert loom.tree["three.deck"] == single
    assert loom.tree["four.deck"] == deck(6, [], [5], files=[b"d.knit"])


@pytest.mark.requirement("fault-lines", kind="core")
def test_faults_have_lines(loom):
    """A fault tells file and line, of patterns and of decks that are built from them."""
    files = {**FILES, "a/r.knit": '.include "x/e"\n\n.repeat 9\nrow\nskip 30\n.end', "a/x/e": "\nskip 11"}
    files["n.knit"] = "row\n.repeat 3\nskip 20\n\n.end"
    fault = (4, PRINTED, "loom: fault: divide at 9, z:3\n")
    expected = {
        ("build", "hall/p.knit", "p.deck"): (0, "", ""),
        ("run", "hall/p.knit"): fault,
        ("run", "p.deck"): fault,
        ("run", f"{loom.here}/hall/z"): (0, "", ""),
        ("run", "a/r.knit"): (0, ROW * 9, ""),
        ("run", "a/r.knit", "--budget", "1"): (4, "", "loom: fault: budget at 1, r.knit:4\n"),
        ("run", "a/x/e", "--budget", "1"): (0, "", ""),
        ("run", "n.knit"): (4, ROW, "loom: fault: needle at 3, n.knit:3\n"),
    }
    assert dict(zip(expected, map(tuple, loom.all(expected, files)), strict=True)) == expected


@pytest.mark.requirement("fault-lines", kind="boundary")
@asks(decks(deck(edition, [("row",), ("pop", "r1")]) for edition in (1, 3, 4, 5)))
def test_old_decks_have_none(loom):
    """Of decks up to edition 5 nobody knows the lines, and their faults end with the address."""
    assert loom.answers() == [[(4, ROW, "loom: fault: stack at 1\n")] * 4]


ODD_NAMES = {
    b"\x1b[2Jx": "?[2Jx",
    b"a b\nloom: fault": "a?b?loom:?fault",
    "ä~!\x7f".encode(): "??~!?",
    b"\7" * 255: "?" * 255,
    b"%s{0}\\n": "%s{0}\\n",
}


@pytest.mark.requirement("fault-lines", kind="error")
@asks(decks(deck(6, [("pop", "r1")], files=[name, b"a"], lines=[(0, 65000)]) for name in ODD_NAMES))
def test_names_that_are_none(loom):
    """Whatever name somebody puts into a deck, a fault has `?` for what is not from 33 to 126."""
    assert loom.answers() == [[(4, "", f"loom: fault: stack at 0, {name}:65000\n") for name in ODD_NAMES.values()]]


@pytest.mark.requirement("fault-lines", kind="boundary")
def test_long_names(loom):
    """A name of 255 bytes is in a deck, and a file whose name would have more is not included."""
    parts = ["n" * 50] * 4
    deep = "/".join(parts)
    files = {f"hall/{deep}/{'m' * 51}": f'pop r1\n.include "{"k" * 51}"\n.include "{"k" * 52}"'}
    files |= {
        f"hall/{deep}/{'k' * 51}": "",
        f"hall/{deep}/{'k' * 52}": "",
        "hall/p.knit": f'.include "{deep}/{"m" * 51}"',
    }
    files |= {
        "hall/q.knit": f'.include "{deep}/{"j" * 51}"',
        f"hall/{deep}/{'j' * 51}": f'pop r1\n.include "{"k" * 51}"',
    }
    answers = loom.all([["run", "hall/p.knit"], ["run", "hall/q.knit"]], files)
    assert answers[0] == (3, "", f"hall/{deep}/{'m' * 51}:3:10: include\n")
    assert answers[1] == (4, "", f"loom: fault: stack at 0, {deep}/{'j' * 51}:1\n")


HEAD = b"LOOM\x06\x28" + two(2) + two(0) + instruction("row") + instruction("halt")
DAMAGED = {
    "as edition 5": HEAD,
    "no files": HEAD + b"\0",
    "no lines": HEAD + b"\1\1a",
    "one line": HEAD + b"\1\1a\0\1\0",
    "no name": HEAD + b"\1\0" + b"\0\1\0" * 2,
    "second without a name": HEAD + b"\2\1a\0" + b"\0\1\0" * 2,
    "one file too few": HEAD + b"\2\1a" + b"\0\1\0" * 2,
    "file 1 of 1": HEAD + b"\1\1a" + b"\0\1\0\1\1\0",
    "line 0": HEAD + b"\1\1a" + b"\0\1\0\0\0\0",
    "three lines": HEAD + b"\1\1a" + b"\0\1\0" * 3,
    "long name": HEAD + b"\1\xffa" + b"\0\1\0" * 2,
    "more behind": HEAD + b"\1\1a" + b"\0\1\0" * 2 + b"\0",
}


SOUND = sealed(HEAD + b"\1\1a" + b"\0\1\0" * 2)
READ = [SOUND, *map(sealed, DAMAGED.values())]


@pytest.mark.requirement("deck-6", kind="error")
@asks(decks(READ), decks(READ, verb="list"))
def test_damaged(loom):
    """A name without a byte, a file or line that is none, and whatever ends too early or too late, is damaged."""
    for sound, *answers in loom.answers():
        assert sound.status == 0
        assert {name for name, answer in zip(DAMAGED, answers, strict=True) if not answer.is_damage} == set()


MANY_FILES = [b"A" * 255, *[b"n" * (number + 1) for number in range(64)]]
SOUND_DECKS = [deck(6, [("row",), ("pop", "r1")], [3], files=MANY_FILES, lines=[(0, 1), (64, 256)])]


@pytest.mark.requirement("deck-6", kind="boundary")
@asks(decks(SOUND_DECKS), decks(SOUND_DECKS, verb="list"))
def test_sound(loom):
    """A deck of edition 6 runs and is listed, also one with as many files as a pattern can have."""
    run, listed = loom.answers()
    assert run == [(4, ROW, f"loom: fault: stack at 1, {'n' * 64}:256\n")]
    assert listed == [(0, ".width 40\n.data 3\n    row\n    pop r1\n", "")]
