"""Edition 9: a member leaves and is forgotten."""

import pytest
from library import Later, dump

ROWS = """
INSERT INTO member (no, name, first_name, since, version) VALUES
    (7, 'Geheim', 'Gerd', '1990-01-01', '2.1'), (8, 'Bleibt', NULL, '1990-01-01', NULL),
    (70, 'Siebzig', NULL, '1990-01-01', NULL);
INSERT INTO contact (member_no, kind, value) VALUES
    (7, 'phone', '+4927367777'), (7, 'note', 'Geheimtür'), (8, 'note', 'x');
INSERT INTO title (sig, title) VALUES ('KI 1', 'T'), ('KI 2', 'T');
INSERT INTO copy (sig, number) VALUES ('KI 1', 1), ('KI 1', 2), ('KI 2', 1);
INSERT INTO loan (member_no, sig, copy_number, out_on, back_on) VALUES
    (7, 'KI 1', 1, '2003-01-01', '2003-01-09'), (7, 'KI 2', 1, '2003-01-01', '2003-06-01'),
    (8, 'KI 1', 2, '2003-01-01', NULL);
INSERT INTO reject (file, line, head, reason, raw) VALUES
    ('a', 2, 'BIBLIO 2.1 MEMBERS 9', 'date', '007|Geheim|||nie|'),
    ('a', 3, 'BIBLIO 2.1 MEMBERS 9', 'fields', ' 7 |Geheim'),
    ('a', 4, 'BIBLIO 2.1 MEMBERS 9', 'date', '70|Siebzig|||nie|'),
    ('a', 5, 'BIBLIO 2.1 MEMBERS 9', 'number', '7x|Y|||nie|'),
    ('a', 6, 'BIBLIO 2.1 MEMBERS 9', 'fields', '7'),
    ('b', 2, 'BIBLIO 3.0 LOANS 9', 'sig', '7|?|01.01.03|'),
    ('b', 3, 'BIBLIO 3.0 LOANS 9', 'sig', '8|7|01.01.03|'),
    ('c', 2, 'BIBLIO 2.1 TITLES 9', 'sig', '7|Sieben|||');
"""


@pytest.fixture
def database(library):
    """A database in which member 7 has left nothing out."""

    def make():
        found = library.fresh()
        found.query(ROWS)
        return found

    return Later(make)


def everything(database):
    """Return all that is in the tables, as text."""
    tables = database.column("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
    rows = database.column(
        " UNION ALL ".join(f"SELECT t::text FROM public.{table} t" for table in tables) + " ORDER BY 1"
    )
    return str(rows) + str(database.column("SELECT convert_from(raw, 'LATIN1') FROM reject"))


@pytest.mark.requirement("leave", kind="core")
def test_a_member_is_forgotten(database):
    """Who leaves is gone with his contacts, and nothing but his number is anywhere; his loans stay, of nobody."""
    assert database.says("leave", "7") == "left 7\n"
    assert database.column("SELECT no FROM member ORDER BY no") == [8, 70]
    assert database.query("SELECT member_no, kind, value FROM contact") == [(8, "note", "x")]
    assert database.query("SELECT * FROM left_member") == [(7,)]
    columns = "member_no, sig, copy_number, out_on::text, back_on::text"
    assert database.query(f"SELECT {columns} FROM loan ORDER BY sig, copy_number") == [
        (None, "KI 1", 1, "2003-01-01", "2003-01-09"), (8, "KI 1", 2, "2003-01-01", None),
        (None, "KI 2", 1, "2003-01-01", "2003-06-01"),
    ]  # fmt: skip
    assert "Geheim" not in everything(database)
    assert "7777" not in everything(database)


@pytest.mark.requirement("leave", kind="boundary")
def test_rejects_of_who_leaves(database):
    """His rejects go, however his number is written in them, and those of others and of titles stay."""
    database.says("leave", "007")
    rejects = database.query("SELECT file, line FROM reject ORDER BY file, line")
    assert rejects == [("a", 4), ("a", 5), ("b", 3), ("c", 2)]


@pytest.mark.requirement("leave", kind="error")
def test_who_cannot_leave(database):
    """Who has open loans stays with all that he has, and so does everybody where there is no such member."""
    before = everything(database)
    lends, nobody, nothing = database.shelf_each("leave 8", "leave 9", "leave")
    assert lends == (6, "", "8: 1 open loans\n")
    assert nobody == (6, "", "9: no such member\n")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr[:7]) == (2, "", "usage: ")
    assert everything(database) == before
    first, again = database.shelf_each("leave 7", "leave 7")
    assert (first[:2], again) == ((0, "left 7\n"), (6, "", "7: no such member\n"))


