"""Edition 4: what may be included, and where errors are told to be."""

import pytest
from tool import asks, marked, marks, patterns, told

SOUND = "skip 1\n"
MAIN = '.width 3\n.include "{}"\n knit 1\n row\n'


def includes(loom, names, files, script="", more=()):
    """Run a pattern for each name that includes it, and more files; return the answers, those of patterns by names."""
    made = {f"hall/{index}.knit": MAIN.format(name) for index, name in enumerate(names)}
    files = {**files, **made}
    if script:
        loom.shell(script, files)
        files = None
    answers = loom.all([["run", name] for name in [*made, *more]], files)
    return dict(zip(names, map(tuple, answers), strict=False)), answers[len(names) :]


def refused(names):
    """Return what comes of patterns that include what they must not."""
    return {name: (3, "", f"hall/{index}.knit:2:10: include\n") for index, name in enumerate(names)}


OK = (0, ".0.\n", "")


@pytest.mark.requirement("include-names", kind="error")
def test_names(loom):
    """What is no name of section 2 is not included, whatever is there."""
    files = {"outside.knit": SOUND, "hall/a.knit": SOUND, "hall/.b.knit": SOUND, "hall/A.knit": SOUND}
    files |= {
        "hall/a b.knit": SOUND,
        "hall/" + "n" * 65: SOUND,
        "hall/x/x/x/x/x/x/x/x/a": SOUND,
        "hall/\xe4.knit": SOUND,
    }
    names = [
        "../outside.knit",
        f"{loom.here}/outside.knit",
        "./a.knit",
        ".b.knit",
        "A.knit",
        "a b.knit",
        "n" * 65,
        "a.knit/",
    ]
    names += [
        "x/../a.knit",
        "x//x/x/x/x/x/x/x/a",
        "x/x/x/x/x/x/x/x/a",
        "/a.knit",
        "..",
        "",
        "a.knit\\",
        "a*.knit",
        "x/./x",
    ]
    names += ["~/a.knit", "$HOME", "..\\outside.knit"]
    assert includes(loom, names, files) == (refused(names), [])


@pytest.mark.requirement("include-names", kind="boundary")
def test_odd_names(loom):
    """Eight parts, 64 bytes, blanks around and names of dots and dashes are included."""
    names = ["x/x/x/x/x/x/x/a", "n" * 64, "-rf", "a..b", "_", "9.", "x/a-1/b"]
    files = {f"hall/{name}": SOUND for name in names}
    # From anywhere, and by whatever name the pattern has.
    more = [f"{loom.here}/hall/1.knit", "hall/../hall/2.knit"]
    answers = includes(loom, ["a/../-rf", *names], files, more=more)
    assert answers == (refused(["a/../-rf"]) | dict.fromkeys(names, OK), [OK, OK])


@pytest.mark.requirement("include-links", kind="error")
def test_links(loom):
    """No part is a link, wherever it leads; the pattern itself may be reached by one."""
    files = {"outside/o.knit": SOUND, "hall/a.knit": SOUND, "hall/d/b.knit": SOUND}
    links = {"out.knit": "../outside/o.knit", "in.knit": "a.knit", "dir": "../outside", "in": "d"}
    links |= {"zero": "/dev/zero", "gone": "nowhere", "self": "self"}
    script = "ln -s hall way; cd hall; " + "; ".join(f"ln -s {target} {name}" for name, target in links.items())
    names = ["out.knit", "in.knit", "dir/o.knit", "in/b.knit", "zero", "gone", "self", "d/b.knit/x"]
    answers = includes(loom, [*names, "d/b.knit", "a.knit"], files, script, ["way/9.knit"])
    assert answers == (refused(names) | {"d/b.knit": OK, "a.knit": OK}, [OK])


@pytest.mark.requirement("include-files", kind="error")
def test_what_is_no_file(loom):
    """What is missing, no regular file or too large is not included, and nobody waits for it."""
    files = {"hall/large": "; " + "x" * 65533 + "\n\n", "hall/fits": "; " + "x" * 65533 + "\n", "hall/d/x": ""}
    files |= {"hall/empty": "", "hall/skips": "\n" * 65529 + "skip 1\n"}
    names = ["none", "d", "large", "pipe", "fits/x"]
    included = {"fits": (0, "0..\n", ""), "empty": (0, "0..\n", ""), "skips": OK}
    answers, _ = includes(loom, [*names, *included], files, "mkfifo hall/pipe")
    assert answers == refused(names) | included


LARGEST = [".width 3\nrow\n;".ljust(65536, "x"), ".width 3\nhlt\n;".ljust(65537, "x")]


@pytest.mark.requirement("include-files", kind="boundary")
@asks(patterns(LARGEST))
def test_large_pattern(loom):
    """A pattern has at most 65536 bytes; one that has more is told so, and nothing else."""
    assert loom.answers() == [[(0, "...\n", ""), (3, "", "p1.knit:1:1: limit\n")]]


