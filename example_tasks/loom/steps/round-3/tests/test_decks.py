"""Edition 3: decks that are checked before anything else, and lists of them."""

import functools
import random

import pytest
from model import CODES, OPERANDS, POWERS, Run, chance_codes, deck, instruction, pattern, sealed, showing, shown, two
from tool import asks, decks, outs

CODE = showing([("set", "r1", -2), ("jlt", 3), ("push", "r1"), ("rand", "r2", 99)], ["r1"])
ROW = "." * 40 + "\n"


def head(edition=3, width=40, count=1, cells=0):
    return b"LOOM" + bytes([edition, width]) + two(count) + two(cells)


def with_instruction(raw):
    """Return what stands in a deck that prints a row first, and then has an instruction of these bytes."""
    return head(count=2) + instruction("row") + raw


DAMAGED = {
    "beginning": b"MOOL" + head()[4:] + instruction("row"),
    "edition 0": head(0) + instruction("row"),
    "edition 2": head(2) + instruction("row"),
    "edition 99": head(99) + instruction("row"),
    "width 0": head(width=0) + instruction("row"),
    "width 201": head(width=201) + instruction("row"),
    "too early": head(count=2) + instruction("row"),
    "no data": head(cells=1) + instruction("row") + b"\x01",
    "too late": head() + instruction("row") + b"\x00",
    "data too late": head(cells=1) + instruction("row") + bytes(3),
    "4097 instructions": head(count=4097) + instruction("row") * 4097,
    "1025 numbers": head(cells=1025) + instruction("row") + bytes(2050),
    "code 24": with_instruction(bytes([24, 0, 0, 0, 0])),
    "code 255": with_instruction(bytes([255, 0, 0, 0, 0])),
    "register 8": with_instruction(bytes([CODES["set"], 8, 0, 0, 0])),
    "register of row": with_instruction(bytes([CODES["row"], 1, 0, 0, 0])),
    "register of push": with_instruction(bytes([CODES["push"], 1, 0, 0, 0])),
    "register of jmp": with_instruction(bytes([CODES["jmp"], 1, 0, 0, 0])),
    "mode 2": with_instruction(bytes([CODES["set"], 1, 2, 0, 0])),
    "mode of jmp": with_instruction(bytes([CODES["jmp"], 0, 1, 0, 0])),
    "mode of pop": with_instruction(bytes([CODES["pop"], 1, 1, 0, 0])),
    "mode of halt": with_instruction(bytes([CODES["halt"], 0, 1, 0, 0])),
    "register 8 as V": with_instruction(bytes([CODES["set"], 1, 1, 8, 0])),
    "register 256 as V": with_instruction(bytes([CODES["set"], 1, 1, 0, 1])),
    "register -1 as V": with_instruction(bytes([CODES["knit"], 0, 1, 255, 255])),
    "number of row": with_instruction(bytes([CODES["row"], 0, 0, 1, 0])),
    "number of pop": with_instruction(bytes([CODES["pop"], 1, 0, 0, 1])),
    "address 3 of 2": with_instruction(bytes([CODES["jmp"], 0, 0, 3, 0])),
    "address -1": with_instruction(bytes([CODES["call"], 0, 0, 255, 255])),
    "address 32768": with_instruction(bytes([CODES["jeq"], 0, 0, 0, 128])),
}


SOUND = [sealed(head() + instruction("row")), head(1) + instruction("row")]


def read(contents):
    """Ask for decks to be run, and to be listed."""
    contents = list(contents)
    return decks(contents), decks(contents, verb="list")


def all_damaged(names, answers):
    """Assert that none of these decks is run or listed."""
    assert {name for name, answer in zip(names, answers, strict=True) if not answer.is_damage} == set()


@pytest.mark.requirement("damage", kind="error")
@asks(decks(SOUND), *read(map(sealed, DAMAGED.values())))
def test_damaged(loom):
    """What no pattern could have led to is damaged, with a checksum that is right, and nothing is printed."""
    sound, *damaged = loom.answers()
    assert sound == [(0, ROW, "")] * 2
    for answers in damaged:
        all_damaged(DAMAGED, answers)


OLD_DAMAGED = {name: content[:4] + b"\x01" + content[5:] for name, content in DAMAGED.items() if "edition" not in name}
OLD_DAMAGED["with a checksum"] = sealed(SOUND[1])


@pytest.mark.requirement("damage", kind="error")
@asks(decks(SOUND), *read(OLD_DAMAGED.values()))
def test_damaged_edition_1(loom):
    """A deck of edition 1 is checked as well, although it has no checksum."""
    sound, *damaged = loom.answers()
    assert sound == [(0, ROW, "")] * 2
    for answers in damaged:
        all_damaged(OLD_DAMAGED, answers)


WHOLE = deck(3, CODE, POWERS, 16)


@functools.cache
def broken():
    """Return what becomes of a deck by an accident."""
    chance = random.Random(301)
    found = {}
    for at in range(0, len(WHOLE), 3):
        wrong = bytearray(WHOLE)
        wrong[at] ^= 1 << chance.randrange(8)
        found[f"bit of {at}"] = bytes(wrong)
    for length in [*range(0, 16), *range(16, len(WHOLE), 17), len(WHOLE) - 1]:
        found[f"{length} bytes"] = WHOLE[:length]
    none = deck(1, CODE, POWERS, 16)[:4] + b"\3" + WHOLE[5:-4]
    return found | {"more": WHOLE + b"\0", "twice": WHOLE + WHOLE, "none": none}


