"""Edition 2: titles, loans, and what is overdue."""

import pytest
from library import dump, well
from wire import SqlError

PEOPLE = dump("MEMBERS", "1|Müller|Käthe||01.01.90|", "2|Roth|||01.01.90|", "30|Fuchs|Paul||01.01.90|")
TITLES = (
    "KI 12|Räuber|Preußler, Otfried|1962|2",
    "ki    13|Die Hexe|||",
    "SaC 1204|Maß| |1978|99",
    "K 1|X|||1",
    "KIND 1|X|||1",
    "KI1|X|||1",
    "KI 01|X|||1",
    "KI 12345|X|||1",
    "RO 5||||1",
    "RÖ 5|X|||1",
    "RO 5|X||73|1",
    "RO 5|X||19730|1",
    "RO 5|X||1973|0",
    "RO 5|X||1973|100",
    "RO 5|X||1973|-1",
    "RO 5|X|1973|1",
    "?||||",
    "RO 1|Briest||0999|1",
)
LOANS = (
    "1|ki 12|01.02.03|05.02.03",
    "001|KI  12|06.02.03|06.02.03",
    "2|KI 12|01.02.03|00.00.00",
    "30|KI 13|01.02.2003|",
    "x|KI 12|01.02.03|",
    "1|KI|01.02.03|",
    "1|KI 12||",
    "1|KI 12|01.02.03|31.02.03",
    "1|KI 12|01.02.03|31.01.03",
    "9|KI 12|01.02.03|",
    "1|KI 99|01.02.03|",
    "9|KI 99|01.02.03|01.01.03",
    "9|KI 99|01.02.03|",
    "1|KI 12|01.02.03",
    "x|?|||",
)


@pytest.fixture
def loaded(library):
    """Return a database with all of TITLES and LOANS, for cases that only look, and what `shelf` said."""

    def make():
        database = library.fresh()
        files = {"MEMBERS.DMP": PEOPLE, "TITLES.DMP": dump("TITLES", *TITLES), "LOANS.DMP": dump("LOANS", *LOANS)}
        return database, database.say(*[f"load {name}" for name in files], files=files)

    def find():
        database, said = library.once("loans", make)
        return database.again(library), said

    return find


def refused(database, sql):
    with pytest.raises(SqlError) as caught:
        database.query(sql)
    return caught.value.code


@pytest.mark.requirement("loan-tables", kind="core", retired="round-8")
def test_copies_are_a_number(library):
    """A title says how many copies there are, and a loan which title it is of."""
    database = library.fresh()
    assert database.columns("title")["copies"] == "integer!"
    assert "copy_number" not in database.columns("loan")
    database.query("INSERT INTO title (sig, title, copies) VALUES ('A 1', 'a', 1)")
    assert refused(database, "UPDATE title SET copies = 0") == "23514"


@pytest.mark.requirement("loan-tables", kind="core")
def test_columns_and_constraints(loaded):
    """Titles and loans have the columns of the contract, and the database itself keeps wrong rows out."""
    database = loaded()[0]
    title, loan = database.columns("title"), database.columns("loan")
    expected = {"sig": "text!", "title": "text!", "author": "text", "year": "integer"}
    assert {name: title.get(name) for name in expected} == expected
    expected = {"id": "bigint!", "sig": "text!", "out_on": "date!", "back_on": "date"}
    assert {name: loan.get(name) for name in expected} == expected
    same = "UPDATE loan SET (sig, out_on) = ('KI 12', '2003-02-01')"
    assert refused(database, f"{same} WHERE member_no = 1 AND out_on = '2003-02-06'") == "23505"
    assert refused(database, "UPDATE loan SET back_on = out_on - 1") == "23514"
    assert refused(database, "UPDATE loan SET member_no = 77 WHERE member_no = 30") == "23503"
    assert refused(database, "UPDATE loan SET sig = 'XX 1' WHERE member_no = 30") == "23503"
    assert refused(database, "INSERT INTO loan SELECT * FROM loan") == "428C9"


@pytest.mark.requirement("titles", kind="core")
def test_titles(loaded):
    """Shelf marks are kept in capitals with one blank, empty fields as NULL."""
    assert loaded()[0].query('SELECT sig, title, author, year FROM title ORDER BY sig COLLATE "C"') == [
        ("KI 12", "Räuber", "Preußler, Otfried", 1962),
        ("KI 13", "Die Hexe", None, None),
        ("RO 1", "Briest", None, 999),
        ("SAC 1204", "Maß", None, 1978),
    ]


