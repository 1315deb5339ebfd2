"""Edition 3: nobody joins before he is born; several dumps at once."""

import pytest
from library import dump
from wire import SqlError


@pytest.mark.requirement("century", kind="core")
def test_born_before_joining(library):
    """A BORN with two digits that would be after SINCE is 100 years earlier; without such a day it is none."""
    database = library.fresh()
    records = (
        "1|A||14.07.21|03.09.92|",
        "2|A||03.09.92|03.09.92|",
        "3|A||04.09.92|03.09.92|",
        "4|A||29.02.00|17.05.88|",
        "5|A||29.02.04|17.05.88|",
        "6|A||29.02.00|17.05.02|",
        "7|A||14.07.2021|03.09.92|",
        "8|A||14.07.21|03.09.2022|",
    )
    assert database.load(members=dump("MEMBERS", *records)) == "MEMBERS: 6 loaded, 2 rejected\n"
    assert database.query("SELECT no, born::text FROM member ORDER BY no") == [
        (1, "1921-07-14"), (2, "1992-09-03"), (3, "1892-09-04"), (5, "1904-02-29"), (6, "2000-02-29"),
        (8, "2021-07-14"),
    ]  # fmt: skip
    assert database.query("SELECT line, reason FROM reject ORDER BY line") == [(5, "date"), (8, "order")]


@pytest.mark.requirement("century", kind="error")
def test_reasons_before_order(library):
    """A wrong day comes before the wrong order of two days."""
    database = library.fresh()
    database.load(members=dump("MEMBERS", "1|A||14.07.2021|x|", "2|||14.07.2021|01.01.92|"))
    assert database.query("SELECT line, reason FROM reject ORDER BY line") == [(2, "date"), (3, "name")]


@pytest.mark.requirement("century-stored", kind="core")
def test_members_of_earlier_editions(library):
    """Stored days of birth are put right, and no others: 100 years earlier, or NULL where there is no such day."""
    rows = (
        "(1, 'A', NULL, '2021-07-14', '1992-09-03', NULL), (2, 'B', NULL, '1992-09-03', '1992-09-03', '1'),"
        "(3, 'C', 'c', '2000-02-29', '1988-05-17', NULL), (4, 'D', NULL, NULL, '1988-05-17', NULL),"
        "(5, 'E', NULL, '2004-02-29', '1988-05-17', NULL), (6, 'F', NULL, '1921-07-14', '1988-05-17', NULL)"
    )
    database = library.old(1, f"INSERT INTO member VALUES {rows}")
    database.says("migrate")
    assert database.query("SELECT no, name, first_name, born::text, since::text FROM member ORDER BY no") == [
        (1, "A", None, "1921-07-14", "1992-09-03"), (2, "B", None, "1992-09-03", "1992-09-03"),
        (3, "C", "c", None, "1988-05-17"), (4, "D", None, None, "1988-05-17"),
        (5, "E", None, "1904-02-29", "1988-05-17"), (6, "F", None, "1921-07-14", "1988-05-17"),
    ]  # fmt: skip


@pytest.mark.requirement("century-stored", kind="error")
def test_the_database_knows(library):
    """The table itself refuses a member who is born after joining, also in a database that was migrated."""
    database = library.old(2, "INSERT INTO member VALUES (1, 'A', NULL, '2021-07-14', '1992-09-03', NULL)")
    database.says("migrate")
    with pytest.raises(SqlError, match="23514"):
        database.query("UPDATE member SET born = since + 1")
    database.query("UPDATE member SET born = since")


@pytest.mark.requirement("several", kind="core")
def test_several_dumps_in_any_order(library):
    """Members come before titles, and titles before loans, whatever the order; the lines are in the order given."""
    database = library.fresh()
    files = {
        "a.dmp": dump("LOANS", "1|KI 1|01.01.03|", "3|KI 1|01.01.03|05.01.03"),
        "b.dmp": dump("TITLES", "KI 1|A|||5", "x"),
        "c.dmp": dump("MEMBERS", "1|A|||01.01.90|", "2|A|||01.01.90|", "x|A|||01.01.90|"),
        "d.dmp": dump("MEMBERS", "3|A|||01.01.90|"),
    }
    assert database.says("load", *files, files=files).splitlines() == [
        "LOANS: 2 loaded, 0 rejected", "TITLES: 1 loaded, 1 rejected", "MEMBERS: 2 loaded, 1 rejected",
        "MEMBERS: 1 loaded, 0 rejected",
    ]  # fmt: skip
    assert database.query("SELECT file, line, reason FROM reject ORDER BY file") == [
        ("b.dmp", 3, "fields"), ("c.dmp", 4, "number"),
    ]  # fmt: skip
    assert database.query("SELECT member_no FROM loan ORDER BY member_no") == [(1,), (3,)]


@pytest.mark.requirement("several", kind="error")
def test_all_or_none(library):
    """Where one of the dumps is damaged none is loaded, and the message names that one."""
    database = library.fresh()
    files = {
        "MEMBERS.DMP": dump("MEMBERS", "1|Old|||01.01.90|", "x|Old|||01.01.90|"),
        "d/MEMBERS.DMP": dump("MEMBERS", "1|New|||01.01.90|", "2|New|||01.01.90|"),
        "d/TITLES.DMP": dump("TITLES", "KI 1|A|||1")[:-20],
    }
    well, done = database.shelf_each("load MEMBERS.DMP", "load d/MEMBERS.DMP d/TITLES.DMP", files=files)
    assert well[:2] == (0, "MEMBERS: 1 loaded, 1 rejected\n")
    assert (done.exit_code, done.stdout, done.stderr[:12]) == (4, "", "TITLES.DMP: ")
    assert database.query("SELECT no, name FROM member") == [(1, "Old")]
    assert database.query("SELECT file, line FROM reject") == [("MEMBERS.DMP", 3)]


@pytest.mark.requirement("century-stored", kind="integration")
def test_the_register_is_put_right(library):
    """The register of the main house has nobody who is born after joining, and the members of the branch."""
    live = library.live()
    assert live.query("SELECT no, born::text FROM member WHERE no IN (12, 30) ORDER BY no") == [
        (12, "1921-07-14"), (30, None),
    ]  # fmt: skip
    assert live.query("SELECT count(*)::integer FROM member WHERE born > since") == [(0,)]
    assert live.column("SELECT no FROM member WHERE no > 100 ORDER BY no") == [501, 502, 503, 504]
