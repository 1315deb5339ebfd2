"""Edition 8: runs that are stopped, and go on."""

import random

import pytest
from model import POWERS, Run, chance_codes, deck, pattern, showing, shown
from tool import decks, ends, is_line

TEXT = """.width 9
.data 7, -2
    set r1, 4
    push 5
    yarn 3
    rand r4, 100
    cmp r1, 9
    row                 ; first
    jge bad
    pop r2
    knit r2
    row                 ; second
    load r3, 0
    store r4, 9
    skip r3
    mul r7, 1
    row                 ; third
    jne bad
    rand r5, 100
    load r6, 9
    cmp r6, 0
    jeq bad
    rand r6, 10
    skip r6
    knit 1
    row                 ; fourth
    ret
bad: row
"""


def in_pieces(name, sizes, *options):
    """Return commands that run a file in pieces of so many rows, whose states begin with its name."""
    commands = [["run", name, *options, "--stop", str(sizes[0]), f"{name}.0"]]
    for at, size in enumerate(sizes[1:]):
        commands.append(["resume", f"{name}.{at}", "--stop", str(size), f"{name}.{at + 1}"])
    return [*commands, ["resume", f"{name}.{len(sizes) - 1}"]]


def joined(answers, sizes):
    """Return what a run in pieces has printed, with its end."""
    assert [answer.status for answer in answers[:-1]] == [6] * len(sizes)
    assert [answer.out.count("\n") for answer in answers[:-1]] == sizes
    return answers[-1]._replace(out="".join(answer.out for answer in answers))


@pytest.mark.requirement("stop", kind="core")
def test_stop_and_resume(loom):
    """A run that was stopped goes on as if it had not been: flags, stack, drum, yarn, numbers at random and all."""
    pieces = in_pieces("p.knit", [1, 1, 1, 1])
    whole, *answers, again = loom.all([["run", "p.knit"], *pieces, ["resume", "p.knit.1"]], {"p.knit": TEXT})
    assert joined(answers, [1, 1, 1, 1]) == whole
    assert (whole.status, answers[-1].out) == (4, "")
    assert [answer.err for answer in answers[:-1]] == [f"loom: stopped at {at}\n" for at in (6, 10, 15, 24)]
    assert again == whole._replace(out="".join(whole.out.splitlines(keepends=True)[2:]))


@pytest.mark.requirement("stop", kind="integration")
def test_many(loom):
    """Runs at random, of decks of all editions, print in pieces what they print at once, and end alike."""
    chance = random.Random(801)
    codes = chance_codes(chance, 4) + chance_codes(chance, 2, faults=True)
    commands, files, expected = [], {}, []
    for number, code in enumerate(codes):
        # What shows the registers comes behind rows of its own, so that a stop is in the middle of things.
        code = [("row",), ("row",), *[shifted(each, 2) for each in code]]
        for edition in (1, 4, 7):
            run = Run(code, POWERS, 16, rules=edition)
            name = f"{number}-{edition}"
            files[f"{name}.deck"] = deck(edition, code, POWERS, 16)
            size = chance.randint(1, 2)
            commands += [["run", f"{name}.deck", "--stop", str(size), f"{name}.state"], ["resume", f"{name}.state"]]
            rows = "".join(run.rows)
            cut = 17 * size
            expected += [(rows[:cut], None), (rows[cut:], run.fault)]
    answers = loom.all(commands, files)
    assert ends(answers) == expected


def shifted(each, by):
    """Return an instruction whose address is that of code which begins later."""
    word, *operands = each
    return (word, operands[0] + by) if word in ("jmp", "jeq", "jne", "jlt", "jge", "call") else each


@pytest.mark.requirement("stop", kind="boundary")
def test_ends(loom):
    """A run stops behind its last row, too; one that ends before, or has a fault, writes no state."""
    files = {"a.knit": ".width 1\nrow\nrow\n", "b.knit": ".width 1\nrow\nhalt", "c.knit": ".width 1\nrow\npop r1\nrow"}
    commands = [["run", "a.knit", "--stop", "2", "a"], ["resume", "a"], ["resume", "a", "--stop", "1", "none"]]
    commands += [["run", "b.knit", "--stop", "1", "b"], ["resume", "b", "--stop", "1", "none"]]
    commands += [["run", "b.knit", "--stop", "2", "none"], ["run", "c.knit", "--stop", "2", "none"]]
    commands += [["run", "c.knit", "--stop", "1", "c"], ["resume", "c"]]
    row = ".\n"
    fault = "loom: fault: stack at 1, c.knit:3\n"
    assert loom.all(commands, files) == [
        (6, 2 * row, "loom: stopped at 2\n"),
        (0, "", ""),
        (0, "", ""),
        (6, row, "loom: stopped at 1\n"),
        (0, "", ""),
        (0, row, ""),
        (4, row, fault),
        (6, row, "loom: stopped at 1\n"),
        (4, "", fault),
    ]
    assert loom.names() == ["a", "a.knit", "b", "b.knit", "c", "c.knit"]


@pytest.mark.requirement("stop-rest", kind="boundary")
def test_budget_and_rows(loom):
    """What is left of the budget, stitches included, and the rows that there have been, are those of the run."""
    files = {"a.knit": ".width 5\na: knit 2\nrow\njmp a", "r.knit": ".width 1\na: row\njmp a"}
    cheap, long = in_pieces("a.knit", [1, 2], "--budget", "22"), in_pieces("r.knit", [9000, 999])
    whole, *answers = loom.all([["run", "a.knit", "--budget", "22"], *cheap, *long], files)
    assert whole == (4, "00...\n" * 4, "loom: fault: budget at 0, a.knit:2\n")
    assert joined(answers[:3], [1, 2]) == whole
    assert joined(answers[3:], [9000, 999]) == (4, ".\n" * 10000, "loom: fault: rows at 0, r.knit:2\n")


