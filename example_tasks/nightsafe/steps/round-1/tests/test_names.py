"""Names are names, whatever is in them."""

import random

import pytest
from bench import MADE, below, complaint, directory, file, link, quoted

ODD = [
    "two words",
    "  blanks  ",
    "-rf",
    "--checkpoint-action=exec=touch hit",
    "*",
    "?[a-z]",
    "$(touch hit)",
    "`touch hit`",
    "; touch hit",
    "quo\"te's",
    "back\\slash\\n",
    "line\nfeed",
    "\n",
    "last\n",
    "tab\tbed",
    ".hidden",
    "..more",
    "caf\udce9",
    "grün",
    "host:name",
    "#note",
    "~root",
]

AS_DIRECTORIES = [" * ", "-rf", "$(touch hit);", "quo\"te's\\n\tab", "last\n", "caf\udce9:name"]


def restored(bench, tree, script="call take acme src\ncall restore acme 20260401-023000 out\ntree out"):
    *answers, last = bench.run(script, below(tree, "src"))
    assert [answer.status for answer in answers] == [0] * len(answers)
    found = last.tree
    found.pop(".")
    return found


@pytest.mark.requirement("contents", kind="core")
def test_plain(bench):
    """What was taken is restored: contents, modes, times, links, empty directories, and nothing is printed."""
    tree = {
        "index.html": file("<p>\n", 0o640, MADE + 5),
        "run.sh": file("#!/bin/sh\n", 0o755),
        "empty": directory(0o700, MADE - 9),
        "deep": directory(0o711),
        "deep/er": directory(),
        "deep/er/data": file(bytes(range(256))),
        "to": link("deep/er"),
        "nowhere": link("/no/such thing"),
        ".htaccess": file("deny\n", 0o600),
    }
    taken, back, out = bench.run(
        "call take acme src\ncall restore acme 20260401-023000 new/out\ntree new/out", below(tree, "src")
    )
    assert (taken.status, taken.out, back.status, back.out) == (0, "20260401-023000\n", 0, "")
    found = out.tree
    found.pop(".")
    assert found == tree


@pytest.mark.requirement("contents", kind="boundary")
def test_empty(bench):
    """A directory with nothing in it is restored with nothing in it."""
    assert restored(bench, {}) == {}


@pytest.mark.requirement("names", kind="core")
def test_odd_names(bench):
    """Files, directories and links with odd names are taken and restored as all others."""
    tree = {name: file(f"content of {number}") for number, name in enumerate(ODD)}
    for number, name in enumerate(ODD):
        tree[f"dir {name}"] = directory()
        tree[f"dir {name}/{name}"] = file(f"below {number}")
        tree[f"link {name}"] = link(name)
    assert restored(bench, tree) == tree


@pytest.mark.requirement("names", kind="boundary")
def test_random_names(bench):
    """Names of any bytes are taken and restored."""
    chance = random.Random(4711)
    allowed = [byte for byte in range(1, 256) if byte != ord("/")]
    names = {bytes(chance.choices(allowed, k=chance.randrange(3, 40))) for _ in range(120)}
    tree = {name.decode("utf-8", "surrogateescape"): file(f"{len(name)}") for name in names}
    assert restored(bench, tree) == tree


@pytest.mark.requirement("names", kind="core")
@pytest.mark.parametrize("name", AS_DIRECTORIES, ids=range(len(AS_DIRECTORIES)))
def test_odd_directories(bench, name):
    """DIRECTORY, TARGET and the store may have odd names, also relative ones."""
    tree = {"a b": file("1"), "-c": file("2")}
    script = f"""
        NIGHTSAFE_STORE=$BASE/{quoted(name + "s")}; mkdir -- "$NIGHTSAFE_STORE"
        call take acme {quoted(name)}
        call list acme
        mkdir inner; cd inner
        call restore acme 20260401-023000 {quoted(name)}
        tree ./{quoted(name)}
        cd ..
        call ls -A
    """
    taken, listed, back, out, left = bench.run(script, below(tree, name))
    assert (taken.status, listed.status, back.status) == (0, 0, 0)
    written = name.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
    assert listed.rows[0][2] == f"{bench.base}/{written}"
    found = out.tree
    found.pop(".")
    assert (found, "hit" in left.out.split("\n")) == (tree, False)


@pytest.mark.requirement("contents", kind="core", retired="round-6")
def test_what_was_in_the_target(bench):
    """What was there under other names stays, and what has the same name is replaced."""
    tree = {"same": file("new"), "sub": directory(), "sub/same": file("new")}
    there = {"same": file("a longer old one"), "other": file("x"), "sub": directory(), "sub/other": file("y")}
    script = "call take acme src\ncall restore acme 20260401-023000 out\ntree out"
    *_, out = bench.run(script, {**below(tree, "src"), **below(there, "out")})
    found = out.tree
    found.pop(".")
    assert found == there | tree


CUSTOMERS = ["", "-acme", "Acme", "a/..", "a b", "a\n", "grün", "a" * 33]


@pytest.mark.requirement("customers", kind="error")
def test_bad_customers(bench):
    """What is no customer's name is refused by every command, and nothing is made or removed."""
    commands = ["take {} src", "list {}", "verify {}", "restore {} 20260401-023000 out", "rotate {}"]
    calls = [(name, commands[at % 5]) for at, name in enumerate(CUSTOMERS)]
    calls += [(name, command) for name in ("a/..", "a\n") for command in commands]
    script = "".join(f"call {command.format(quoted(name))}\n" for name, command in calls)
    *answers, left = bench.run(f"{script}call find . -path ./answers -prune -o -print", below({"x": "1"}, "src"))
    written = [name.replace("\n", "\\n") for name, _ in calls]
    assert answers == [complaint(2, f"bad customer: {name}") for name in written]
    assert sorted(left.out.split("\n")[:-1]) == [".", "./src", "./src/x", "./store"]


@pytest.mark.requirement("customers", kind="boundary")
def test_good_customers(bench):
    """Names of 1 and of 32 characters, with digits and dashes, are customers."""
    names = ["a", "0-", "a" * 32]
    answers = bench.run("".join(f"call take {name} src\n" for name in names), below({"x": "1"}, "src"))
    assert [(answer.status, answer.out) for answer in answers] == [(0, "20260401-023000\n")] * 3