@pytest.mark.requirement("titles", kind="core", retired="round-8")
def test_number_of_copies(loaded):
    """A title has as many copies as the field says, and one where it is empty."""
    assert loaded()[0].column('SELECT copies FROM title ORDER BY sig COLLATE "C"') == [2, 1, 1, 99]


@pytest.mark.requirement("titles", kind="error")
def test_rejected_titles(loaded):
    """What is no title is a reject, with the first reason that holds."""
    assert dict(loaded()[0].query("SELECT line, reason FROM reject WHERE file = 'TITLES.DMP'")) == {
        5: "sig", 6: "sig", 7: "sig", 8: "sig", 9: "sig", 10: "name", 11: "sig", 12: "year", 13: "year", 14: "copies",
        15: "copies", 16: "copies", 17: "fields", 18: "name",
    }  # fmt: skip


@pytest.mark.requirement("loans", kind="core")
def test_loans(loaded):
    """Loans are of members and titles that there are; one without BACK is open."""
    rows = loaded()[0].query(
        "SELECT member_no, sig, out_on::text, back_on::text FROM loan ORDER BY member_no, sig, out_on"
    )
    assert rows == [
        (1, "KI 12", "2003-02-01", "2003-02-05"), (1, "KI 12", "2003-02-06", "2003-02-06"),
        (2, "KI 12", "2003-02-01", None), (30, "KI 13", "2003-02-01", None),
    ]  # fmt: skip
    assert loaded()[1][1:] == ["TITLES: 4 loaded, 14 rejected\n", "LOANS: 4 loaded, 11 rejected\n"]


@pytest.mark.requirement("loans", kind="error")
def test_rejected_loans(loaded):
    """What is no loan is a reject, with the first reason that holds."""
    assert dict(loaded()[0].query("SELECT line, reason FROM reject WHERE file = 'LOANS.DMP'")) == {
        6: "number", 7: "sig", 8: "date", 9: "date", 10: "order", 11: "member", 12: "title", 13: "order", 14: "member",
        15: "fields", 16: "fields",
    }  # fmt: skip


def small(library):
    """A database with three members and two titles."""
    database = library.fresh()
    rows = "(1, 'Müller', 'Käthe', '1990-01-01'), (2, 'Roth', NULL, '1990-01-01'), (30, 'Fuchs', 'Paul', '1990-01-01')"
    database.query(f"INSERT INTO member (no, name, first_name, since) VALUES {rows}")
    database.shelve(KI_12=9, KI_2=9)
    return database


@pytest.mark.requirement("loans", kind="core")
def test_what_comes_back(library):
    """A loan that is there gets the BACK of a later dump, and there is no second one of it."""
    database = small(library)
    files = {
        "A.DMP": dump("LOANS", "1|KI 12|01.02.03|", "2|KI 12|01.02.03|"),
        "B.DMP": dump("LOANS", "1|ki 12|01.02.03|09.02.03"),
    }
    assert database.say("load A.DMP", "load B.DMP", files=files)[1] == "LOANS: 1 loaded, 0 rejected\n"
    rows = database.query("SELECT member_no, back_on::text FROM loan ORDER BY member_no")
    assert rows == [(1, "2003-02-09"), (2, None)]


@pytest.mark.requirement("overwrite", kind="core", retired="round-10")
def test_titles_and_loans_are_overwritten(library):
    """A record takes the place of the title with its SIG, and its BACK that of the loan, even if it is empty."""
    database = small(library)
    database.load(titles=dump("TITLES", "ki 12|Neu|Wer|1970|9"))
    assert database.query("SELECT title, author, year FROM title WHERE sig = 'KI 12'") == [("Neu", "Wer", 1970)]
    back = "SELECT back_on::text FROM loan"
    database.load(loans=dump("LOANS", "1|KI 12|01.02.03|02.02.03", "1|KI 12|01.02.03|03.02.03"))
    assert database.column(back) == ["2003-02-03"]
    database.load(loans=dump("LOANS", "1|KI 12|01.02.03|"))
    assert database.column(back) == [None]


