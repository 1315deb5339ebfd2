"""Edition 10: the register leads, rejects are tried again, and the district reads on."""

import pytest
from library import Later, dump


@pytest.fixture
def database(library):
    """A database with two members, two titles and three loans."""

    def make():
        found = library.fresh()
        found.enrol(A=1, B=2)
        found.shelve(KI_1=2, KI_2=1)
        found.query(
            "INSERT INTO contact (member_no, kind, value) VALUES"
            " (1, 'phone', '+491'), (1, 'note', 'abends'), (1, 'note', 'Zettel');"
            "INSERT INTO loan (member_no, sig, copy_number, out_on, back_on) VALUES (1, 'KI 1', 1, '2003-01-01', NULL),"
            "(2, 'KI 1', 2, '2003-01-01', '2003-02-01'), (2, 'KI 2', 1, '2003-01-01', NULL)"
        )
        return found

    return Later(make)


@pytest.mark.requirement("register-leads", kind="core")
def test_members_and_titles_are_kept(database):
    """A record of a member or title that is there changes nothing, not even contacts, copies and version."""
    files = {
        "M.DMP": dump("MEMBERS", "1|X|Y|01.01.60|01.01.91|1212", "3|C|||01.01.90|1212", "3|D|||01.01.90|1213"),
        "T.DMP": dump("TITLES", "ki 1|X|Y|1990|9", "KI 3|C|||2", "KI 3|D|||5"),
    }
    assert database.says("load", *files, files=files).splitlines() == [
        "MEMBERS: 1 loaded, 0 rejected, 2 kept", "TITLES: 1 loaded, 0 rejected, 2 kept",
    ]  # fmt: skip
    assert database.query("SELECT no, name, first_name, born, since::text, version FROM member ORDER BY no") == [
        (1, "A", None, None, "1990-01-01", None), (2, "B", None, None, "1990-01-01", None),
        (3, "C", None, None, "1990-01-01", "2.1"),
    ]  # fmt: skip
    assert database.query("SELECT member_no, value FROM contact ORDER BY member_no, value COLLATE \"C\"") == [
        (1, "+491"), (1, "Zettel"), (1, "abends"), (3, "+4927361212"),
    ]  # fmt: skip
    assert database.query("SELECT sig, title, author, version FROM title ORDER BY sig") == [
        ("KI 1", "T", None, None), ("KI 2", "T", None, None), ("KI 3", "C", None, "2.1"),
    ]  # fmt: skip
    assert database.query("SELECT sig, count(*)::integer FROM copy GROUP BY sig ORDER BY sig") == [
        ("KI 1", 2), ("KI 2", 1), ("KI 3", 2),
    ]  # fmt: skip


@pytest.mark.requirement("register-leads", kind="core")
def test_only_gaps_of_loans_are_filled(database):
    """A BACK is entered where the register has none; any other record of a loan that is there is kept."""
    records = (
        "1|KI 1|01.01.03|09.01.03", "1|KI 1|01.01.03|10.01.03", "2|KI 1|01.01.03|09.01.03", "2|KI 1|01.01.03|",
        "2|KI 2|01.01.03|", "1|KI 2|01.02.03|03.02.03", "1|KI 2|01.02.03|31.01.03",
    )  # fmt: skip
    assert database.load(loans=dump("LOANS", *records)) == "LOANS: 2 loaded, 1 rejected, 4 kept\n"
    assert database.query("SELECT member_no, sig, copy_number, back_on::text FROM loan ORDER BY sig, member_no") == [
        (1, "KI 1", 1, "2003-01-09"), (2, "KI 1", 2, "2003-02-01"), (1, "KI 2", 2, "2003-02-03"), (2, "KI 2", 1, None),
    ]  # fmt: skip


