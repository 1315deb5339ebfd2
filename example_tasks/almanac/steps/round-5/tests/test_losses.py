"""Imports that would take observations away."""

from ast import literal_eval

import pytest
from records import card, cards, load, log, table
from scripts import starter_files
from steps import select, take_over

ONE, TWO, THREE = (f"{number};01.05.2006;22:1{number};x;HA;9;1;note" for number in (1, 2, 3))
LOG = log("# start", ONE, TWO, TWO, "x")


@pytest.mark.requirement("losses", kind="core")
def test_lost(almanac):
    """A file that lacks an observation, or has fewer equal ones, is refused with all of the call."""
    contents = [
        (log(ONE, TWO), 1),
        (log(TWO, THREE), 2),
        (log(ONE, TWO, TWO.replace("note", "Note")), 1),
        (log(ONE, TWO, TWO).replace(b";9;", b";9.0;"), 3),
        (log(ONE, TWO, TWO).replace(b"1;01.05", b"1;02.05"), 1),
        (b"", 3),
    ]
    files = {"a.log": LOG, "b.log": log(THREE)}
    files |= {f"{number}/a.log": content for number, (content, _) in enumerate(contents)}
    calls = [f"import b.log {number}/a.log" for number in range(len(contents))]
    _, *refused, listed = almanac.answers("import a.log", *calls, "list", files=files)
    assert refused == [
        (1, "", f"error: {number}/a.log: {lost} observations would be lost\n")
        for number, (_, lost) in enumerate(contents)
    ]
    assert listed.output.splitlines() == [
        f"2006-05-01 22:1{number} x            HA      9     60s {number}" for number in (1, 2, 2)
    ]


@pytest.mark.requirement("losses", kind="boundary")
def test_not_lost(almanac):
    """Other lines, another order and another way to write the same take nothing away."""
    files = {
        "a.log": LOG,
        "b.crd": cards(card("1", "120503", "2210", "x", "HA", "9", "1", "a b")),
        "c.tsv": table("1|2012-03-01T20:15|é|HA|9|1|"),
    }
    written = log(
        THREE,
        "# exposure s",
        TWO.replace(";1;", ";60;"),
        f"{ONE[:9]}\\",
        ONE[9:].replace(";1;", ";60;"),
        TWO.replace(";1;", ";60.0; "),
    )
    changed = {
        "new/b.crd": cards(" " + card("1", "120503", "2210", "x", "HA", "9", "1", "a")[1:], "+b"),
        "new/a.log": written,
        "new/c.tsv": "ut\tid\tobserver\texp\tmag\tobject\n2012-03-01T20:15\t1\tHA\t1\t9\té".encode("latin-1"),
    }
    _, printed = almanac.prints(load(files), load(changed), files=files | changed)
    assert printed.splitlines() == [
        "new/b.crd: 1 observations, replacing 1",
        "new/a.log: 4 observations, replacing 3",
        "new/c.tsv: 1 observations, replacing 1",
    ]


@pytest.mark.requirement("replace", kind="core")
def test_replace(almanac):
    """With --replace a file takes the place of the one before, whatever is no longer in it."""
    files = {"a.log": LOG, "new/a.log": log(THREE), "b.log": log(ONE)}
    query = select("SELECT number, file FROM observations ORDER BY 1")
    steps = ["import a.log", "import --replace new/a.log b.log b.log", query, "import --replace"]
    _, replaced, rows, wrong = almanac.answers(*steps, files=files)
    assert replaced == (
        0,
        "new/a.log: 1 observations, replacing 3\nb.log: 1 observations\nb.log: unchanged\n",
        "",
    )
    assert literal_eval(rows.output) == [("1", "b.log"), ("3", "a.log")]
    assert wrong[:2] == (2, "")


@pytest.mark.requirement("losses", kind="integration")
def test_twice_in_one_call(almanac):
    """Of two files of one name in a call the second must have all of the first."""
    files = {"a.log": log(ONE, TWO), "b/a.log": log(TWO)}
    assert almanac.answers("import a.log b/a.log", "import b/a.log a.log", files=files) == [
        (1, "", "error: b/a.log: 1 observations would be lost\n"),
        (0, "b/a.log: 1 observations\na.log: 2 observations, replacing 1\n", ""),
    ]


@pytest.mark.requirement("losses", kind="integration")
def test_the_files_of_the_user(almanac):
    """A file of the user's database may come longer, and not with a note that is another one."""
    text = starter_files()["2006.crd"]
    grown = text.replace(b"*", b"* more", 1) + cards(card("0126", "040306", "2210", "x", "HA", "9", "1"))
    files = {"2006.crd": grown, "new/2006.crd": grown.replace(b"Vergleichssterne", b"Sterne")}
    _, longer, other = almanac.answers(take_over(), "import 2006.crd", "import new/2006.crd", files=files)
    assert longer == (0, "2006.crd: 5 observations, replacing 4\n", "")
    assert other.status == 1
