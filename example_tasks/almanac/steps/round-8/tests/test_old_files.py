"""Files that others came in place of."""

import pytest
from records import log
from scripts import starter_files
from steps import show, shown, take_over

ONE, TWO = "1;01.05.2006;22:10;x;HA;9;1", "2;01.05.2006;22:10;x;HA;9;1"


@pytest.mark.requirement("export-all", kind="core")
def test_all_versions(almanac):
    """Each file that was ever imported is written, the replaced ones with a number, the oldest first."""
    versions = [log(ONE) + b"# \xff\r", log(ONE, "\r"), log(TWO), log(ONE, "\r")]
    files = {f"{number}/a.log": version for number, version in enumerate(versions)} | {"b.log": log(TWO)}
    after = dict(zip(["a.log.1", "a.log.2", "a.log.3", "a.log", "b.log"], [*versions, log(TWO)], strict=True))
    imports = [f"import --replace {number}/a.log b.log" for number in range(4)]
    shows = ["export --all out", show(after), ["ls", "out"], "export only", ["ls", "only"]]
    *_, printed, exported, names, _, only = almanac.prints(*imports, *shows, files=files)
    assert printed == ""
    assert exported == shown(after)
    assert names.split() == sorted(after)
    assert only.split() == ["a.log", "b.log"]


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
