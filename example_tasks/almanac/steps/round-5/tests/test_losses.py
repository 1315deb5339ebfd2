"""Imports that would take observations away."""

import pytest
from records import card, cards, log, table

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
    almanac.load({"a.log": LOG})
    for number, (content, lost) in enumerate(contents):
        files = {"b.log": log(THREE), f"{number}/a.log": content}
        call = almanac.run("import", *files, files=files)
        assert call == (1, "", f"error: {number}/a.log: {lost} observations would be lost\n")
    assert almanac.prints("list").splitlines() == [
        f"2006-05-01 22:1{number} x            HA      9     60s {number}" for number in (1, 2, 2)
    ]


@pytest.mark.requirement("losses", kind="boundary")
def test_not_lost(almanac):
    """Other lines, another order and another way to write the same take nothing away."""
    almanac.load(
        {
            "a.log": LOG,
            "b.crd": cards(card("1", "120503", "2210", "x", "HA", "9", "1", "a b")),
            "c.tsv": table("1|2012-03-01T20:15|é|HA|9|1|"),
        }
    )
    written = log(
        THREE,
        "# exposure s",
        TWO.replace(";1;", ";60;"),
        f"{ONE[:9]}\\",
        ONE[9:].replace(";1;", ";60;"),
        TWO.replace(";1;", ";60.0; "),
    )
    changed = {
        "b.crd": cards(" " + card("1", "120503", "2210", "x", "HA", "9", "1", "a")[1:], "+b"),
        "a.log": written,
        "c.tsv": "ut\tid\tobserver\texp\tmag\tobject\n2012-03-01T20:15\t1\tHA\t1\t9\té".encode("latin-1"),
    }
    assert almanac.load(changed).splitlines() == [
        "b.crd: 1 observations, replacing 1",
        "a.log: 4 observations, replacing 3",
        "c.tsv: 1 observations, replacing 1",
    ]


@pytest.mark.requirement("replace", kind="core")
def test_replace(almanac):
    """With --replace a file takes the place of the one before, whatever is no longer in it."""
    almanac.load({"a.log": LOG})
    files = {"a.log": log(THREE), "b.log": log(ONE)}
    assert almanac.prints("import", "--replace", "a.log", "b.log", "b.log", files=files) == (
        "a.log: 1 observations, replacing 3\nb.log: 1 observations\nb.log: unchanged\n"
    )
    assert almanac.rows("SELECT number, file FROM observations ORDER BY 1") == [("1", "b.log"), ("3", "a.log")]
    assert almanac.run("import", "--replace")[:2] == (2, "")


@pytest.mark.requirement("losses", kind="integration")
def test_twice_in_one_call(almanac):
    """Of two files of one name in a call the second must have all of the first."""
    files = {"a.log": log(ONE, TWO), "b/a.log": log(TWO)}
    assert almanac.run("import", "a.log", "b/a.log", files=files) == (
        1,
        "",
        "error: b/a.log: 1 observations would be lost\n",
    )
    status, output, _ = almanac.run("import", "b/a.log", "a.log")
    assert (status, output) == (0, "b/a.log: 1 observations\na.log: 2 observations, replacing 1\n")


@pytest.mark.requirement("losses", kind="integration")
def test_the_files_of_the_user(almanac):
    """A file of the user's database may come longer, and not with a note that is another one."""
    almanac.take_over()
    almanac.prints("export", "out")
    text = almanac.exported(["2006.crd"])["2006.crd"]
    grown = text.replace(b"*", b"* more", 1) + cards(card("0126", "040306", "2210", "x", "HA", "9", "1"))
    assert almanac.load({"2006.crd": grown}) == "2006.crd: 5 observations, replacing 4\n"
    shorter = grown.replace(b"Vergleichssterne", b"Sterne")
    assert almanac.run("import", "2006.crd", files={"2006.crd": shorter})[0] == 1