OUT = (
    "1|KI 12|01.03.03|", "2|KI 12|01.03.03|", "1|KI 2|01.03.03|30.03.03", "30|KI 12|02.03.03|", "30|KI 2|01.02.03|",
    "2|KI 2|01.01.03|01.03.03",
)  # fmt: skip
DAYS = ("2003-03-01", "2003-03-29", "2003-03-30", "2003-02-28", "2003-04-01")


def overdue(library, day):
    def make():
        calls = ["load OUT.DMP", *[f"overdue {day}" for day in DAYS]]
        said = small(library).shelf_each(*calls, files={"OUT.DMP": dump("LOANS", *OUT)})
        return dict(zip(calls, said, strict=True))

    done = library.once("overdue", make)
    well("load OUT.DMP", done["load OUT.DMP"])
    return [line.split("\t") for line in well(f"overdue {day}", done[f"overdue {day}"]).splitlines()]


@pytest.mark.requirement("overdue", kind="core")
@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2003-03-01", []),
        ("2003-03-29", [("30", "28", "Fuchs, Paul")]),
        ("2003-03-30", [("30", "29", "Fuchs, Paul"), ("1", "1", "Müller, Käthe"), ("2", "1", "Roth")]),
        ("2003-02-28", [("2", "30", "Roth")]),
    ],
    ids=["none", "returned-that-day", "longest-first", "returned-later"],
)
def test_overdue(library, day, expected):
    """Loans that are out since more than 28 days on a day, the longest first, with the days and the name."""
    assert [(no, days, name) for no, _, days, name in overdue(library, day)] == expected


@pytest.mark.requirement("overdue", kind="boundary", retired="round-8")
def test_overdue_names_the_title(library):
    """The second column is the shelf mark; members come by number, and one's titles by it."""
    found = overdue(library, "2003-04-01")
    assert [(no, sig) for no, sig, _, _ in found] == [("30", "KI 2"), ("1", "KI 12"), ("2", "KI 12"), ("30", "KI 12")]


@pytest.mark.requirement("overdue", kind="error")
def test_no_day(library):
    """What is no day is a wrong argument."""
    for done in library.live().shelf_each("overdue 2003-02-30", "overdue 01.02.03", "overdue 2003-2-1", "overdue"):
        assert (done.exit_code, done.stdout, done.stderr[:7]) == (2, "", "usage: ")


@pytest.mark.requirement("loans", kind="integration")
def test_a_database_of_edition_1(library):
    """A database of edition 1 is migrated with all that it has: members, and rejects with their bytes."""
    database = library.old(
        1,
        "INSERT INTO member VALUES (7, 'Groß', NULL, '1960-01-01', '1990-01-01', NULL);"
        r"INSERT INTO reject VALUES ('A.DMP', 5, 'BIBLIO 2.1 MEMBERS 9', 'fields', '\x00ff7c')",
    )
    said = database.say("migrate", "load T.DMP", files={"T.DMP": dump("TITLES", "KI 1|A|||1")})
    assert said[0].splitlines()[-1] == f"edition {library.workspace.index}"
    assert said[1] == "TITLES: 1 loaded, 0 rejected\n"
    assert database.query("SELECT no, name, born::text, since::text FROM member") == [
        (7, "Groß", "1960-01-01", "1990-01-01")
    ]
    assert database.query("SELECT file, line, head, reason, raw FROM reject") == [
        ("A.DMP", 5, "BIBLIO 2.1 MEMBERS 9", "fields", r"\x00ff7c")
    ]


@pytest.mark.requirement("loans", kind="integration")
def test_the_registers_loans(library):
    """The register of the main house has its titles and loans."""
    live = library.live()
    assert live.column('SELECT sig FROM title ORDER BY sig COLLATE "C"') == [
        "KI 12", "KI 13", "RO 1", "RO 2", "RO 3", "RO 7", "SAC 1204",
    ]  # fmt: skip
    assert live.query("SELECT count(*)::integer, count(back_on)::integer FROM loan") == [(62, 58)]
    assert live.query("SELECT line, reason FROM reject WHERE file = 'LOANS.DMP' ORDER BY line") == [
        (64, "member"), (65, "title"), (66, "order"),
    ]  # fmt: skip