@pytest.mark.requirement("register-leads", kind="error")
def test_rejects_of_what_is_there(database):
    """A record that cannot be loaded is a reject also where its member is there, and who has left is passed over."""
    database.query("INSERT INTO left_member VALUES (9)")
    records = ("1||||01.01.90|", "1|A|||nie|", "1|A|||01.01.90|", "9|A|||01.01.90|", "9||||")
    said = database.load(members=dump("MEMBERS", *records))
    assert said == "MEMBERS: 0 loaded, 2 rejected, 2 passed over, 1 kept\n"
    assert database.query("SELECT line, reason FROM reject ORDER BY line") == [(2, "name"), (3, "date")]


def reject(file, line, head, reason, raw):
    data = raw if isinstance(raw, bytes) else raw.encode("cp850")
    values = f"'{file}', {line}, 'BIBLIO {head} 9', '{reason}', '\\x{data.hex()}'"
    return f"INSERT INTO reject (file, line, head, reason, raw) VALUES ({values});"


@pytest.mark.requirement("retry", kind="core")
def test_retry(database):
    """All rejects are tried again: members first, then titles, then loans; what can be loaded is; the rest stays."""
    database.query(
        reject("a", 2, "2.1 LOANS", "member", "5|KI 5|01.01.03|")
        + reject("a", 3, "2.1 LOANS", "member", "6|KI 5|01.01.03|")
        + reject("a", 4, "2.1 LOANS", "title", "1|ki 1|05.01.03|")
        + reject("b", 2, "3.0 MEMBERS", "order", "5|Müller|||01.01.90|1212".encode("cp1252"))
        + reject("b", 3, "3.0 MEMBERS", "date", b"6|\x81|||01.01.90|")
        + reject("c", 2, "2.1 TITLES", "year", "KI 5|Größe||1990|3")
        + reject("c", 3, "2.1 TITLES", "fields", "KI 6")
    )
    said = database.say("retry", "retry")
    assert said == ["3 loaded, 4 rejected, 0 dropped\n", "0 loaded, 4 rejected, 0 dropped\n"]
    assert database.query("SELECT file, line, head, reason FROM reject ORDER BY file, line") == [
        ("a", 3, "BIBLIO 2.1 LOANS 9", "member"), ("a", 4, "BIBLIO 2.1 LOANS 9", "open"),
        ("b", 3, "BIBLIO 3.0 MEMBERS 9", "code"), ("c", 3, "BIBLIO 2.1 TITLES 9", "fields"),
    ]  # fmt: skip
    assert database.query("SELECT name, version FROM member WHERE no = 5") == [("Müller", "3.0")]
    assert database.query("SELECT value FROM contact WHERE member_no = 5") == [("+4927361212",)]
    assert database.query("SELECT title, version FROM title WHERE sig = 'KI 5'") == [("Größe", "2.1")]
    assert database.query("SELECT sig, copy_number FROM loan WHERE member_no = 5") == [("KI 5", 1)]


@pytest.mark.requirement("retry", kind="boundary")
def test_what_is_dropped(database):
    """A reject of what is there by now, or of somebody who has left, is dropped, and changes nothing."""
    database.query(
        "INSERT INTO left_member VALUES (9);"
        + reject("a", 2, "2.1 MEMBERS", "date", "1|X|||01.01.91|1212")
        + reject("a", 3, "2.1 MEMBERS", "date", "09|X|||nie|")
        + reject("a", 4, "2.1 TITLES", "sig", "KI 1|X|||9")
        + reject("a", 5, "2.1 LOANS", "title", "2|KI 1|01.01.03|09.09.03")
        + reject("a", 6, "2.1 LOANS", "title", "1|KI 1|01.01.03|09.09.03")
        + reject("a", 7, "2.1 LOANS", "title", "1|KI 1|x|")
        + reject("B", 2, "2.1 MEMBERS", "date", "4|Zuerst|||01.01.91|")
        + reject("a", 10, "2.1 MEMBERS", "date", "4|Danach|||01.01.91|")
    )
    assert database.says("retry") == "2 loaded, 1 rejected, 5 dropped\n"
    assert database.query("SELECT file, line, reason FROM reject") == [("a", 7, "date")]
    assert database.query("SELECT no, name FROM member ORDER BY no") == [(1, "A"), (2, "B"), (4, "Zuerst")]
    assert database.query("SELECT member_no, back_on::text FROM loan WHERE sig = 'KI 1' ORDER BY 1") == [
        (1, "2003-09-09"), (2, "2003-02-01"),
    ]  # fmt: skip
    assert database.query("SELECT count(*)::integer FROM copy WHERE sig = 'KI 1'") == [(2,)]


