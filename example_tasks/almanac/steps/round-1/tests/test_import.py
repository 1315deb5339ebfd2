"""Importing files."""

import pytest
from records import log, table
from steps import HERE

LOG = log("# notes", "0001;01.05.2006;22:10;x;HA;9;1;", "0002;01.05.2006;22:11;x;HA;9;1;", "something else")
TABLE = table("0003|2012-03-01T20:15|y|HA|9|1|")


@pytest.mark.requirement("import", kind="core")
def test_what_each_file_has(almanac):
    """Each file is named as it was typed, with its observations, in the order of the call."""
    files = {"dir.d/b.tsv": TABLE, "a.log": LOG}
    assert almanac.answers("import ./dir.d/b.tsv a.log", files=files) == [
        (0, "./dir.d/b.tsv: 1 observations\na.log: 2 observations\n", "")
    ]


@pytest.mark.requirement("import-again", kind="core")
def test_same_file_again(almanac):
    """A file that is imported once more, in the same call or from elsewhere, changes nothing."""
    files = {"a.log": LOG, "copy/a.log": LOG}
    twice, again, listed = almanac.prints("import a.log a.log", "import copy/a.log", "list", files=files)
    assert twice == "a.log: 2 observations\na.log: unchanged\n"
    assert again == "copy/a.log: unchanged\n"
    assert len(listed.splitlines()) == 2


@pytest.mark.requirement("import-again", kind="boundary")
def test_equal_lines(almanac):
    """Observations that are equal are as many as there are lines, however often the file comes."""
    twice = log(*["0001;01.05.2006;22:10;x;HA;9;1;"] * 2)
    printed, listed = almanac.prints("import a.log a.log b.log", "list", files={"a.log": twice, "b.log": twice})
    assert printed == "a.log: 2 observations\na.log: unchanged\nb.log: 2 observations\n"
    assert listed == "2006-05-01 22:10 x            HA      9     60s 0001\n" * 4


@pytest.mark.requirement("import-changed", kind="core")
def test_file_that_has_grown(almanac):
    """A file in which something has changed takes the place of the one of its name."""
    grown = LOG + log("0003;01.05.2006;22:12;x;HA;9;1;")
    files = {"a.log": LOG, "new/a.log": grown, "comment/a.log": grown + b"# only a comment\n"}
    _, changed, listed, commented = almanac.prints(
        "import a.log", "import new/a.log", "list", "import comment/a.log", files=files
    )
    assert changed == "new/a.log: 3 observations, replacing 2\n"
    assert len(listed.splitlines()) == 3
    assert commented == "comment/a.log: 3 observations, replacing 3\n"


@pytest.mark.requirement("import-replaced", kind="core", retired="round-5")
def test_file_with_less(almanac):
    """What is no longer in the file is no longer listed."""
    files = {"a.log": LOG, "less/a.log": LOG.replace(b"0001;", b"")}
    _, replaced, listed = almanac.prints("import a.log", "import less/a.log", "list", files=files)
    assert replaced == "less/a.log: 1 observations, replacing 2\n"
    assert listed == "2006-05-01 22:11 x            HA      9     60s 0002\n"


@pytest.mark.requirement("import-error", kind="error")
def test_files_that_cannot_be_imported(almanac):
    """A file that cannot be imported is named, and nothing of the call is."""
    files = {"a.log": LOG, "log": LOG, "a.LOG": LOG, "c.tsv": TABLE, "directory.log/x": b""}
    messages = {
        "no/a.tsv": "cannot read",
        "directory.log": "cannot read",
        "log": "unknown kind of file",
        "a.LOG": "unknown kind of file",
    }
    steps = ["import a.log", *(f"import c.tsv {name}" for name in messages), "list"]
    first, *calls, listed = almanac.answers(*steps, files=files)
    assert (first.status, first.errors) == (0, "")
    assert calls == [(1, "", f"error: {name}: {message}\n") for name, message in messages.items()]
    assert len(listed.output.splitlines()) == 2


@pytest.mark.requirement("no-database", kind="error")
def test_no_database(almanac):
    """Without a database there is a message, and none is made."""
    listed, here = almanac.answers("list", HERE)
    assert listed == (1, "", "error: no almanac.db\n")
    assert "almanac.db" not in here.output.split()


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(almanac):
    """What is no call prints how to call it, and nothing else."""
    calls = almanac.answers("", "import", "lists", "list a.log b.log")
    assert [call[:2] for call in calls] == [(2, "")] * 4
    assert ["usage:" in call.errors for call in calls] == [True] * 4
