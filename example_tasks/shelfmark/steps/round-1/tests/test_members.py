"""Edition 1: a database, and the dump of members in it."""

import pytest
from library import dump

MEMBERS = (
    "000001|Müller              |Käthe     |04.05.61|01.02.1995|02736/1234",
    "2|Öhler von Groß|Zoë|05.05.25|29.02.96|",
    "003||Anna|04.05.61|01.02.95|",
    "4| Weiß ||00.00.00|31.12.29|  ",
    "5|Simões|Maria|  |01.01.30| 0271 / 5",
    "6|Lange|Otto|1.2.61|01.02.95|",
    "7|Lange|Otto|01.02.61|00.00.00|",
    "8|Lange|Otto|01.02.61||",
    "9|Lange|Otto|31.02.61|01.02.95|",
    "0|Lange|Otto|01.02.61|01.02.95|",
    "1234567|Lange|Otto|01.02.61|01.02.95|",
    "-1|Lange|Otto|01.02.61|01.02.95|",
    "|Lange|Otto|01.02.61|01.02.95|",
    "14|Lange|Otto|01.02.61|01.02.95",
    "15|Lange|Otto|01.02.61|01.02.95||",
    "x||Otto|01.02.61|nie|",
    "17||Otto|01.02.61|nie|",
    "18|Lange|Otto|29.02.1900|01.02.95|",
    "999999|Lange|Otto|01.02.1899|01.02.95|",
    "00007|Größe|Ä|01.02.61|01.02.095|",
)
REASONS = {
    4: "name", 7: "date", 8: "date", 9: "date", 10: "date", 11: "number", 12: "number", 13: "number", 14: "number",
    15: "fields", 16: "fields", 17: "number", 18: "name", 19: "date", 21: "date",
}  # fmt: skip


@pytest.fixture
def members(library):
    """Return a database with all of MEMBERS, for cases that only look, and what `shelf` said."""

    def make():
        database = library.fresh()
        return database, database.load(members=dump("MEMBERS", *MEMBERS))

    def find():
        database, said = library.once("members", make)
        return database.again(library), said

    return find


@pytest.mark.requirement("migrate", kind="core", retired="round-5")
def test_migrate_says_the_edition(library):
    """An empty database is brought to the edition, which is what the program prints."""
    database = library.empty()
    assert database.says("migrate") == f"edition {library.workspace.index}\n"
    assert database.edition() == library.workspace.index


@pytest.mark.requirement("migrate", kind="boundary")
def test_migrate_again(library):
    """A database of this edition is not changed by another migration, and has one row in `edition` ever."""
    database = library.fresh()
    said = database.say("load M.DMP", "migrate", files={"M.DMP": dump("MEMBERS", MEMBERS[0], MEMBERS[2])})
    assert said[1] == f"edition {library.workspace.index}\n"
    assert database.query("SELECT * FROM edition") == [(library.workspace.index,)]
    assert database.query("SELECT no, name FROM member") == [(1, "Müller")]
    assert database.query("SELECT line, reason FROM reject") == [(3, "name")]


@pytest.mark.requirement("tables", kind="core")
def test_tables(library):
    """The tables `edition` and `reject` are as the contract has them, and belong to whoever migrates."""
    database = library.fresh()
    assert database.columns("edition") == {"number": "integer!"}
    assert database.columns("reject") == {
        "file": "text!", "line": "integer!", "head": "text!", "reason": "text!", "raw": "bytea!",
    }  # fmt: skip
    owners = "SELECT DISTINCT tableowner::text FROM pg_tables WHERE tablename IN ('edition', 'member', 'reject')"
    assert database.query(owners) == [("register",)]
    assert database.query("SELECT count(*)::integer FROM pg_tables WHERE tablename = 'member'") == [(1,)]


@pytest.mark.requirement("tables", kind="core", retired="round-4")
def test_member_has_a_phone(library):
    """The table `member` has the columns of the contract."""
    columns = library.fresh().columns("member")
    assert columns.pop("phone") == "text"
    assert columns == {"no": "integer!", "name": "text!", "first_name": "text", "born": "date", "since": "date!"}


