"""Files that others came in place of."""

import pytest
from records import log
from scripts import starter_files

ONE, TWO = "1;01.05.2006;22:10;x;HA;9;1", "2;01.05.2006;22:10;x;HA;9;1"


@pytest.mark.requirement("export-all", kind="core")
def test_all_versions(almanac):
    """Each file that was ever imported is written, the replaced ones with a number, the oldest first."""
    versions = [log(ONE) + b"# \xff\r", log(ONE, "\r"), log(TWO), log(ONE, "\r")]
    almanac.load({"a.log": versions[0], "b.log": log(TWO)})
    for version in versions[1:]:
        almanac.prints("import", "--replace", "a.log", "b.log", files={"a.log": version})
    assert almanac.prints("export", "--all", "out") == ""
    names = [*(f"a.log.{number}" for number in (1, 2, 3)), "a.log", "b.log"]
    assert almanac.exported(names) == dict(zip(names, [*versions, log(TWO)], strict=True))
    assert sorted(almanac.workspace.list(f"{almanac.path}/out")) == sorted(names)
    almanac.prints("export", "only")
    assert sorted(almanac.workspace.list(f"{almanac.path}/only")) == ["a.log", "b.log"]


@pytest.mark.requirement("export-all", kind="error")
def test_another_file_is_there(almanac):
    """A replaced file is not written over another one, and the same once more is fine."""
    almanac.load({"a.log": log(ONE)})
    almanac.load({"a.log": log(ONE, TWO)})
    done = almanac.run("export", "--all", "out", files={"out/a.log.1": log(TWO)})
    assert done == (1, "", "error: out/a.log.1: is there already\n")
    assert not almanac.workspace.exists(f"{almanac.path}/out/a.log")
    almanac.prints("export", "--all", "more")
    almanac.prints("export", "--all", "more")
    assert almanac.run("export", "--all")[:2] == (2, "")


@pytest.mark.requirement("nothing-lost", kind="integration")
def test_what_the_user_has_replaced(almanac):
    """The notebook that the user replaced in a version of long ago comes back, and so does the table of later."""
    almanac.take_over()
    almanac.prints("export", "--all", "out")
    first = starter_files()["2010.log"]
    assert almanac.exported(["2010.log.1", "2010.log"]) == {
        "2010.log.1": first,
        "2010.log": first.replace(b";8,4;60;", b";8,6;60;"),
    }
    assert almanac.exported(["2018.tsv.1"])["2018.tsv.1"].endswith("\tχ Cyg\tÅSÖ\t5.5\t30\t\n".encode())
    assert almanac.exported(["2018.tsv"])["2018.tsv"].count(b"\n") == 2


@pytest.mark.requirement("take-over", kind="integration")
@pytest.mark.parametrize("database", ["almanac.db", "backups/1.db"])
def test_the_database_of_the_user(almanac, database):
    """What the user preferred in an earlier version is still hidden, and databases of all versions have a report."""
    almanac.take_over(database)
    hidden = database == "almanac.db"
    magnitudes = "10.2, faintest 10.2, mean 10.20" if hidden else "10.2, faintest 10.8, mean 10.50"
    assert (
        almanac.prints("report", "2006").splitlines()[3]
        == f"T CrB: {1 if hidden else 2} observations, brightest {magnitudes}"
    )