@pytest.mark.requirement("include-circles", kind="error")
def test_circles(loom):
    """A file is not included by itself, nor by what it includes; twice beside one another it is."""
    files = {
        "hall/a.knit": '.include "a.knit"\n',
        "hall/b.knit": 'skip 1\n.include "d/c.knit"\n',
        "hall/d/c.knit": '\n .include "e.knit"',
        "hall/d/e.knit": ".width 3\n",
        "hall/q.knit": ' halt\n.include "r.knit"',
        "hall/r.knit": '; back\n  .include   "q.knit"  ; to q',
        "hall/twice.knit": '.include "s.knit"\n.include "s.knit"\n.include "s.knit"\nrow\n.width 5\n',
        "hall/s.knit": "skip 1\nknit 0\n",
        "hall/v.knit": '.include "x.knit"',
        "hall/x.knit": '.include "y.knit"',
        "hall/y.knit": '\n.include "x.knit"',
    }
    commands = [["run", f"hall/{name}.knit"] for name in ("a", "b", "q", "twice", "r", "v")]
    assert loom.all(commands, files) == [
        (3, "", "hall/a.knit:1:10: include\n"),
        (0, "", ""),
        (3, "", "hall/r.knit:2:14: include\n"),
        (0, ".....\n", ""),
        (3, "", "hall/q.knit:2:10: include\n"),
        (3, "", "hall/y.knit:2:10: include\n"),
    ]


@pytest.mark.requirement("include-depth", kind="boundary")
def test_depth_and_number(loom):
    """Eight files deep, the pattern's among them, and 64 included files in all."""
    files = {f"hall/d{number}": f'\n.include "d{number + 1}"' for number in range(1, 9)} | {"hall/d9": ""}
    files |= {
        "hall/64": '.include "e"\n' * 64 + "row",
        "hall/65": '.include "e"\n' * 64 + ' .include "e"',
        "hall/e": "",
    }
    files |= {"hall/b0": "row"} | {f"hall/b{n}": f'.include "b{n - 1}"\n' * 3 for n in range(1, 7)}
    commands = [["run", f"hall/{name}"] for name in ("d2", "d1", "64", "65", "b3", "b6")]
    row = "." * 40 + "\n"
    assert loom.all(commands, files) == [
        (0, "", ""),
        (3, "", "hall/d8:2:10: include\n"),
        (0, row, ""),
        (3, "", "hall/65:65:11: include\n"),
        (0, 27 * row, ""),
        (3, "", "hall/b1:3:10: include\n"),
    ]


@pytest.mark.requirement("include-places", kind="error")
def test_places(loom):
    """An error is told in the file that has it, as seen from the pattern, and the first one counts."""
    files = {
        "hall/p.knit": '.width 3\n .include "parts/a.knit"\nhlt\n',
        "hall/parts/a.knit": 'row\n.include "more/b.knit"\nset r9\n',
        "hall/parts/more/b.knit": "\n\n  jmp nowhere\n",
        "hall/q.knit": '.include "parts/c.knit"\njmp x\na:\n',
        "hall/parts/c.knit": "a: row\njmp a\n",
        "s.knit": '.include "hall/parts/more/b.knit"',
        "hall/t.knit": '.include "none" , 5\nhlt',
        "hall/u.knit": "row\n.include \n.include 5\n",
    }
    places = [
        "hall/p.knit",
        "./hall/p.knit",
        "hall/q.knit",
        "s.knit",
        "hall/t.knit",
        "hall/u.knit",
        f"{loom.here}/s.knit",
    ]
    assert [answer.err for answer in loom.all([["run", name] for name in places], files)] == [
        "hall/parts/more/b.knit:3:7: name\n",
        "./hall/parts/more/b.knit:3:7: name\n",
        "hall/q.knit:2:5: name\n",
        "hall/parts/more/b.knit:3:7: name\n",
        "hall/t.knit:1:10: include\n",
        "hall/u.knit:2:9: operand\n",
        f"{loom.here}/hall/parts/more/b.knit:3:7: name\n",
    ]


def shown_column(source):
    """Return a pattern without its mark, and the place with the column that an editor shows, with tabs of eight."""
    text, place = marked(source)
    line = source.partition("@")[0].rpartition("\n")[2]
    return text, f"{place.partition(':')[0]}:{len(line.expandtabs(8)) + 1}"


COLUMNS = {
    "word": [
        "\t@hlt",
        "a:\t @x",
        " \t \t@hlt",
        "\t\t\t@x",
        "halt\n\na234567:\t@x",
        "a2345678:\t@x",
        "a23456:\t@x",
    ],
    "number": ["\tset\tr1,\t@5x", "knit\t\t @99999", "\t.data\t1,2,\t@32768"],
    "operand": ["\tset\tr1@", "\thalt\t@5\t\t", "set\tr1,\t@,5"],
    "byte": ["\thalt\t@\x01"],
    "include": ['\t.include\t@"none"'],
}


@pytest.mark.requirement("columns", kind="core")
@asks(marks(COLUMNS))
def test_columns(loom):
    """Columns are as editors show them, with tabs that end at 9, 17, 25."""
    assert shown_column("ab\t@x")[1] == "1:9"
    told(*loom.answers(), COLUMNS, shown_column)
