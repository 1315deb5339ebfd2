"""Which of two observations is right, and what is hidden."""

from ast import literal_eval

import pytest
from records import load, log
from steps import select, show, shown, take_over

OTHER = "2;02.05.2006;22:30;y;HA;7;1;"
FILES = {
    name: log(f"1;02.05.2006;22:30;x;HA;{magnitude};1;from {name}", *others)
    for name, magnitude, others in (
        ("a.log", 9, [OTHER]),
        ("b.log", 8, []),
        ("c.log", 7, ["", OTHER, "1;03.05.2006;22:30;x;HA;6;1"]),
    )
}


PREFER = "prefer 1 2006-05-02"


def magnitudes(listed):
    return [line.split()[4] for line in listed.splitlines() if " x " in line]


@pytest.mark.requirement("prefer", kind="core")
def test_one_is_shown(almanac):
    """The one that is right is shown, the others of its night and number are hidden, and all are exported."""
    query = select("SELECT file, line, magnitude FROM observations ORDER BY file, line")
    shows = ["list", "object x", "nights", query, "doubles", "export out", show(FILES)]
    _, said, listed, printed, nights, rows, doubles, _, exported = almanac.prints(
        load(FILES), f"{PREFER} b.log", *shows, files=FILES
    )
    assert said == ""
    assert magnitudes(listed) == ["8", "6"]
    assert printed == ("2006-05-02 22:30 HA      8     60s 1\n    from b.log\n2006-05-03 22:30 HA      6     60s 1\n")
    assert nights.splitlines() == ["2006-05-02    3     180s", "2006-05-03    1      60s"]
    assert literal_eval(rows) == [("a.log", 2, "7"), ("b.log", 1, "8"), ("c.log", 3, "7"), ("c.log", 4, "6")]
    assert doubles == ""
    assert exported == shown(FILES)


@pytest.mark.requirement("list-all", kind="core")
def test_list_all(almanac):
    """`list --all` has the hidden ones as well, also of a time."""
    lists = ["list --all", "list --from 2006-05-01 --all --to 2006-05-02"]
    _, _, everything, some = almanac.prints(load(FILES), f"{PREFER} b.log", *lists, files=FILES)
    assert magnitudes(everything) == ["9", "8", "7", "6"]
    assert magnitudes(some) == ["9", "8", "7"]


@pytest.mark.requirement("prefer", kind="boundary")
def test_said_once_more(almanac):
    """What was said last counts, and it may be said where there is nothing to decide yet."""
    steps = ["import a.log", f"{PREFER} a.log", "import b.log c.log", "list", f"{PREFER} c.log", "list"]
    _, _, imported, first, _, second = almanac.prints(*steps, files=FILES)
    assert imported.splitlines() == ["b.log: 1 observations", "c.log: 3 observations"]
    assert magnitudes(first) == ["9", "6"]
    assert magnitudes(second) == ["7", "6"]


@pytest.mark.requirement("prefer-gone", kind="boundary")
def test_gone_and_back(almanac):
    """While the one that was preferred is not there all others are shown, until it comes back."""
    files = FILES | {"gone/b.log": log("# empty"), "back/b.log": log("", "1;02.05.2006;22:31;x;HA;8.5;1")}
    gone = [load(FILES), f"{PREFER} b.log", "import --replace gone/b.log", "list", "doubles"]
    back = ["import back/b.log", "list", select("SELECT count(*) FROM observations")]
    _, _, _, without, doubles, imported, listed, rows = almanac.prints(*gone, *back, files=files)
    assert magnitudes(without) == ["9", "7", "6"]
    assert len(doubles.splitlines()) == 2
    assert imported == "back/b.log: 1 observations, replacing 0\n"
    assert magnitudes(listed) == ["8.5", "6"]
    assert literal_eval(rows) == [(4,)]


@pytest.mark.requirement("prefer", kind="integration")
def test_what_is_hidden_is_not_lost(almanac):
    """Hidden observations count in what is imported, and must not be lost either."""
    files = FILES | {"less/a.log": log(OTHER), "more/a.log": FILES["a.log"] + b"#\n"}
    steps = [load(FILES), f"{PREFER} b.log", "import less/a.log", "import more/a.log", "list"]
    _, _, lost, grown, listed = almanac.answers(*steps, files=files)
    assert lost == (1, "", "error: less/a.log: 1 observations would be lost\n")
    assert grown == (0, "more/a.log: 2 observations, replacing 2\n", "")
    assert magnitudes(listed.output) == ["8", "6"]


@pytest.mark.requirement("prefer-error", kind="error")
def test_what_cannot_be_preferred(almanac):
    """A file has to have one such observation, no more and no less."""
    files = FILES | {"d.log": log(OTHER, OTHER, "1;02.05.2006;23:30;x;HA;5;1")}
    messages = {
        "1 2006-05-04 b.log": "no observation 1 of 2006-05-04 in b.log",
        "01 2006-05-02 b.log": "no observation 01 of 2006-05-02 in b.log",
        "1 2006-05-02 z.log": "no observation 1 of 2006-05-02 in z.log",
        "2 2006-05-02 d.log": "2 observations 2 of 2006-05-02 in d.log",
    }
    wrong = ["1 2006-02-30 b.log", "1 2006-05-02"]
    calls = [f"prefer {words}" for words in (*messages, *wrong)]
    missing, _, *refused, listed = almanac.answers(f"{PREFER} b.log", load(files), *calls, "list", files=files)
    assert missing == (1, "", "error: no almanac.db\n")
    assert refused[:-2] == [(1, "", f"error: {message}\n") for message in messages.values()]
    assert [call[:2] for call in refused[-2:]] == [(2, "")] * 2
    assert magnitudes(listed.output) == ["9", "8", "7", "5", "6"]


@pytest.mark.requirement("prefer", kind="integration")
def test_the_files_of_the_user(almanac):
    """In the user's database, with what it has of all versions, one of two is shown."""
    query = select("SELECT file, object, note FROM observations WHERE number IN ('0117', 'A0001') ORDER BY file")
    _, _, listed, rows = almanac.prints(take_over(), "prefer 0117 2006-03-02 2006.log", "list", query)
    assert [line.split()[5] for line in listed.splitlines() if line.endswith(" 0117")] == ["10.8"]
    assert literal_eval(rows) == [
        ("2006.log", "T CrB", "Karte von Jürgen, abgeschrieben"),
        ("almanac.tsv", "χ Cyg", "klare Nacht"),
    ]
