"""Numbers that are there twice."""

from ast import literal_eval

import pytest
from records import load, log, table
from steps import select, show, shown, take_over

DOUBLES = (
    "2006-03-02 22:10 T CrB        HJK  10.2   1200s 0117 2006.crd:2\n"
    "2006-03-02 22:10 T CrB        HJK  10.8   1200s 0117 2006.log:2\n"
)


def line(number, day, minute, *, magnitude="9", note=""):
    return f"{number};{day}.05.2006;22:{minute};x;HA;{magnitude};1;{note}"


@pytest.mark.requirement("doubles", kind="core")
def test_doubles(almanac):
    """All observations of a night and number that are not all the same, by night, number and then as in the list."""
    files = {
        "a.log": log(
            line("9", "02", 15),
            line("10", "02", 40),
            line("10", "02", 30),
            line("3", "02", 59),
            line("4", "03", 10),
        ),
        "b.log": log(
            line("9", "02", 15, note="x"),
            line("7", "01", 30),
            line("10", "02", 30),
            line("3", "02", 59),
            line("4", "02", 10),
        ),
        "c.tsv": table("2006-05-01T20:15|x", "2006-05-01T20:16|y", columns="ut object"),
        "d.log": log("", line("7", "01", 30, magnitude="8.9"), line("3", "02", 59)),
    }
    listed = almanac.prints(load(files), "doubles", files=files)[1].splitlines()
    places = [text.split(" ")[-1] for text in listed]
    assert places == ["b.log:2", "d.log:2", "a.log:3", "b.log:3", "a.log:2", "a.log:1", "b.log:1"]
    assert listed[1] == "2006-05-01 22:30 x            HA    8.9     60s 7 d.log:2"


@pytest.mark.requirement("doubles", kind="boundary")
def test_after_midnight(almanac):
    """The night counts, and not the date."""
    rows = [f"1|2012-03-{moment}|x" for moment in ("01T20:15", "02T01:15", "02T20:15")]
    _, listed = almanac.prints("import a.tsv", "doubles", files={"a.tsv": table(*rows, columns="id ut object")})
    assert [text[:16] for text in listed.splitlines()] == ["2012-03-01 20:15", "2012-03-01 01:15"]


@pytest.mark.requirement("doubt", kind="core")
def test_nothing_goes_on_a_guess(almanac):
    """Of two that contradict each other both stay in the list, the view and the files."""
    files = {"a.log": log(line("1", "02", 30)), "b.log": log(line("1", "02", 30, magnitude="8"))}
    query = select("SELECT file FROM observations ORDER BY file")
    steps = [load(files), "doubles", "list", query, "export out", show(files)]
    _, doubles, listed, rows, _, exported = almanac.prints(*steps, files=files)
    assert [text.split(" ")[-1] for text in doubles.splitlines()] == ["a.log:1", "b.log:1"]
    assert len(listed.splitlines()) == 2
    assert literal_eval(rows) == [("a.log",), ("b.log",)]
    assert exported == shown(files)


@pytest.mark.requirement("doubt", kind="integration")
def test_both_stay_with_the_user(almanac):
    """In a database of the first version both observations of the user's example stay, and are shown as doubles."""
    query = select("SELECT magnitude FROM observations WHERE number = '0117' ORDER BY 1")
    _, doubles, rows, listed = almanac.prints(take_over("backups/1.db"), "doubles", query, "list")
    assert doubles.startswith("2003-12-31 00:15")
    assert doubles.endswith(DOUBLES)
    assert literal_eval(rows) == [("10.2",), ("10.8",)]
    assert listed.count(" 0117\n") == 2


@pytest.mark.requirement("doubles", kind="error")
def test_wrong_calls(almanac):
    """Without a database, and with a word too many, it is as with the others."""
    missing, wrong = almanac.answers("doubles", "doubles 0117")
    assert missing == (1, "", "error: no almanac.db\n")
    assert wrong[:2] == (2, "")
