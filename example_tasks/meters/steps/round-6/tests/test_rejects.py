"""Lines that cannot be read are left out."""

import pytest
from files import aqua, norda, volt, workshop

REJECTS = "SELECT * FROM rejects ORDER BY file, line"


@pytest.mark.requirement("rejects", kind="core")
def test_the_rest_is_imported(office):
    """Lines that cannot be read are counted and listed as they stand in the file, and all others are imported."""
    text = aqua(
        "W-1;2024-01-01 00:00;1", "W-1;2024-02-30 00:00;2", "", " W-1; 2024-03-01;zwölf ", "W-1;2024-04-01 00:00;3"
    )
    assert office.run("import", "a.csv", a=text) == (0, "a.csv: 2 new, 0 changed, 2 rejected\n", "")
    rows = office.rows(REJECTS)
    assert [list(row.items()) for row in rows] == [
        [("file", "a.csv"), ("line", 4), ("text", "W-1;2024-02-30 00:00;2")],
        [("file", "a.csv"), ("line", 6), ("text", " W-1; 2024-03-01;zwölf ")],
    ]
    assert office.values("SELECT value FROM readings ORDER BY at") == [(1000,), (3000,)]


MISTAKES = {
    "aqua": (
        aqua(),
        [
            "W-1;2024-01-01 00:00",
            "W-1;2024-01-01 00:00;1;2",
            ";2024-01-01 00:00;1",
            "W-1;2024-01-01 24:30;1",
            "W-1;2024-1-1 00:00;1",
            "W-1;2024-01-01 00:00;1,2345",
            "W-1;2024-01-01 00:00;1.5",
            "W-1;2024-01-01 00:00;-1",
            "W-1;2024-01-01 00:00;",
        ],
    ),
    "volt": (
        volt(),
        [
            "P-1,2024-01-01,00:15,1",
            "P-1,30.02.2024,00:15,1",
            "P-1,01.01.2024,00:15,1,5",
            'P-ä,01.01.2024,00:15,"1,5"',
            ",01.01.2024,00:15,1",
        ],
    ),
    "norda": (
        norda(),
        [
            "N-1\t2024-01-01T00:00:00\t1\tkWh",
            "N-1\t2024-01-01T00:00:00Z\t12.34,5\tkWh",
            "N-1\t2024-01-01T00:00:00Z\t1.2345\tkWh",
            "N-1\t2024-01-01T00:00:00Z\t1,5\tWh",
            "N-1\t2024-01-01T00:00:00Z\t0,0005\tkWh",
            "N-1\t2024-01-01T00:00:00Z\t1,5\tkwh",
            "N-1\t2024-01-01T00:00:00Z\t1,5",
        ],
    ),
    "workshop": (
        workshop(),
        ["P-1,2024-01-10T00:00:00,5,1", "P-1,2024-01-10T00:00:00Z,5", 'P-1,2024-01-10T00:00:00Z,"5,5",1'],
    ),
}


@pytest.mark.requirement("rejects", kind="boundary")
def test_mistakes(office):
    """What is no line of its supplier is rejected, whatever is wrong with it, and the last line needs no end."""
    files = {}
    for supplier, (top, lines) in MISTAKES.items():
        content = top if isinstance(top, bytes) else top.encode()
        end, encoding = ("\r\n", "latin-1") if supplier == "volt" else ("\n", "utf-8")
        files[supplier] = content + end.join(lines).encode(encoding)
    status, output, errors = office.run("import", *(f"{supplier}.csv" for supplier in files), **files)
    assert (status, errors) == (0, "")
    assert output.splitlines() == [
        f"{supplier}.csv: 0 new, 0 changed, {len(lines)} rejected" for supplier, (_, lines) in MISTAKES.items()
    ]
    rows = office.values(REJECTS)
    assert [(file, text) for file, _, text in rows] == [
        (f"{supplier}.csv", line) for supplier, (_, lines) in sorted(MISTAKES.items()) for line in lines
    ]


@pytest.mark.requirement("rejects-again", kind="core")
def test_repaired_file(office):
    """A file's rejects are those of the last import of a file of that name, in whatever directory."""
    bad, worse = aqua("W-1;x;1", "W-2;2024-01-01 00:00;5"), aqua("W-1;x;1", "W-2;y;5")
    office.run("import", "a.csv", "b.csv", a=bad, b=worse)
    assert [row[:2] for row in office.values(REJECTS)] == [("a.csv", 3), ("b.csv", 3), ("b.csv", 4)]
    assert office.run("import", "./a.csv", "b.csv", a=bad, b=bad)[1] == (
        "./a.csv: 0 new, 0 changed, 1 rejected\nb.csv: 0 new, 0 changed, 1 rejected\n"
    )
    assert [row[:2] for row in office.values(REJECTS)] == [("a.csv", 3), ("b.csv", 3)]
    assert office.run("import", "b.csv", b=aqua("W-1;2024-01-01 00:00;1"))[1] == "b.csv: 1 new, 0 changed\n"
    assert [row[:2] for row in office.values(REJECTS)] == [("a.csv", 3)]


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
