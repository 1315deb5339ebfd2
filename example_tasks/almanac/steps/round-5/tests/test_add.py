"""Observations that are written down with the command."""

import shlex
from ast import literal_eval

import pytest
from records import load, table
from scripts import script
from steps import select, take_over

FIRST = ["2019-03-02T00:15", "χ Cyg", "HJK", "5.4", "30", "klare Nacht"]
HEADER = "id\tut\tobject\tobserver\tmag\texp\tnote\n"
CONTENT = ["cat", "out/almanac.tsv"]


def add(*words):
    return f"add {shlex.join(words)}"


@pytest.mark.requirement("add", kind="core")
def test_add(almanac):
    """An observation gets the next number, and is where all others are; the first one makes the database."""
    second = add("2020-02-29T23:59", "a long name of a star", "Zoë", "", "0")
    query = select("SELECT * FROM observations ORDER BY number")
    *numbers, listed, rows = almanac.prints(add(*FIRST), second, "list", query)
    assert numbers == ["A0001\n", "A0002\n"]
    assert listed == (
        "2019-03-01 00:15 χ Cyg        HJK   5.4     30s A0001\n2020-02-29 23:59 a long name  Zoë            0s A0002\n"
    )
    assert literal_eval(rows) == [
        ("2019-03-01", "2019-03-02T00:15", "χ Cyg", "HJK", "5.4", 30, "A0001", "almanac.tsv", 2, "klare Nacht"),
        ("2020-02-29", "2020-02-29T23:59", "a long name of a star", "Zoë", "", 0, "A0002", "almanac.tsv", 3, ""),
    ]


@pytest.mark.requirement("add-file", kind="core")
def test_exported_for_the_scripts(almanac):
    """What was added is exported as a table that the old scripts read."""
    second = add("2019-03-02T21:15", "T CrB", "HA", "10.0", "240")
    content = almanac.prints(add(*FIRST), second, "export out", CONTENT)[-1]
    assert content.splitlines(keepends=True)[:2] == [HEADER, "A0001\t" + "\t".join(FIRST) + "\n"]
    assert (
        script("list", {"almanac.tsv": content.encode()}).splitlines()[1]
        == "2019-03-02 21:15 T CrB        HA   10.0    240s A0002"
    )


@pytest.mark.requirement("add-file", kind="boundary")
def test_imported_elsewhere(almanac):
    """Where an exported table is imported the numbers go on behind its highest, and nothing of it is lost."""
    rows = "\n".join(
        f"{number}\t2019-03-02T20:0{minute}\tx\tHA\t9\t1\t"
        for minute, number in enumerate(["A0001", "A0041", "A5", "B0099"])
    )
    files = {"almanac.tsv": (HEADER + rows).encode()}
    steps = [load(files), add(*FIRST), load(files), "export out", CONTENT, "import out/almanac.tsv"]
    first, number, lost, _, content, again = almanac.answers(*steps, files=files)
    assert first == (0, "almanac.tsv: 4 observations\n", "")
    assert number == (0, "A0042\n", "")
    assert lost == (1, "", "error: almanac.tsv: 1 observations would be lost\n")
    assert content.output == f"{HEADER}{rows}\nA0042\t" + "\t".join(FIRST) + "\n"
    assert again == (0, "out/almanac.tsv: unchanged\n", "")


@pytest.mark.requirement("add", kind="integration")
def test_beside_other_files(almanac):
    """Numbers of other files do not count, and the user's database takes additions."""
    files = {"z.tsv": table("A9999|2019-03-02T20:00|x|HA|9|1|")}
    written = add("2019-12-31T05:00", "R Leo", "HA", "9.9", "60", "x")
    _, _, number, listed = almanac.prints(take_over(), load(files), written, "list", files=files)
    assert number in ("A0001\n", "A0003\n")
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
    calls = [add(*FIRST[:position], text, *FIRST[position + 1 :]) for position, texts in wrong for text in texts]
    *refused, number = almanac.answers(*calls, add(*FIRST))
    assert [(*call[:2], "usage:" in call.errors) for call in refused] == [(2, "", True)] * len(calls)
    assert number == (0, "A0001\n", "")


@pytest.mark.requirement("add", kind="error")
def test_words_missing(almanac):
    """Fewer than five words and more than six are a wrong call."""
    refused = almanac.answers(add(*FIRST[:4]), add(*FIRST, "x"))
    assert [(*call[:2], "usage:" in call.errors) for call in refused] == [(2, "", True)] * 2
