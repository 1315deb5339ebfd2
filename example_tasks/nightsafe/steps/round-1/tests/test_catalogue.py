"""Lines of the catalogue, and what the commands say of them."""

import hashlib

import pytest
from bench import FIRST, below, complaint, file, old_line, packed, quoted, tape

SOURCE = below({"x": "1"}, "src")


def old_store():
    """A store of before the review: with an archive of each kind, and directories that are written as they are."""
    archives = {
        "20200501.tar": tape({"./oldest": file("0")}),
        "20200501-033000.tar": tape({"./older": file("1")}),
        "20240229-120000.tar.gz": packed({"old": file("2")}),
    }
    lines = [
        old_line("20240229-120000", archives["20240229-120000.tar.gz"], "/srv/two words"),
        old_line("20200501-033000", archives["20200501-033000.tar"], "/srv/back\\nslash", "-"),
        old_line("20200501", archives["20200501.tar"], "/srv/tab\there ", "-"),
    ]
    files = {f"store/acme/{name}": data for name, data in archives.items()}
    return {"store/acme/catalogue": "".join(lines), **files}


@pytest.mark.requirement("second-form", kind="core", retired="round-2")
def test_line_with_md5(bench):
    """A new line has the second form, with MD5."""
    bench.run("call take acme src", SOURCE)
    archive = bench.read("store/acme/20260401-023000.tar.gz")
    fields = ["2", "20260401-023000", str(len(archive)), hashlib.md5(archive).hexdigest(), f"{bench.base}/src"]
    assert bench.read("store/acme/catalogue").decode() == "\t".join(fields) + "\n"


@pytest.mark.requirement("second-form", kind="boundary")
def test_directory_as_given(bench):
    """An absolute DIRECTORY is put down as it was given, a relative one behind the current directory."""
    script = f"""
        call take acme $BASE/./src/
        NIGHTSAFE_NOW={FIRST + 60}
        cd src
        call take acme ../src
        call list acme
    """
    *_, listed = bench.run(script, SOURCE)
    assert [row[2] for row in listed.rows] == [f"{bench.base}/./src/", f"{bench.base}/src/../src"]


@pytest.mark.requirement("list", kind="core", retired="round-6")
def test_list_of_three_columns(bench):
    """A list has ID, BYTES and DIRECTORY with tabs between them."""
    _, listed = bench.run("call take acme src\ncall list acme", SOURCE)
    size = len(bench.read("store/acme/20260401-023000.tar.gz"))
    assert listed.out == f"20260401-023000\t{size}\t{bench.base}/src\n"


@pytest.mark.requirement("old-lines", kind="core")
def test_both_forms(bench):
    """Lines of both forms are listed by ID, and the directories of old ones are as they stand there."""
    _, listed = bench.run("call take acme src\ncall list acme", {**old_store(), **SOURCE})
    assert [[row[0], row[2]] for row in listed.rows] == [
        ["20200501", "/srv/tab\\there "],
        ["20200501-033000", "/srv/back\\\\nslash"],
        ["20240229-120000", "/srv/two words"],
        ["20260401-023000", f"{bench.base}/src"],
    ]
    assert bench.read("store/acme/catalogue").startswith(old_store()["store/acme/catalogue"].encode())


@pytest.mark.requirement("old-lines", kind="core")
def test_old_archives(bench):
    """Backups of all kinds are restored, each by its own ID."""
    ids = ["20200501", "20200501-033000", "20240229-120000"]
    script = "".join(f"call restore acme {id} out{id}\ncall ls out{id}\n" for id in ids)
    answers = bench.run(script, old_store())
    assert [(answer.status, answer.out) for answer in answers[1::2]] == [(0, "oldest\n"), (0, "older\n"), (0, "old\n")]


IDS = ["2020", "20200501-0330", ".", "", "*", "x[$(touch hit)]", "a\nb"]


@pytest.mark.requirement("exact-ids", kind="error")
def test_no_such_backup(bench):
    """What is no ID of the catalogue is no backup, however it begins."""
    calls = [(id, f"verify acme {quoted(id)}") for id in IDS] + [
        (id, f"restore acme {quoted(id)} out") for id in IDS[::3]
    ]
    script = "".join(f"call {call}\n" for _, call in calls)
    *answers, left, listed = bench.run(f"{script}call ls\ncall list acme", old_store())
    written = [id.replace("\n", "\\n") for id, _ in calls]
    assert answers == [complaint(1, f"no such backup: {id}") for id in written]
    assert (left.out, len(listed.ids)) == ("answers\nstore\n", 3)


@pytest.mark.requirement("missing", kind="error")
def test_no_such_customer(bench):
    """A customer who is not in the store is none, and is not made."""
    script = "call list nobody\ncall verify nobody\ncall restore nobody 20200501 out\ncall rotate nobody\ncall ls store"
    *answers, left = bench.run(script)
    assert answers == [complaint(1, "no such customer: nobody")] * 4
    assert left.out == ""


@pytest.mark.requirement("missing", kind="error")
def test_no_such_directory(bench):
    """What is no directory cannot be taken, and no customer is made for it."""
    names = ["src/x", "a\nb\\t", ""]
    *answers, left = bench.run("".join(f"call take acme {quoted(name)}\n" for name in names) + "call ls store", SOURCE)
    written = [name.replace("\\", "\\\\").replace("\n", "\\n") for name in names]
    assert answers == [complaint(1, f"no such directory: {name}") for name in written]
    assert left.out == ""


USAGES = [
    ("list", "list CUSTOMER"),
    ("list a b", "list CUSTOMER"),
    ("verify", "verify CUSTOMER [ID]"),
    ("verify a b c", "verify CUSTOMER [ID]"),
    ("restore a b", "restore CUSTOMER ID TARGET"),
    ("restore a b c d", "restore CUSTOMER ID TARGET"),
    ("report x", "report"),
]


@pytest.mark.requirement("usage", kind="error")
def test_usage(bench):
    """Too few and too many arguments are answered by how it is used."""
    answers = bench.run("".join(f"call {call}\n" for call, _ in USAGES))
    assert answers == [complaint(2, f"usage: {usage}") for _, usage in USAGES]


@pytest.mark.requirement("usage-of-take", kind="error", retired="round-5")
def test_usage_of_take(bench):
    """Too few and too many arguments of `take` are answered by how it is used."""
    answers = bench.run("call take acme\ncall take acme src src\ncall take", SOURCE)
    assert answers == [complaint(2, "usage: take CUSTOMER DIRECTORY")] * 3


@pytest.mark.requirement("usage-of-rotate", kind="error", retired="round-3")
def test_usage_of_rotate(bench):
    """Too few and too many arguments of `rotate` are answered by how it is used."""
    answers = bench.run("call rotate\ncall rotate acme acme", SOURCE)
    assert answers == [complaint(2, "usage: rotate CUSTOMER")] * 2
