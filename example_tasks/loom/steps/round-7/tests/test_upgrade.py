"""Edition 7: old decks become new ones that run as they did."""

import random

import pytest
from model import POWERS, Run, chance_codes, deck, instruction, sealed, showing, shown, two
from tool import asks, decks, ends, outs, patterns

EDITIONS = (1, 3, 4, 5, 6)
CODE = showing(
    [("set", "r1", 32767), ("add", "r1", 2), ("set", "r2", -7), ("div", "r2", 2), ("mod", "r3", -2)], ["r1", "r2"]
)
FILES = {"files": [b"a\n", b"b/c"], "lines": [(1, 300 + number) for number in range(len(CODE))]}
ROW = "." * 40 + "\n"


@pytest.mark.requirement("upgrade", kind="core")
def test_bytes(loom):
    """The new deck has the rules that the old one ran by, and its files and lines, or none; the old one stays."""
    old = [deck(edition, CODE, POWERS, 16, **(FILES if edition == 6 else {})) for edition in EDITIONS]
    old.append(deck(7, CODE, POWERS, 16, rules=3, files=[]))
    old.append(deck(7, CODE, POWERS, 16, **FILES))
    new = [deck(7, CODE, POWERS, 16, rules=edition, files=[]) for edition in EDITIONS[:-1]]
    new.append(deck(7, CODE, POWERS, 16, rules=6, **FILES))
    new += old[-2:]
    files = {f"{index}.deck": content for index, content in enumerate(old)}
    assert loom.all([["upgrade", name, f"new-{name}"] for name in files], files) == [(0, "", "")] * len(old)
    assert loom.tree == files | {f"new-{index}.deck": content for index, content in enumerate(new)}


@pytest.mark.requirement("upgrade", kind="integration")
def test_runs_as_it_did(loom):
    """An upgraded deck prints what the old one prints, to its fault, and so does one that is upgraded again."""
    chance = random.Random(701)
    codes = [CODE, *chance_codes(chance, 3, rules=1), *chance_codes(chance, 1, rules=1, faults=True)]
    cases = [(edition, code) for code in codes for edition in EDITIONS]
    files = {f"{index}.deck": deck(edition, code, POWERS, 16) for index, (edition, code) in enumerate(cases)}
    upgrades = [["upgrade", name, f"new-{name}"] for name in files]
    upgrades += [["upgrade", f"new-{name}", f"again-{name}"] for name in files]
    runs = [["run", f"{start}-{name}"] for start in ("new", "again") for name in files]
    lists = [["list", "0.deck"], ["list", "new-0.deck"]]
    answers = loom.all([*upgrades, *runs, *lists], files)
    assert answers[: len(upgrades)] == [(0, "", "")] * len(upgrades)
    found = [Run(code, POWERS, 16, rules=edition) for edition, code in cases]
    expected = [("".join(run.rows), run.fault) for run in found]
    assert expected[0][0] == shown(-32767) + shown(-3)
    assert ends(answers[len(upgrades) : -2]) == expected * 2
    assert answers[-2] == answers[-1]
    assert [loom.tree[f"again-{name}"] for name in files] == [loom.tree[f"new-{name}"] for name in files]


@pytest.mark.requirement("upgrade-safe", kind="error")
def test_what_exists_stays(loom):
    """NEW is nothing that exists, be it the deck itself, a directory or a link that leads nowhere."""
    old = deck(1, [("row",)])
    loom.shell("ln -s nowhere link; ln -s a.deck way", {"a.deck": old, "b.deck": "old", "d/x": ""})
    names = ["a.deck", "b.deck", "d", "link", "way", "./a.deck", "none/a.deck"]
    *answers, last = loom.all([["upgrade", "a.deck", name] for name in [*names, "c.deck"]])
    assert [answer.status for answer in answers] == [1] * len(names)
    assert all(answer.err.startswith("loom: system: ") for answer in answers)
    assert last == (0, "", "")
    assert sorted(loom.tree) == ["a.deck", "b.deck", "c.deck", "d", "d/x", "link", "way"]
    assert (loom.tree["a.deck"], loom.tree["b.deck"]) == (old, b"old")


@pytest.mark.requirement("upgrade-safe", kind="error")
def test_damaged_decks_stay(loom):
    """A damaged deck is not upgraded, and leaves no file; a command without NEW is none."""
    files = {
        "a.deck": deck(1, [("row",)])[:-1],
        "b.deck": deck(6, [("row",)]) + b"\0",
        "c.deck": deck(7, [("row",)], rules=8),
    }
    commands = [["upgrade", name, "new.deck"] for name in files] + [["upgrade", "none.deck", "new.deck"]]
    commands += [["upgrade", "a.deck"], ["upgrade"], ["upgrade", "a.deck", "new.deck", "x"]]
    assert [answer.status for answer in loom.all(commands, files)] == [5, 5, 5, 1, 2, 2, 2]
    assert loom.names() == sorted(files)


