"""Edition 1: commands, batches and decks."""

import pytest
from model import POWERS, deck, pattern, showing, shown
from tool import is_line

CODE = showing(
    [("set", "r1", -2), ("sub", "r2", "r1"), ("jlt", 4), ("push", "r2"), ("set", "r3", 300)], ["r1", "r2", "r3"]
)
ROWS = shown(-2) + shown(2) + shown(300)


@pytest.mark.requirement("batch", kind="core")
def test_batch(loom):
    """A batch answers each line as the command would by itself, and goes on behind whatever is none."""
    files = {"a.knit": ".width 2\nyarn 3\nknit 1\nrow\n", "bad.knit": "\n hlt\n"}
    commands = [["run", "a.knit"], ["run", "bad.knit"], ["run", "none.knit"], ["show", "a.knit"], ["run", "a.knit"]]
    answers = loom.all(commands, files)
    assert [answer[:2] for answer in answers] == [(0, "3.\n"), (3, ""), (1, ""), (2, ""), (0, "3.\n")]
    assert answers[1].err == "bad.knit:2:2: word\n"
    assert [loom.one(*command) for command in commands[:4]] == answers[:4]


@pytest.mark.requirement("batch", kind="error")
def test_lines_that_are_no_commands(loom):
    """What is no list of strings is no command, and the next line is one again."""
    lines = [b"{}", b"nothing", b"[1]", b'"run"', b"", b'["run", 5]', b"null", b'["run"', b"\xff", b'["batch"]', b"[]"]
    lines += [b"[" * 100000, b'[["run"]]', b'["run", "a.knit"] 1']
    answers = loom.lines(b"\n".join(lines) + b'\n["run", "a.knit"]\n', len(lines) + 1, {"a.knit": ".width 1\nrow\n"})
    assert [answer.status for answer in answers] == [2] * len(lines) + [0]
    assert all(is_line(answer.err, "loom: usage: ") and answer.out == "" for answer in answers[:-1])


@pytest.mark.requirement("isolation", kind="integration")
def test_nothing_is_left(loom):
    """No command of a batch finds anything of those before it, nor anything that another pattern had."""
    dirty = (
        ".width 3\n.data 7, 7\n.const k, 9\nset r5, 9\npush 5\nyarn 9\nstore r5, 2\nrand r1, 9\nsub r0, 1\nknit 1\nl:"
    )
    fresh = (
        "jlt no\njeq no\nknit 1\nadd r0, r5\nload r1, 0\nadd r0, r1\nload r1, 2\nadd r0, r1\nskip r0\nrand r1, 9\n"
        "skip r1\nyarn 1\nknit 1\nrow\nhalt\nno: row\n"
    )
    files = {"d.knit": dirty, "f.knit": fresh, "l.knit": "jmp l", "k.knit": "knit k"}
    answers = loom.all([["run", f"{name}.knit"] for name in "dfdflk"], files)
    skipped = (1103527590 // 65536) % 9
    alone = (0, ("0" + "." * skipped + "1").ljust(40, ".") + "\n", "")
    assert [answers[1], answers[3], loom.one("run", "f.knit")] == [alone] * 3
    assert [answer.err for answer in answers[4:]] == ["l.knit:1:5: name\n", "k.knit:1:6: name\n"]


@pytest.mark.requirement("usage", kind="error")
def test_usage(loom):
    """A command that is none has status 2, whatever it lacks or has too much."""
    wrong = [[], ["run"], ["build", "a.knit"], ["build", "a.knit", "b.deck", "c"], ["Run", "a.knit"], ["", "a.knit"]]
    wrong += [["run", "a.knit", "b.knit"], ["--help"]]
    for answer in [*loom.all(wrong, {"a.knit": "halt"}), loom.one(), loom.one("batch", "x")]:
        assert (answer.status, answer.out) == (2, "")
        assert is_line(answer.err, "loom: usage: ")
    assert loom.names() == ["a.knit"]


@pytest.mark.requirement("usage", kind="error")
def test_files_that_are_missing(loom):
    """A file that cannot be read or written is status 1, and a name that no file can have, too."""
    files = {"a.knit": "halt\n", "d.knit/x": "", "d.deck/x": ""}
    commands = [
        ["run", "none.knit"],
        ["run", "none.deck"],
        ["build", "none.knit", "a.deck"],
        ["build", "a.knit", "no/a.deck"],
    ]
    commands += [
        ["run", "d.knit"],
        ["run", "d.deck"],
        ["run", "a\0.knit"],
        ["build", "a.knit", "d.deck"],
        ["run", "\ud800"],
    ]
    for command, answer in zip(commands, loom.all(commands, files), strict=True):
        assert (answer.status, answer.out) == (1, ""), command
        assert is_line(answer.err, "loom: system: "), command


@pytest.mark.requirement("deck", kind="core", retired="round-3")
def test_bytes(loom):
    """A deck is what section 4 says, byte for byte, and the same whenever it is built."""
    data = [*POWERS, -1, -32768]
    text = pattern(CODE, data, 16)
    assert loom.built(text, text, "halt", ".width 200") == [
        deck(1, CODE, data, 16),
        deck(1, CODE, data, 16),
        b"LOOM\x01\x28\x01\x00\x00\x00" + bytes(5),
        b"LOOM\x01\xc8\x00\x00\x00\x00",
    ]


@pytest.mark.requirement("deck", kind="core")
def test_deck_runs(loom):
    """A deck runs as the pattern that it was built from, with its negative numbers, and so does one of edition 1."""
    files = {"old.deck": deck(1, CODE, POWERS, 16), "p.knit": pattern(CODE, POWERS, 16)}
    runs = [["run", name] for name in ("p.knit", "p.deck", "old.deck", "./old.deck")]
    assert loom.all([["build", "p.knit", "p.deck"], *runs], files) == [(0, "", ""), *[(0, ROWS, "")] * 4]
