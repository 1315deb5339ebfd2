"""The files come back as they were."""

import pytest
from records import Records, log, table
from scripts import script, starter_files

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
    almanac.load(ODD)
    assert almanac.prints("export", "out") == ""
    assert almanac.exported(ODD) == ODD


@pytest.mark.requirement("export", kind="core")
def test_as_it_was_last(almanac):
    """A file that came again is written as it was then, under its name without directories."""
    first, second = log("1;01.05.2006;22:10;x;HA;9;1"), log("# more", "1;01.05.2006;22:10;x;HA;9;1", "x")
    almanac.load({"a.log": first})
    almanac.prints("import", "new/a.log", files={"new/a.log": second})
    almanac.prints("export", "out")
    assert almanac.exported(["a.log"]) == {"a.log": second}


@pytest.mark.requirement("export-there", kind="boundary")
def test_files_that_are_there(almanac):
    """Files that are there already and the same do no harm, and neither do others."""
    files = {"a.log": log("x"), "b.log": log("y")}
    almanac.load(files)
    almanac.prints("export", "out", files={"out/b.log": log("y"), "out/c.log": log("z")})
    almanac.prints("export", "out")
    assert almanac.exported(["a.log", "b.log", "c.log"]) == files | {"c.log": log("z")}


@pytest.mark.requirement("export-there", kind="error")
def test_another_file_is_there(almanac):
    """A file that is there and is another one is not written over, and nothing at all is written."""
    almanac.load({"c.log": log("z"), "b.log": log("y"), "a.log": log("x")})
    others = {"out/b.log": log("other"), "out/c.log": b""}
    assert almanac.run("export", "out", files=others) == (1, "", "error: out/b.log: is there already\n")
    assert almanac.exported(["b.log", "c.log"]) == {"b.log": log("other"), "c.log": b""}
    assert not almanac.workspace.exists(f"{almanac.path}/out/a.log")


@pytest.mark.requirement("export", kind="integration")
def test_scripts_go_on(almanac):
    """The old scripts print for what was exported what the program prints."""
    files = Records(21).files
    almanac.load(files)
    almanac.prints("export", "out")
    done = almanac.complete("sh /app/old/list.sh out/* && sh /app/old/nights.sh out/*")
    assert (done.exit_code, done.stdout_bytes) == (0, script("list", files) + script("nights", files))


@pytest.mark.requirement("nothing-lost", kind="integration")
def test_the_files_of_the_user(almanac):
    """The files that the user has thrown away come back out of the database that the first version made."""
    almanac.take_over("backups/1.db")
    almanac.prints("export", "out")
    files = starter_files()
    assert almanac.exported(files) == files


@pytest.mark.requirement("no-database", kind="error")
def test_no_database(almanac):
    """Without a database there is a message, and nothing is made."""
    calls = [almanac.run(*call.split()) for call in ("object x", "nights", "export out")]
    assert calls == [(1, "", "error: no almanac.db\n")] * 3
    assert not almanac.workspace.exists(f"{almanac.path}/out")


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(almanac):
    """What is no call prints how to call it, and nothing else."""
    words = ("object T CrB", "nights all", "export")
    calls = [almanac.run(*call.split()) for call in words]
    assert [call[:2] for call in calls] == [(2, "")] * 3
    assert ["usage:" in errors for _, _, errors in calls] == [True] * 3
