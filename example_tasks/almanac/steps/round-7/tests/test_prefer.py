"""Which of two observations is right, and what is hidden."""

import pytest
from records import log

OTHER = "2;02.05.2006;22:30;y;HA;7;1;"
FILES = {
    name: log(f"1;02.05.2006;22:30;x;HA;{magnitude};1;from {name}", *others)
    for name, magnitude, others in (
        ("a.log", 9, [OTHER]),
        ("b.log", 8, []),
        ("c.log", 7, ["", OTHER, "1;03.05.2006;22:30;x;HA;6;1"]),
    )
}


def magnitudes(almanac, *options):
    return [line.split()[4] for line in almanac.prints("list", *options).splitlines() if " x " in line]


@pytest.mark.requirement("prefer", kind="core")
def test_one_is_shown(almanac):
    """The one that is right is shown, the others of its night and number are hidden, and all are exported."""
    almanac.load(FILES)
    assert almanac.run("prefer", "1", "2006-05-02", "b.log") == (0, "", "")
    assert magnitudes(almanac) == ["8", "6"]
    assert almanac.prints("object", "x") == (
        "2006-05-02 22:30 HA      8     60s 1\n    from b.log\n2006-05-03 22:30 HA      6     60s 1\n"
    )
    assert almanac.prints("nights").splitlines() == ["2006-05-02    3     180s", "2006-05-03    1      60s"]
    rows = almanac.rows("SELECT file, line, magnitude FROM observations ORDER BY file, line")
    assert rows == [("a.log", 2, "7"), ("b.log", 1, "8"), ("c.log", 3, "7"), ("c.log", 4, "6")]
    assert almanac.prints("doubles") == ""
    almanac.prints("export", "out")
    assert almanac.exported(FILES) == FILES


@pytest.mark.requirement("list-all", kind="core")
def test_list_all(almanac):
    """`list --all` has the hidden ones as well, also of a time."""
    almanac.load(FILES)
    almanac.prints("prefer", "1", "2006-05-02", "b.log")
    assert magnitudes(almanac, "--all") == ["9", "8", "7", "6"]
    assert magnitudes(almanac, "--from", "2006-05-01", "--all", "--to", "2006-05-02") == ["9", "8", "7"]


@pytest.mark.requirement("prefer", kind="boundary")
def test_said_once_more(almanac):
    """What was said last counts, and it may be said where there is nothing to decide yet."""
    almanac.load({"a.log": FILES["a.log"]})
    almanac.prints("prefer", "1", "2006-05-02", "a.log")
    assert almanac.load({"b.log": FILES["b.log"], "c.log": FILES["c.log"]}).splitlines() == [
        "b.log: 1 observations",
        "c.log: 3 observations",
    ]
    assert magnitudes(almanac) == ["9", "6"]
    almanac.prints("prefer", "1", "2006-05-02", "c.log")
    assert magnitudes(almanac) == ["7", "6"]


@pytest.mark.requirement("prefer-gone", kind="boundary")
def test_gone_and_back(almanac):
    """While the one that was preferred is not there all others are shown, until it comes back."""
    almanac.load(FILES)
    almanac.prints("prefer", "1", "2006-05-02", "b.log")
    almanac.prints("import", "--replace", "b.log", files={"b.log": log("# empty")})
    assert magnitudes(almanac) == ["9", "7", "6"]
    assert len(almanac.prints("doubles").splitlines()) == 2
    assert almanac.load({"b.log": log("", "1;02.05.2006;22:31;x;HA;8.5;1")}) == "b.log: 1 observations, replacing 0\n"
    assert magnitudes(almanac) == ["8.5", "6"]
    assert almanac.rows("SELECT count(*) FROM observations") == [(4,)]


@pytest.mark.requirement("prefer", kind="integration")
def test_what_is_hidden_is_not_lost(almanac):
    """Hidden observations count in what is imported, and must not be lost either."""
    almanac.load(FILES)
    almanac.prints("prefer", "1", "2006-05-02", "b.log")
    lost = almanac.run("import", "a.log", files={"a.log": log(OTHER)})
    assert lost == (1, "", "error: a.log: 1 observations would be lost\n")
    assert almanac.load({"a.log": FILES["a.log"] + b"#\n"}) == "a.log: 2 observations, replacing 2\n"
    assert magnitudes(almanac) == ["8", "6"]


@pytest.mark.requirement("prefer-error", kind="error")
def test_what_cannot_be_preferred(almanac):
    """A file has to have one such observation, no more and no less."""
    assert almanac.run("prefer", "1", "2006-05-02", "b.log") == (1, "", "error: no almanac.db\n")
    almanac.load(FILES | {"d.log": log(OTHER, OTHER, "1;02.05.2006;23:30;x;HA;5;1")})
    for words, message in (
        (["1", "2006-05-04", "b.log"], "no observation 1 of 2006-05-04 in b.log"),
        (["01", "2006-05-02", "b.log"], "no observation 01 of 2006-05-02 in b.log"),
        (["1", "2006-05-02", "z.log"], "no observation 1 of 2006-05-02 in z.log"),
        (["2", "2006-05-02", "d.log"], "2 observations 2 of 2006-05-02 in d.log"),
    ):
        assert almanac.run("prefer", *words) == (1, "", f"error: {message}\n")
    for words in (["1", "2006-02-30", "b.log"], ["1", "2006-05-02"]):
        assert almanac.run("prefer", *words)[:2] == (2, "")
    assert magnitudes(almanac) == ["9", "8", "7", "5", "6"]


@pytest.mark.requirement("prefer", kind="integration")
def test_the_files_of_the_user(almanac):
    """In the user's database, with what it has of all versions, one of two is shown."""
    almanac.take_over()
    almanac.prints("prefer", "0117", "2006-03-02", "2006.log")
    assert [line.split()[5] for line in almanac.prints("list").splitlines() if line.endswith(" 0117")] == ["10.8"]
    rows = almanac.rows("SELECT file, object, note FROM observations WHERE number IN ('0117', 'A0001') ORDER BY file")
    assert rows == [
        ("2006.log", "T CrB", "Karte von Jürgen, abgeschrieben"),
        ("almanac.tsv", "χ Cyg", "klare Nacht"),
    ]