@pytest.mark.requirement("checksum", kind="error")
@asks(decks([WHOLE]), lambda: decks(broken().values()), lambda: decks(list(broken().values())[::9], verb="list"))
def test_any_byte(loom):
    """Whatever byte of a deck is another one, too many or missing, it is damaged."""
    whole, run, listed = loom.answers()
    assert whole == [(0, shown(-2), "")]
    all_damaged(broken(), run)
    all_damaged(list(broken())[::9], listed)


LARGEST = [("jmp", 4094)] + [("push", 1)] * 4093 + [("row",), ("jmp", 4096)]


@pytest.mark.requirement("damage", kind="boundary")
@asks(
    decks(deck(edition, LARGEST, [-1] * 1024, 200) for edition in (1, 3)),
    decks([deck(3, [], (), 1)]),
    decks([sealed(head(width=201) + instruction("row"))]),
)
def test_largest(loom):
    """The largest deck is sound: 4096 instructions, 1024 numbers, 200 needles, an address at the end."""
    largest, smallest, damaged = loom.answers()
    assert largest == [(0, "." * 200 + "\n", "")] * 2
    assert smallest == [(0, "", "")]
    all_damaged(["width 201"], damaged)


@pytest.mark.requirement("deck-3", kind="core", retired="round-4")
def test_bytes(loom):
    """What is built is a deck of edition 3, byte for byte."""
    assert loom.built(pattern(CODE, POWERS, 16), "halt") == [deck(3, CODE, POWERS, 16), deck(3, [("halt",)])]


@functools.cache
def at_random(seed, count):
    return chance_codes(random.Random(seed), count, rules=1)


@pytest.mark.requirement("deck-3", kind="core")
@asks(lambda: decks(deck(edition, code, POWERS, 16) for code in at_random(302, 8) for edition in (1, 3)))
def test_old_decks_run(loom):
    """Decks of edition 1 and of edition 3 run as they did."""
    (answers,) = loom.answers()
    rows = ["".join(Run(code, POWERS, 16, rules=1).rows) for code in at_random(302, 8)]
    assert outs(answers) == [each for each in rows for _ in (1, 3)]


@functools.cache
def programs():
    """Return code, data and width of decks that are listed."""
    every = [
        (word, *{"RV": ["r1", -9], "V": ["r7"], "R": ["r3"], "L": [3], "": []}[kinds])
        for word, kinds in OPERANDS.items()
    ]
    return [
        (CODE, POWERS, 16),
        (every, [-1], 200),
        ([("jmp", 2), ("jmp", 2)], [5] * 8, 1),
        ([("call", 0)], [5] * 17, 40),
        ([], [], 40),
        *((code, POWERS, 16) for code in at_random(303, 3)),
    ]


@pytest.mark.requirement("list", kind="core")
@asks(lambda: decks((deck(edition, *each) for edition in (1, 3) for each in programs()), verb="list"))
def test_list(loom):
    """A list has width, data by eights, and each instruction, with labels where something leads to."""
    (answers,) = loom.answers()
    assert [tuple(answer) for answer in answers] == [(0, pattern(*each), "") for each in programs()] * 2


@pytest.mark.requirement("list", kind="integration")
def test_list_is_a_pattern(loom):
    """What is listed is a pattern that gives a deck with the same list."""
    files = {f"{index}.knit": pattern(code, POWERS, 16) for index, code in enumerate(at_random(304, 3))}
    commands = [["build", name, f"{name}.deck"] for name in files] + [["list", f"{name}.deck"] for name in files]
    commands += [["list", "none.deck"], ["list"], ["list", "0.knit.deck", "x"], ["list", "0.knit"]]
    answers = loom.all(commands, files)
    assert answers[:3] == [(0, "", "")] * 3
    assert outs(answers[3:6]) == list(files.values())
    assert [answer.status for answer in answers[6:]] == [1, 2, 2, 5]


@pytest.mark.requirement("build-whole", kind="error")
def test_build_fails(loom):
    """Where building fails, the old deck stays as it was, and there is no other new file."""
    files = {"hall/a.deck": "an old one", "hall/d.deck/x": "", "good.knit": "row", "bad.knit": "row\nhlt"}
    commands = [
        ["build", "bad.knit", "hall/a.deck"],
        ["build", "none.knit", "hall/a.deck"],
        ["build", "bad.knit", "hall/b.deck"],
    ]
    commands += [["build", "good.knit", "hall/d.deck"], ["build", "good.knit", "none/a.deck"]]
    assert [answer.status for answer in loom.all(commands, files)] == [3, 1, 3, 1, 1]
    assert loom.names("hall") == ["a.deck", "d.deck"]
    assert loom.tree["hall/a.deck"] == b"an old one"
    good = [["build", "good.knit", "hall/a.deck"], ["run", "hall/a.deck"]]
    assert loom.all(good) == [(0, "", ""), (0, ROW, "")]
    assert loom.names("hall") == ["a.deck", "d.deck"]
