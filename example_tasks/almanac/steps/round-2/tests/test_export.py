"""The files come back as they were."""

import pytest
from records import Records, load, log, table
from scripts import script, starter_files
from steps import HERE, show, shown, take_over

ODD = {
    "all.tsv": bytes(range(256)),
    "bare.crd": b"no end of line",
    "empty.log": b"",
    "ends.log": b"one\r\ntwo\rthree\n\n\r\n\\\n# four \t\\",
    "latin.log": "# Jürgen\n0001;01.05.2006;22:10;H\xe4ufchen;HA;9;1; \xa0note \n".encode("latin-1"),
    "mark.tsv": b"\xef\xbb\xbf" + table("1|2012-03-01T20:15|x|HA|9|1|") + b"\xff\xfe\n",
    "twice.log": log(*["0001;01.05.2006;22:10;x;HA;9;1;"] * 2),
}


@pytest.mark.requirement("export", kind="core")
def test_to_the_last_byte(almanac):
    """Whatever a file has, it is written again as it was, into a directory that is made for it."""
    _, printed, exported = almanac.prints(load(ODD), "export out", show(ODD), files=ODD)
    assert printed == ""
    assert exported == shown(ODD)


@pytest.mark.requirement("export", kind="core")
def test_as_it_was_last(almanac):
    """A file that came again is written as it was then, under its name without directories."""
    first, second = log("1;01.05.2006;22:10;x;HA;9;1"), log("# more", "1;01.05.2006;22:10;x;HA;9;1", "x")
    steps = ["import a.log", "import new/a.log", "export out", show(["a.log"])]
    assert almanac.prints(*steps, files={"a.log": first, "new/a.log": second})[-1] == shown({"a.log": second})


@pytest.mark.requirement("export-there", kind="boundary")
def test_files_that_are_there(almanac):
    """Files that are there already and the same do no harm, and neither do others."""
    files = {"a.log": log("x"), "b.log": log("y")}
    there = {"out/b.log": log("y"), "out/c.log": log("z")}
    after = files | {"c.log": log("z")}
    *_, exported = almanac.prints(load(files), "export out", "export out", show(after), files=files | there)
    assert exported == shown(after)


@pytest.mark.requirement("export-there", kind="error")
def test_another_file_is_there(almanac):
    """A file that is there and is another one is not written over, and nothing at all is written."""
    files = {"c.log": log("z"), "b.log": log("y"), "a.log": log("x")}
    others = {"b.log": log("other"), "c.log": b""}
    there = {f"out/{name}": content for name, content in others.items()}
    steps = [load(files), "export out", show(others), ["ls", "out"]]
    _, refused, exported, names = almanac.answers(*steps, files=files | there)
    assert refused == (1, "", "error: out/b.log: is there already\n")
    assert exported.output == shown(others)
    assert names.output.split() == ["b.log", "c.log"]


@pytest.mark.requirement("export", kind="integration")
def test_scripts_go_on(almanac):
    """The old scripts print for what was exported what the program prints."""
    files = Records(21).files
    scripts = ["sh", "-c", "sh /app/old/list.sh out/* && sh /app/old/nights.sh out/*"]
    *_, printed = almanac.prints(load(files), "export out", scripts, files=files)
    assert printed == script("list", files) + script("nights", files)


@pytest.mark.requirement("nothing-lost", kind="integration")
def test_the_files_of_the_user(almanac):
    """The files that the user has thrown away come back out of the database that the first version made."""
    files = starter_files()
    assert almanac.prints(take_over("backups/1.db"), "export out", show(files))[-1] == shown(files)


@pytest.mark.requirement("no-database", kind="error")
def test_no_database(almanac):
    """Without a database there is a message, and none is made."""
    *calls, here = almanac.answers("object x", "nights", "export out", HERE)
    assert calls == [(1, "", "error: no almanac.db\n")] * 3
    assert "almanac.db" not in here.output.split()


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(almanac):
    """What is no call prints how to call it, and nothing else."""
    calls = almanac.answers("object T CrB", "nights all", "export")
    assert [call[:2] for call in calls] == [(2, "")] * 3
    assert ["usage:" in call.errors for call in calls] == [True] * 3