@pytest.mark.requirement("deck-7", kind="core")
def test_built(loom):
    """What is built is a deck of edition 7 with the rules of edition 7, byte for byte."""
    twice = '.include "b1.knit"\n.repeat 2\nhalt\n.end\n.include "b1.knit"'
    built = loom.built(twice, "\nrow\n.data -2", ".width 7")
    lines = [(1, 2), (0, 3), (0, 3), (1, 2)]
    code = [("row",), ("halt",), ("halt",), ("row",)]
    assert built[0] == deck(7, code, [-2, -2], files=[b"b0.knit", b"b1.knit"], lines=lines)
    assert built[1] == deck(7, [("row",)], [-2], files=[b"b1.knit"], lines=[(0, 2)])
    assert built[2] == deck(7, [], (), 7, files=[b"b2.knit"])


RULES = (1, 3, 4, 5, 6, 7)
PLACES = [deck(7, [("row",), ("ret",)], rules=5, files=[]), deck(7, [("row",), ("ret",)], files=[b"x y"])]


@pytest.mark.requirement("deck-7", kind="core")
@asks(
    decks(deck(7, CODE, POWERS, 16, rules=each, files=[b"a"] if each > 5 else []) for each in RULES),
    decks(PLACES),
)
def test_rules(loom):
    """A deck of edition 7 runs by its RULES, with lines if it has any."""
    answers, faults = loom.answers()
    sums = {each: -32767 if each < 5 else 32767 for each in RULES}
    quotients = {each: -3 if each < 4 else -4 for each in RULES}
    assert outs(answers) == [shown(sums[each]) + shown(quotients[each]) for each in RULES]
    assert [answer.err for answer in faults] == ["loom: fault: stack at 1\n", "loom: fault: stack at 1, x?y:1\n"]


HEAD = b"LOOM\x07\x05\x28" + two(1) + two(0) + instruction("row")
DAMAGED = {
    **{f"rules {each}": deck(7, [("row",)], rules=each) for each in (0, 2, 8, 255)},
    "no files byte": sealed(HEAD),
    "lines without files": sealed(HEAD + b"\0" + b"\0\1\0"),
    "a file without lines": sealed(HEAD + b"\1\1a"),
    "width 0": deck(7, [("row",)], (), 0),
    "code 24": sealed(HEAD.replace(b"\x16", b"\x18") + b"\0"),
    "no head": sealed(HEAD[:10]),
    "no checksum": HEAD + b"\0",
    "edition 8": sealed(HEAD[:4] + b"\x08" + HEAD[5:] + b"\0"),
}


READ = [sealed(HEAD + b"\0"), *DAMAGED.values()]


@pytest.mark.requirement("deck-7", kind="error")
@asks(decks(READ), decks(READ, verb="list"))
def test_damaged(loom):
    """RULES of no edition, and lines that are missing or too many, are damage."""
    for sound, *answers in loom.answers():
        assert sound.status == 0
        assert {name for name, answer in zip(DAMAGED, answers, strict=True) if not answer.is_damage} == set()


KNITS = [("yarn", 1), ("knit", 200), ("row",), ("knit", 0), ("skip", 200), ("row",)]


KNIT, SKIP = "1" * 200 + "\n", "." * 200 + "\n"
OUTCOMES = {
    206: (KNIT + SKIP, None),
    205: (KNIT, ("budget", 5)),
    203: (KNIT, ("budget", 3)),
    202: ("", ("budget", 2)),
    201: ("", ("budget", 1)),
    1: ("", ("budget", 1)),
}
KNIT_DECKS = [deck(edition, KNITS, (), 200) for edition in (1, 3, 4, 5, 6, 7)]


@pytest.mark.requirement("stitches", kind="core")
@asks(*(decks(KNIT_DECKS, "--budget", str(budget)) for budget in OUTCOMES))
def test_stitches_cost(loom):
    """A `knit` takes one of the budget and one more for each stitch, in decks of all editions; a `skip` takes one."""
    got = dict(zip(OUTCOMES, map(ends, loom.answers()), strict=True))
    assert got == {budget: [outcome] * len(KNIT_DECKS) for budget, outcome in OUTCOMES.items()}


FAULTY = {"knit -1": "count", "knit 41": "needle", "knit 32767": "needle", "knit 3": "budget"}
LOOP = ".width 200\na: knit 199\nrow\njmp a"


@pytest.mark.requirement("stitches", kind="boundary")
@asks(
    patterns(FAULTY, "--budget", "1"),
    patterns([f"row\n{text}" for text in FAULTY], "--budget", "1"),
    patterns([LOOP]),
)
def test_other_faults_first(loom):
    """A `knit` that has another fault has that one, as long as anything is left of the budget."""
    faults, spent, loop = loom.answers()
    assert [answer.fault for answer in faults] == [(kind, 0) for kind in FAULTY.values()]
    assert [answer.fault for answer in spent] == [("budget", 1)] * 4
    assert loop == [(4, ("0" * 199 + ".\n") * 495, "loom: fault: budget at 0, p0.knit:2\n")]
