"""Observations that are written down with the command."""

import pytest
from records import table
from scripts import script

FIRST = ["2019-03-02T00:15", "χ Cyg", "HJK", "5.4", "30", "klare Nacht"]
HEADER = "id\tut\tobject\tobserver\tmag\texp\tnote\n"


@pytest.mark.requirement("add", kind="core")
def test_add(almanac):
    """An observation gets the next number, and is where all others are; the first one makes the database."""
    assert almanac.run("add", *FIRST) == (0, "A0001\n", "")
    assert almanac.prints("add", "2020-02-29T23:59", "a long name of a star", "Zoë", "", "0") == "A0002\n"
    assert almanac.prints("list") == (
        "2019-03-01 00:15 χ Cyg        HJK   5.4     30s A0001\n2020-02-29 23:59 a long name  Zoë            0s A0002\n"
    )
    assert almanac.rows("SELECT * FROM observations ORDER BY number") == [
        ("2019-03-01", "2019-03-02T00:15", "χ Cyg", "HJK", "5.4", 30, "A0001", "almanac.tsv", 2, "klare Nacht"),
        ("2020-02-29", "2020-02-29T23:59", "a long name of a star", "Zoë", "", 0, "A0002", "almanac.tsv", 3, ""),
    ]


@pytest.mark.requirement("add-file", kind="core")
def test_exported_for_the_scripts(almanac):
    """What was added is exported as a table that the old scripts read."""
    almanac.prints("add", *FIRST)
    almanac.prints("add", "2019-03-02T21:15", "T CrB", "HA", "10.0", "240")
    almanac.prints("export", "out")
    content = almanac.exported(["almanac.tsv"])["almanac.tsv"]
    lines = content.decode().splitlines(keepends=True)
    assert lines[:2] == [HEADER, "A0001\t" + "\t".join(FIRST) + "\n"]
    assert (
        script("list", {"almanac.tsv": content}).decode().splitlines()[1]
        == "2019-03-02 21:15 T CrB        HA   10.0    240s A0002"
    )


@pytest.mark.requirement("add-file", kind="boundary")
def test_imported_elsewhere(almanac):
    """Where an exported table is imported the numbers go on behind its highest, and nothing of it is lost."""
    rows = "\n".join(
        f"{number}\t2019-03-02T20:0{minute}\tx\tHA\t9\t1\t"
        for minute, number in enumerate(["A0001", "A0041", "A5", "B0099"])
    )
    assert almanac.load({"almanac.tsv": (HEADER + rows).encode()}) == "almanac.tsv: 4 observations\n"
    assert almanac.prints("add", *FIRST) == "A0042\n"
    assert almanac.run("import", "almanac.tsv") == (1, "", "error: almanac.tsv: 1 observations would be lost\n")
    almanac.prints("export", "out")
    assert (
        almanac.exported(["almanac.tsv"])["almanac.tsv"].decode()
        == f"{HEADER}{rows}\nA0042\t" + "\t".join(FIRST) + "\n"
    )
    assert almanac.prints("import", "out/almanac.tsv") == "out/almanac.tsv: unchanged\n"


@pytest.mark.requirement("add", kind="integration")
def test_beside_other_files(almanac):
    """Numbers of other files do not count, and the user's database takes additions."""
    almanac.take_over()
    almanac.prints("import", "z.tsv", files={"z.tsv": table("A9999|2019-03-02T20:00|x|HA|9|1|")})
    number = almanac.prints("add", "2019-12-31T05:00", "R Leo", "HA", "9.9", "60", "x")
    assert number in ("A0001\n", "A0003\n")
    listed = almanac.prints("list")
    assert f"2019-12-30 05:00 R Leo        HA    9.9     60s {number}" in listed
    assert "2003-05-12 22:10 T CrB        HJK  10.2   1200s 0001\n" in listed


@pytest.mark.requirement("add", kind="error")
def test_wrong_calls(almanac):
    """What cannot be written down is a wrong call, and nothing is kept of it."""
    wrong = [
        (0, ["2019-02-29T00:15", "2019-03-02 00:15", "2019-03-02T24:00", "2019-03-02T23:60"]),
        (1, ["  ", "χ\tCyg"]),
        (4, ["30s", "-1"]),
        (5, ["a\nb"]),
    ]
    for position, texts in wrong:
        for text in texts:
            status, output, errors = almanac.run("add", *FIRST[:position], text, *FIRST[position + 1 :])
            assert (status, output, "usage:" in errors) == (2, "", True)
    assert almanac.prints("add", *FIRST) == "A0001\n"


@pytest.mark.requirement("add", kind="error")
def test_words_missing(almanac):
    """Fewer than five words and more than six are a wrong call."""
    assert [almanac.run("add", *words)[:2] for words in (FIRST[:4], [*FIRST, "x"])] == [(2, "")] * 2