@pytest.mark.requirement("retry", kind="integration")
def test_rejects_of_edition_1(library):
    """What edition 1 could not read is tried again by the header and the bytes that it kept."""
    rows = reject("N.DMP", 2, "3.0 MEMBERS", "date", "1|Jäger|||01.01.90|".encode("cp1252"))
    database = library.old(1, rows + reject("M.DMP", 2, "2.1 MEMBERS", "date", "2|Jäger||01.02.21|01.01.90|1212"))
    assert database.say("migrate", "retry")[1] == "2 loaded, 0 rejected, 0 dropped\n"
    assert database.query("SELECT no, name, born::text, version FROM member ORDER BY no") == [
        (1, "Jäger", None, "3.0"), (2, "Jäger", "1921-02-01", "2.1"),
    ]  # fmt: skip
    assert database.query("SELECT * FROM reject") == []


@pytest.mark.requirement("legacy", kind="core")
def test_legacy_views(database):
    """The district finds the tables of edition 2: columns, order, types and rows, without the loans of nobody."""
    database.query("UPDATE loan SET member_no = NULL WHERE (member_no, sig) = (2, 'KI 1')")
    columns = (
        "SELECT relname::text, string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attnum)"
        " FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0"
        " WHERE relnamespace = to_regnamespace('legacy')"
        " AND relkind = 'v' GROUP BY relname ORDER BY relname"
    )
    assert database.query(columns) == [
        ("loan", "id bigint, member_no integer, sig text, out_on date, back_on date"),
        ("member", "no integer, name text, first_name text, born date, since date, phone text"),
        ("title", "sig text, title text, author text, year integer, copies integer"),
    ]
    assert database.query("SELECT no, name, since::text, phone FROM legacy.member ORDER BY no") == [
        (1, "A", "1990-01-01", "+491, Zettel, abends"), (2, "B", "1990-01-01", None),
    ]  # fmt: skip
    titles = database.query("SELECT sig, title, copies FROM legacy.title ORDER BY sig")
    assert titles == [("KI 1", "T", 2), ("KI 2", "T", 1)]
    assert database.query("SELECT member_no, sig, back_on::text FROM legacy.loan ORDER BY sig") == [
        (1, "KI 1", None), (2, "KI 2", None),
    ]  # fmt: skip


@pytest.mark.requirement("every-edition", kind="integration")
@pytest.mark.parametrize("edition", [3, 7, 9])
def test_from_every_edition(library, edition):
    """A database of any edition comes to this one in its steps, and has what it had."""
    rows = "INSERT INTO member (no, name, born, since) VALUES (1, 'Groß', '1960-01-01', '1990-01-01');"
    if edition >= 8:
        rows += "INSERT INTO title (sig, title) VALUES ('KI 1', 'T'); INSERT INTO copy VALUES ('KI 1', 1), ('KI 1', 2);"
        rows += "INSERT INTO loan (member_no, sig, out_on, copy_number) VALUES (1, 'KI 1', '2003-01-01', 2);"
    elif edition >= 2:
        rows += "INSERT INTO title (sig, title, copies) VALUES ('KI 1', 'T', 2);"
        rows += "INSERT INTO loan (member_no, sig, out_on) VALUES (1, 'KI 1', '2003-01-01');"
    database = library.old(edition, rows)
    last = library.workspace.index
    assert database.says("migrate") == "".join(f"edition {number}\n" for number in range(edition + 1, last + 1))
    assert database.query("SELECT no, name, born::text FROM legacy.member") == [(1, "Groß", "1960-01-01")]
    if edition >= 2:
        assert database.query("SELECT sig, copies FROM legacy.title") == [("KI 1", 2)]
        assert database.query("SELECT member_no, copy_number FROM loan") == [(1, 2 if edition >= 8 else 1)]