@pytest.mark.requirement("members", kind="core")
@pytest.mark.parametrize(
    ("no", "columns", "expected"),
    [
        (1, "name, first_name", ("Müller", "Käthe")),
        (2, "name, first_name", ("Öhler von Groß", "Zoë")),
        (4, "name, first_name, born::text", ("Weiß", None, None)),
        (1, "born::text, since::text", ("1961-05-04", "1995-02-01")),
        (2, "since::text", ("1996-02-29",)),
        (4, "since::text", ("2029-12-31",)),
        (5, "since::text, born::text", ("1930-01-01", None)),
        (999999, "born::text", ("1899-02-01",)),
    ],
    ids=["blanks", "letters", "empty", "days", "leap", "until-29", "from-30", "four-digits"],
)
def test_member(members, no, columns, expected):
    """A record becomes a row: numbers, letters of code page 850, days of both lengths, NULL where a field is empty."""
    assert members()[0].query(f"SELECT {columns} FROM member WHERE no = {no}") == [expected]


@pytest.mark.requirement("members", kind="core", retired="round-4")
def test_phone(members):
    """A phone number is kept as it stands, without the blanks around it."""
    rows = members()[0].query("SELECT no, phone FROM member WHERE no < 6 ORDER BY no")
    assert rows == [(1, "02736/1234"), (2, None), (4, None), (5, "0271 / 5")]


@pytest.mark.requirement("century", kind="boundary", retired="round-3")
def test_born_late(members):
    """Two digits of a year from 00 to 29 are of this century, in any field."""
    assert members()[0].query("SELECT born::text FROM member WHERE no = 2") == [("2025-05-05",)]


@pytest.mark.requirement("rejects", kind="core")
def test_what_load_says(members):
    """The line tells how many records were loaded and how many were not, and the table has no others."""
    assert members()[1] == "MEMBERS: 5 loaded, 15 rejected\n"
    assert members()[0].column("SELECT no FROM member ORDER BY no") == [1, 2, 4, 5, 999999]


@pytest.mark.requirement("rejects", kind="error")
def test_reasons(members):
    """What cannot be loaded is kept, with its line and the first reason that holds."""
    assert dict(members()[0].query("SELECT line, reason FROM reject WHERE file = 'MEMBERS.DMP'")) == REASONS


@pytest.mark.requirement("rejects", kind="integration")
def test_a_reject_is_whole(library):
    """A reject has the name of its file, the header, and the bytes of its line as they are in the dump."""
    database = library.fresh()
    data = b"BIBLIO 1.04 MEMBERS 2\r\n\r\n  \r\n 7 |M\x81ller|\xff|x|x|| \r\n8|L|O||01.01.70|\r\n"
    assert database.says("load", "old/Mai 96.dmp", files={"old/Mai 96.dmp": data}) == "MEMBERS: 1 loaded, 1 rejected\n"
    assert database.query("SELECT file, line, head, reason, encode(raw, 'hex') FROM reject") == [
        ("Mai 96.dmp", 4, "BIBLIO 1.04 MEMBERS 2", "fields", b" 7 |M\x81ller|\xff|x|x|| ".hex())
    ]


@pytest.mark.requirement("rejects", kind="integration")
def test_rejects_of_a_file_that_comes_again(library):
    """The rejects of a file go when one of its name is loaded again; those of other files stay."""
    database = library.fresh()
    files = {
        "a/M.DMP": dump("MEMBERS", "x|A|||01.01.70|", "2|B|||01.01.70|", "y|A|||01.01.70|"),
        "b/N.DMP": dump("MEMBERS", "z|A|||01.01.70|"),
        "c/M.DMP": dump("MEMBERS", "3|C|||01.01.70|", "4||||01.01.70|"),
    }
    database.say(*[f"load {path}" for path in files], files=files)
    assert database.query("SELECT file, line, reason FROM reject ORDER BY file") == [
        ("M.DMP", 3, "name"), ("N.DMP", 2, "number"),
    ]  # fmt: skip
    assert database.column("SELECT no FROM member ORDER BY no") == [2, 3]


@pytest.mark.requirement("overwrite", kind="core", retired="round-10")
def test_a_member_is_overwritten(library):
    """A record takes the place of the member with its number, in all fields; the later one of a dump counts."""
    database = library.fresh()
    files = {
        "A.DMP": dump("MEMBERS", "7|Alt|Anna|01.01.60|01.01.90|", "8|Alt|||01.01.90|"),
        "B.DMP": dump("MEMBERS", "7|Neu|Ute|01.01.61|01.01.91|", "0007|Neuer|||01.01.92|"),
    }
    assert database.say("load A.DMP", "load B.DMP", files=files)[1] == "MEMBERS: 2 loaded, 0 rejected\n"
    assert database.query("SELECT no, name, first_name, born::text, since::text FROM member ORDER BY no") == [
        (7, "Neuer", None, None, "1992-01-01"), (8, "Alt", None, None, "1990-01-01"),
    ]  # fmt: skip