@pytest.mark.requirement("passed-over", kind="core")
def test_old_dumps(database):
    """What old dumps have of him is passed over, be it whole or not, and is told of in the line."""
    files = {
        "M.DMP": dump(
            "MEMBERS", "7|Geheim|||01.01.90|1212", "007|Geheim", " 7 |Geheim|||nie|", "77|Neu|||01.01.90|", "x"
        ),
        "L.DMP": dump("LOANS", "7|KI 1|01.01.03|09.01.03", "7|?|x", "77|KI 2|01.01.03|"),
        "T.DMP": dump("TITLES", "7|Sieben|||1", "KI 7|Sieben|||1"),
    }
    assert database.say("leave 7", "load M.DMP L.DMP T.DMP", files=files)[1].splitlines() == [
        "MEMBERS: 1 loaded, 1 rejected, 3 passed over", "LOANS: 1 loaded, 0 rejected, 2 passed over",
        "TITLES: 1 loaded, 1 rejected",
    ]  # fmt: skip
    assert database.column("SELECT no FROM member ORDER BY no") == [8, 70, 77]
    assert database.query("SELECT count(*)::integer FROM loan WHERE member_no IS NULL") == [(2,)]
    rejects = "SELECT file, line FROM reject WHERE file LIKE '%.DMP' ORDER BY file"
    assert database.query(rejects) == [("M.DMP", 6), ("T.DMP", 2)]
    assert "Geheim" not in everything(database)


@pytest.mark.requirement("passed-over", kind="error")
def test_code_of_somebody_who_has_left(database):
    """A record of his is passed over, too, where it has bytes that mean nothing."""
    data = b"BIBLIO 3.1 MEMBERS 2\r\n7|Geheim\x81|||01.01.90|\r\n9|A\x81|||01.01.90|\r\n"
    said = database.say("leave 7", "load M.DMP", files={"M.DMP": data})
    assert said[1] == "MEMBERS: 0 loaded, 1 rejected, 1 passed over\n"


@pytest.mark.requirement("nobodys-loans", kind="core")
def test_loans_of_nobody(database):
    """A loan of nobody is not overdue, may be there more than once on a day, and keeps its copy out."""
    database.query("UPDATE member SET no = 9 WHERE no = 70")
    loans = dump("LOANS", "9|KI 2|01.01.03|02.03.03")
    said = database.say(
        "leave 7", "overdue 2003-03-01", "load L.DMP", "overdue 2003-03-01", files={"L.DMP": loans}
    )  # fmt: skip
    assert said[1] == "8\tKI 1/2\t31\tBleibt\n"
    assert database.query("SELECT copy_number FROM loan WHERE member_no = 9") == [(2,)]
    assert said[3].splitlines()[1:] == ["9\tKI 2/2\t31\tSiebzig"]
    database.says("leave", "9")
    assert database.query("SELECT count(*)::integer FROM loan WHERE sig = 'KI 2' AND member_no IS NULL") == [(2,)]


@pytest.mark.requirement("leave", kind="integration")
def test_a_database_of_edition_8(library):
    """Loans of an earlier edition are of nobody when their member leaves; the tables are as the contract has them."""
    database = library.old(8, ROWS)
    database.says("migrate")
    assert database.columns("left_member") == {"no": "integer!"}
    assert database.columns("loan")["member_no"] == "integer"
    assert database.query("SELECT count(*)::integer FROM loan WHERE member_no = 7") == [(2,)]
    assert database.says("leave", "7") == "left 7\n"
    assert database.query("SELECT count(*)::integer FROM loan WHERE member_no IS NULL") == [(2,)]