@pytest.mark.requirement("stop-rest", kind="integration")
def test_rules_and_lines(loom):
    """A state has all that the run needs: rules, files and lines, when pattern and deck are gone."""
    parts = [("set", "r1", -7), ("mod", "r1", 2), ("mul", "r1", 20000), ("mul", "r1", 20000)]
    code = [("row",), *(shifted(each, 1) for each in showing(parts, ["r1"]))]
    files = {
        "1.deck": deck(1, code, POWERS, 16),
        "4.deck": deck(4, code, POWERS, 16),
        "p.knit": pattern(code, POWERS, 16),
    }
    files |= {"hall/f.knit": 'row\n.include "x"', "hall/x": "\n\npop r1"}
    names = ["1.deck", "4.deck", "p.knit", "hall/f.knit"]
    stopped = loom.all([["run", name, "--stop", "1", name + ".s"] for name in names], files)
    assert [answer.status for answer in stopped] == [6] * 4
    loom.shell("rm 1.deck 4.deck p.knit hall/f.knit hall/x; mkdir away; mv *.s hall/*.s away")
    answers = loom.all([["resume", f"away/{name.rpartition('/')[2]}.s"] for name in names])
    shows = [shown(Run(code, POWERS, 16, rules=rules).registers["r1"]) for rules in (1, 4, 7)]
    assert len(set(shows)) == 3
    assert answers == [*((0, rows, "") for rows in shows), (4, "", "loom: fault: stack at 1, x:3\n")]


@pytest.mark.requirement("state-whole", kind="error")
def test_states_are_whole(loom):
    """A state is written whole or not at all: it takes the place of an old one, also the one that is resumed."""
    files = {"a.knit": ".width 1\n.repeat 9\nrow\n.end", "s": "old", "d/x": "", "t": "old", "f.knit": "ret"}
    commands = [
        ["run", "a.knit", "--stop", "2", "s"],
        ["resume", "s", "--stop", "3", "s"],
        ["resume", "s", "--stop", "1", "s"],
    ]
    commands += [
        ["run", "a.knit", "--stop", "10", "t"],
        ["run", "f.knit", "--stop", "1", "t"],
        ["resume", "s", "--stop", "4", "t"],
    ]
    commands += [["run", "a.knit", "--stop", "1", "d"], ["run", "a.knit", "--stop", "1", "no/s"], ["resume", "none"]]
    answers = loom.all(commands, files)
    assert [answer.out.count(".") for answer in answers[:6]] == [2, 3, 1, 9, 0, 3]
    assert [answer.status for answer in answers] == [6, 6, 6, 0, 4, 0, 1, 1, 1]
    assert sorted(loom.tree) == ["a.knit", "d", "d/x", "f.knit", "s", "t"]
    assert loom.tree["t"] == b"old"


@pytest.mark.requirement("state-damage", kind="error")
def test_damaged(loom):
    """A state in which a byte is another one, missing or too many is damaged, and so is what is no state."""
    chance = random.Random(802)
    made = loom.all([["run", "p.knit", "--stop", "2", "s"], ["build", "p.knit", "p.deck"]], {"p.knit": TEXT})
    assert [answer.status for answer in made] == [6, 0]
    state = loom.tree["s"]
    wrong = [state[:-1], state + b"\0", b"", state[1:], state[:20], b"LOOM", TEXT.encode(), state + state]
    wrong += [state[:at] + state[at + 1 :] for at in range(0, len(state), len(state) // 10)]
    wrong.append(loom.tree["p.deck"])
    for at in [*range(0, 60), *range(60, len(state), len(state) // 40)]:
        changed = bytearray(state)
        changed[at] ^= 1 << chance.randrange(8)
        wrong.append(bytes(changed))
    resumed, stopped, run, sound = loom.asked(
        [
            decks(wrong, kind="state", verb="resume"),
            decks(wrong[:3], "--stop", "1", "t", kind="state", verb="resume"),
            decks([state]),
            decks([state], kind="state", verb="resume"),
        ]
    )
    assert [index for index, answer in enumerate(resumed) if not answer.is_damage] == []
    assert all(answer.is_damage for answer in [*stopped, *run])
    assert "t" not in loom.names()
    assert sound[0].status == 4


@pytest.mark.requirement("stop", kind="error")
def test_usage(loom):
    """What is no number of rows, or stands elsewhere, is no command."""
    words = ["0", "00", "-1", "x", "", "1234567890", "1_0", "\u0661"]
    commands = [["run", "a.knit", "--stop", word, "s"] for word in words]
    commands += [
        ["run", "a.knit", "--stop", "1"],
        ["run", "a.knit", "--stop"],
        ["run", "a.knit", "--stop", "1", "s", "t"],
    ]
    commands += [["run", "a.knit", "--stop", "1", "s", "--budget", "5"], ["resume"], ["resume", "s", "--budget", "5"]]
    commands += [
        ["resume", "s", "t"],
        ["resume", "s", "--stop", "1"],
        ["run", "a.knit", "--budget", "0", "--stop", "1", "s"],
    ]
    right = ["run", "a.knit", "--budget", "1", "--stop", "000000001", "right"]
    *answers, last = loom.all([*commands, right], {"a.knit": "row\nrow"})
    for command, answer in zip(commands, answers, strict=True):
        assert (answer.status, answer.out) == (2, ""), command
        assert is_line(answer.err, "loom: usage: "), command
    assert last.status == 6
    assert loom.names() == ["a.knit", "right"]