@pytest.mark.requirement("dump", kind="boundary")
def test_ends_of_lines_and_of_the_file(library):
    """Lines may end with LF alone, the last one with nothing, and nothing behind a byte 0x1A is read."""
    database = library.fresh()
    files = {
        "PLAIN.DMP": b"BIBLIO 2.1 MEMBERS 2\n1|A|||01.01.70|\n\n2|B|||01.01.70|",
        "LEFT.DMP": b"BIBLIO 2.1 MEMBERS 1\r\n3|C|||01.01.70|\r\n\x1a4|D|||01.01.70|\r\n\x1a",
    }
    assert database.say("load PLAIN.DMP", "load LEFT.DMP", files=files) == [
        "MEMBERS: 2 loaded, 0 rejected\n", "MEMBERS: 1 loaded, 0 rejected\n",
    ]  # fmt: skip
    assert database.column("SELECT name FROM member ORDER BY no") == ["A", "B", "C"]


DAMAGED = {
    "empty": b"",
    "kind": b"BIBLIO 2.1 BOOKS 1\r\n2|New|||01.01.70|\r\n",
    "blanks": b"BIBLIO 2.1  MEMBERS 1\r\n3|New|||01.01.70|\r\n",
    "too-few": b"BIBLIO 2.1 MEMBERS 2\r\n4|New|||01.01.70|\r\n",
    "too-many": b"BIBLIO 2.1 MEMBERS 0\r\n5|New|||01.01.70|\r\n",
    "cut-off": b"BIBLIO 2.1 MEMBERS 2\r\n6|New|||01.01.70|\r\n\x1a6|New|||01.01.70|\r\n",
}


@pytest.mark.requirement("damaged", kind="error")
@pytest.mark.parametrize("case", DAMAGED)
def test_damaged(library, case):
    """A damaged dump ends the program with status 4 and the file's name, and neither rows nor rejects have changed."""

    def make():
        database = library.fresh()
        files = {f"d/{name}.DMP": data for name, data in DAMAGED.items()}
        rejects = ", ".join(f"('{name}.DMP', 3, 'BIBLIO 2.1 MEMBERS 1', 'number', 'x')" for name in DAMAGED)
        database.query(f"INSERT INTO reject (file, line, head, reason, raw) VALUES {rejects}")
        done = database.shelf_each(*[f"load {path}" for path in files], files=files)
        return database, dict(zip(DAMAGED, done, strict=True))

    database, all_done = library.once("damaged", make)
    database, done = database.again(library), all_done[case]
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (4, "", 1)
    assert done.stderr.startswith(f"{case}.DMP: ")
    number = list(DAMAGED).index(case) + 1
    assert database.query(f"SELECT no FROM member WHERE no = {number}") == []
    assert database.query(f"SELECT line, reason FROM reject WHERE file = '{case}.DMP'") == [(3, "number")]


@pytest.mark.requirement("edition", kind="error")
def test_another_edition(library):
    """What is not of this edition is refused with its number, and not touched: no edition, or a later one."""
    empty = library.empty()
    done = empty.shelf("load", "M.DMP", files={"M.DMP": dump("MEMBERS", MEMBERS[0])})
    assert (done.exit_code, done.stdout, done.stderr) == (3, "", "edition 0\n")
    assert empty.query("SELECT count(*)::integer FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
    later = library.fresh()
    later.query("UPDATE edition SET number = 99")
    for done in later.shelf_each("migrate", "load M.DMP", files={"M.DMP": dump("MEMBERS", MEMBERS[0])}):
        assert (done.exit_code, done.stdout, done.stderr) == (3, "", "edition 99\n")
    assert later.edition() == 99
    assert later.query("SELECT * FROM member") == []


@pytest.mark.requirement("usage", kind="error")
def test_usage(library):
    """A command that there is not, or with other arguments, ends with status 2 and a line that begins with usage."""
    for done in library.live().shelf_each("", "move", "load", "migrate now"):
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith("usage: ")


@pytest.mark.requirement("members", kind="integration")
def test_the_register_itself(library):
    """The register of the main house is of this edition, and has its members from the dump."""
    live = library.live()
    assert live.edition() == library.workspace.index
    assert live.query("SELECT count(*)::integer, min(no), max(no) FROM member WHERE no < 100") == [(38, 1, 40)]
    assert live.query("SELECT line, reason FROM reject WHERE file = 'MEMBERS.DMP' ORDER BY line") == [
        (19, "date"), (24, "number"),
    ]  # fmt: skip
    assert live.query("SELECT name, born::text FROM member WHERE no = 5") == [("Böhm", None)]
