"""Files that others came in place of."""

import pytest
from records import log, table
from scripts import starter_files
from steps import show, shown, take_over

ONE, TWO = "1;01.05.2006;22:10;x;HA;9;1", "2;01.05.2006;22:10;x;HA;9;1"


@pytest.mark.requirement("export-all", kind="core")
def test_all_versions(almanac):
    """Each file that was ever imported is written, replaced ones as they were and with a number, the oldest first."""
    versions = [log(ONE) + b"# \xff\r", log(ONE, "\r"), log(TWO), log(ONE, "\r")]
    tables = [table("A0001|2019-03-01T20:00|x|HA|9|1|"), table("A0001|2019-03-01T20:00|x|HA|9|1|", "# more")]
    files = {f"{number}/a.log": version for number, version in enumerate(versions)}
    files |= {"0/almanac.tsv": tables[0], "2/almanac.tsv": tables[1], "b.log": log(TWO)}
    imports = [f"import --replace {number}/a.log b.log" for number in range(4)]
    imports[0] += " 0/almanac.tsv"
    imports[2] += " 2/almanac.tsv"
    written = "add 2019-03-02T00:15 x HA 9 1 y"  # Into the table as it is now, and not as it was.
    after = dict(zip(["a.log.1", "a.log.2", "a.log.3", "a.log"], versions, strict=True)) | {
        "almanac.tsv.1": tables[0],
        "almanac.tsv": tables[1] + b"A0002\t2019-03-02T00:15\tx\tHA\t9\t1\ty\n",
        "b.log": log(TWO),
    }
    shows = ["export --all out", show(after), ["ls", "out"], "export only", ["ls", "only"]]
    *_, printed, exported, names, _, only = almanac.prints(*imports, written, *shows, files=files)
    assert printed == ""
    assert exported == shown(after)
    assert sorted(names.split()) == sorted(after)
    assert sorted(only.split()) == ["a.log", "almanac.tsv", "b.log"]


@pytest.mark.requirement("export-all", kind="error")
def test_another_file_is_there(almanac):
    """A replaced file is not written over another one, and the same once more is fine."""
    files = {"a.log": log(ONE), "new/a.log": log(ONE, TWO), "out/a.log.1": log(TWO)}
    exports = ["export --all out", ["ls", "out"], "export --all more", "export --all more", "export --all"]
    _, _, refused, names, *more, wrong = almanac.answers("import a.log", "import new/a.log", *exports, files=files)
    assert refused == (1, "", "error: out/a.log.1: is there already\n")
    assert names.output.split() == ["a.log.1"]
    assert more == [(0, "", "")] * 2
    assert wrong[:2] == (2, "")


@pytest.mark.requirement("nothing-lost", kind="integration")
def test_what_the_user_has_replaced(almanac):
    """The notebook that the user replaced in a version of long ago comes back, and so does the table of later."""
    first = starter_files()["2010.log"]
    notebooks = {"2010.log.1": first, "2010.log": first.replace(b";8,4;60;", b";8,6;60;")}
    tables = [["cat", "out/2018.tsv.1"], ["cat", "out/2018.tsv"]]
    _, _, exported, before, after = almanac.prints(take_over(), "export --all out", show(notebooks), *tables)
    assert exported == shown(notebooks)
    assert before.endswith("\tχ Cyg\tÅSÖ\t5.5\t30\t\n")
    assert after.count("\n") == 2


@pytest.mark.requirement("take-over", kind="integration")
@pytest.mark.parametrize("database", ["almanac.db", "backups/1.db"])
def test_the_database_of_the_user(almanac, database):
    """What the user preferred in an earlier version is still hidden, and databases of all versions have a report."""
    hidden = database == "almanac.db"
    magnitudes = "10.2, faintest 10.2, mean 10.20" if hidden else "10.2, faintest 10.8, mean 10.50"
    _, report = almanac.prints(take_over(database), "report 2006")
    assert report.splitlines()[3] == f"T CrB: {1 if hidden else 2} observations, brightest {magnitudes}"
