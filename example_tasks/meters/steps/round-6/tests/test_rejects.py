"""Lines that cannot be read are left out."""

import pytest
from files import aqua, norda, volt, workshop

REJECTS = "SELECT file, line FROM rejects ORDER BY file, line"


@pytest.mark.requirement("rejects", kind="core")
@pytest.mark.imports(
    aqua(
        "Rest;2024-01-01 00:00;1", "Rest;2024-02-30 00:00;2", "", " Rest; 2024-03-01;zwölf ", "Rest;2024-04-01 00:00;3"
    )
)
def test_the_rest_is_imported(seen):
    """Lines that cannot be read are counted and listed as they stand in the file, and all others are imported."""
    assert seen.imported() == ["2 new, 0 changed, 2 rejected"]
    rows = seen.rejects(0)
    assert [list(row) for row in rows] == [["file", "line", "text"]] * 2
    assert [(row["line"], row["text"]) for row in rows] == [
        (4, "Rest;2024-02-30 00:00;2"),
        (6, " Rest; 2024-03-01;zwölf "),
    ]
    assert seen.values("readings", "value", "Rest") == [(1000,), (3000,)]


MISTAKES = {
    "aqua": (
        aqua(),
        [
            "Wrong;2024-01-01 00:00",
            "Wrong;2024-01-01 00:00;1;2",
            ";2024-01-01 00:00;1",
            "Wrong;2024-01-01 24:30;1",
            "Wrong;2024-1-1 00:00;1",
            "Wrong;2024-01-01 00:00;1,2345",
            "Wrong;2024-01-01 00:00;1.5",
            "Wrong;2024-01-01 00:00;-1",
            "Wrong;2024-01-01 00:00;",
        ],
    ),
    "volt": (
        volt(),
        [
            "Wrong,2024-01-01,00:15,1",
            "Wrong,30.02.2024,00:15,1",
            "Wrong,01.01.2024,00:15,1,5",
            'Wrong ä,01.01.2024,00:15,"1,5"',
            ",01.01.2024,00:15,1",
        ],
    ),
    "norda": (
        norda(),
        [
            "Wrong\t2024-01-01T00:00:00\t1\tkWh",
            "Wrong\t2024-01-01T00:00:00Z\t12.34,5\tkWh",
            "Wrong\t2024-01-01T00:00:00Z\t1.2345\tkWh",
            "Wrong\t2024-01-01T00:00:00Z\t1,5\tWh",
            "Wrong\t2024-01-01T00:00:00Z\t0,0005\tkWh",
            "Wrong\t2024-01-01T00:00:00Z\t1,5\tkwh",
            "Wrong\t2024-01-01T00:00:00Z\t1,5",
        ],
    ),
    "workshop": (
        workshop(),
        ["Wrong,2024-01-10T00:00:00,5,1", "Wrong,2024-01-10T00:00:00Z,5", 'Wrong,2024-01-10T00:00:00Z,"5,5",1'],
    ),
}


def mistaken(supplier):
    """Return a file that has nothing but mistakes, and no end of its last line."""
    top, lines = MISTAKES[supplier]
    content = top if isinstance(top, bytes) else top.encode()
    end, encoding = ("\r\n", "latin-1") if supplier == "volt" else ("\n", "utf-8")
    return content + end.join(lines).encode(encoding)


@pytest.mark.requirement("rejects", kind="boundary")
@pytest.mark.imports([mistaken(supplier) for supplier in MISTAKES])
def test_mistakes(seen):
    """What is no line of its supplier is rejected, whatever is wrong with it, and the last line needs no end."""
    assert seen.imported() == [f"0 new, 0 changed, {len(lines)} rejected" for _, lines in MISTAKES.values()]
    for number, (_, lines) in enumerate(MISTAKES.values()):
        assert [row["text"] for row in seen.rejects(number)] == lines


@pytest.mark.requirement("rejects-again", kind="core")
def test_repaired_file(office):
    """A file's rejects are those of the last import of a file of that name, in whatever directory."""
    bad, worse = aqua("W-1;x;1", "W-2;2024-01-01 00:00;5"), aqua("W-1;x;1", "W-2;y;5")
    office.run("import", "a.csv", "b.csv", "c.csv", a=bad, b=worse, c=bad)
    assert office.values(REJECTS) == [("a.csv", 3), ("b.csv", 3), ("b.csv", 4), ("c.csv", 3)]
    good = aqua("W-1;2024-01-01 00:00;1")
    assert office.run("import", "./a.csv", "b.csv", "c.csv", b=bad, c=good)[1] == (
        "./a.csv: 0 new, 0 changed, 1 rejected\nb.csv: 0 new, 0 changed, 1 rejected\nc.csv: 1 new, 0 changed\n"
    )
    assert office.values(REJECTS) == [("a.csv", 3), ("b.csv", 3)]


@pytest.mark.requirement("rejects", kind="error")
def test_whole_files(office):
    """A file of an unknown format still keeps the call from importing anything, rejects included."""
    assert office.run("import", "a.csv", "b.csv", a=aqua("W-1;x;1", "W-2;2024-01-01 00:00;5"), b="nothing") == (
        1,
        "",
        "error: b.csv: unknown format\n",
    )
    office.load(aqua("W-9;2024-01-01 00:00;1"))
    assert office.values(REJECTS) == []
    assert office.values("SELECT meter FROM readings") == [("W-9",)]
