"""Edition 5: a migration goes step by step, and every step is whole."""

import time

import pytest
from library import dump
from wire import SqlError

ROWS = """
INSERT INTO member VALUES (1, 'A', NULL, '2021-07-14', '1992-09-03', '1212'), (2, 'B', NULL, NULL, '1990-01-01', 'x');
INSERT INTO title VALUES ('KI 1', 'T', NULL, NULL, 3);
INSERT INTO loan (member_no, sig, out_on, back_on) VALUES
    (1, 'KI 1', '2003-01-01', NULL), (2, 'KI 1', '2003-01-01', '2003-02-01'), (2, 'KI 1', '2003-03-01', NULL)"""


def says_steps(first, last):
    return "".join(f"edition {number}\n" for number in range(first, last + 1))


def assert_whole(database):
    """All that ROWS has is there, once and as the present edition has it."""
    assert database.edition() == database.library.workspace.index
    assert database.query("SELECT no, name, born::text FROM member ORDER BY no") == [
        (1, "A", "1921-07-14"), (2, "B", None),
    ]  # fmt: skip
    assert database.query("SELECT member_no, kind, value FROM contact ORDER BY member_no") == [
        (1, "phone", "+4927361212"), (2, "note", "x"),
    ]  # fmt: skip
    assert database.query("SELECT member_no, sig, out_on::text, back_on::text FROM loan ORDER BY 1, 3") == [
        (1, "KI 1", "2003-01-01", None), (2, "KI 1", "2003-01-01", "2003-02-01"), (2, "KI 1", "2003-03-01", None),
    ]  # fmt: skip


@pytest.mark.requirement("steps", kind="core")
def test_a_line_for_each_step(library):
    """Each step is told of, from an empty database or a later one; where there is none, the edition that it is."""
    last = library.workspace.index
    database = library.empty()
    assert database.says("migrate", "--to", "2") == says_steps(1, 2)
    assert database.columns("member")["phone"] == "text"
    assert database.say("migrate --to 2", "migrate --to 4", "migrate") == [
        "edition 2\n", says_steps(3, 4), says_steps(5, last),
    ]  # fmt: skip
    assert database.query("SELECT * FROM edition") == [(last,)]


@pytest.mark.requirement("steps", kind="error")
def test_not_back(library):
    """There is no way back, and none to an edition that there is not."""
    database = library.fresh()
    last = library.workspace.index
    back, *wrong = database.shelf_each(
        "migrate --to 4", "migrate --to", "migrate --to 0", "migrate --to x", "migrate --to 99", "migrate 4"
    )
    assert (back.exit_code, back.stdout, back.stderr) == (3, "", f"edition {last}\n")
    for done in wrong:
        assert (done.exit_code, done.stdout, done.stderr[:7]) == (2, "", "usage: ")
    assert database.edition() == last


@pytest.mark.requirement("open-loans", kind="core")
def test_two_open_loans_stop_the_step(library):
    """Two open loans of a title by one member stop step 5; the steps before are done, and nothing is put right."""
    database = library.old(2, f"{ROWS};INSERT INTO loan (member_no, sig, out_on) VALUES (1, 'KI 1', '2003-05-05')")
    done = database.shelf("migrate")
    assert (done.exit_code, done.stdout) == (5, says_steps(3, 4))
    assert (done.stderr[:11], done.stderr.count("\n")) == ("edition 5: ", 1)
    assert database.edition() == 4
    assert database.query("SELECT count(*)::integer FROM loan WHERE back_on IS NULL") == [(3,)]
    database.query("DELETE FROM loan WHERE out_on = '2003-05-05'")
    assert database.says("migrate") == says_steps(5, library.workspace.index)
    assert_whole(database)


@pytest.mark.requirement("open-loans", kind="error")
def test_one_open_loan(library):
    """A second open loan is a reject, and the database itself refuses it; one that is closed is none."""
    database = library.fresh()
    database.enrol(A=1, B=2)
    database.shelve(KI_1=9, KI_2=9)
    records = (
        "1|KI 1|01.01.03|", "1|KI 1|02.01.03|", "1|KI 1|01.01.03|", "1|KI 1|01.12.02|02.12.02", "2|KI 1|02.01.03|",
        "1|KI 2|02.01.03|", "1|KI 9|02.01.03|",
    )  # fmt: skip
    files = {
        "A.DMP": dump("LOANS", *records),
        "B.DMP": dump("LOANS", "1|KI 1|01.01.03|09.01.03", "1|KI 1|10.01.03|"),
    }
    database.say("load A.DMP", "load B.DMP", files=files)
    assert database.query("SELECT line, reason FROM reject ORDER BY line") == [(3, "open"), (8, "title")]
    loans = "SELECT out_on::text, back_on::text FROM loan WHERE (member_no, sig) = (1, 'KI 1') ORDER BY 1"
    found = database.query(loans)
    assert found == [("2002-12-01", "2002-12-02"), ("2003-01-01", "2003-01-09"), ("2003-01-10", None)]
    with pytest.raises(SqlError, match="23505"):
        database.query("UPDATE loan SET back_on = NULL WHERE (member_no, sig, out_on) = (1, 'KI 1', '2003-01-01')")


@pytest.mark.requirement("whole-steps", kind="core")
def test_what_others_have_built(library):
    """A view in the way of a step stops it: nothing of it is done, and the view stays until somebody removes it."""
    database = library.old(2, f"{ROWS};CREATE VIEW phones AS SELECT name, phone FROM member")
    done = database.shelf("migrate")
    assert (done.exit_code, done.stdout) == (5, says_steps(3, 3))
    assert (done.stderr[:11], done.stderr.count("\n")) == ("edition 4: ", 1)
    assert database.edition() == 3
    assert database.columns("contact") == {}
    assert database.query("SELECT * FROM phones ORDER BY name") == [("A", "1212"), ("B", "x")]
    database.query("DROP VIEW phones")
    assert database.says("migrate") == says_steps(4, library.workspace.index)
    assert_whole(database)


def waits_for_a_lock(database, *processes):
    """Wait until the programs are connected, and one of them waits for a lock."""
    sql = (
        "SELECT count(*)::integer, (count(*) FILTER (WHERE wait_event_type = 'Lock'))::integer FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename = 'register'"
    )
    deadline = time.monotonic() + 30
    while True:
        connected, waiting = database.query(sql)[0]
        if connected >= len(processes) and waiting:
            return
        assert all(process.running for process in processes), "the migration ends before the table can be changed"
        assert time.monotonic() < deadline, "the migration does not come to the table that is locked"
        time.sleep(0.02)


@pytest.mark.requirement("whole-steps", kind="core")
@pytest.mark.parametrize("table", ["member", "loan"])
def test_killed(library, table):
    """After a migration was killed, the database is of one edition, and the next migration brings it here."""
    database = library.old(2, ROWS)
    other = library.other(database.name)
    other.query(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    process = database.start("migrate")
    waits_for_a_lock(database, process)
    process.signal("KILL")
    process.wait(timeout=20)
    # The server does not notice that while it waits, and keeps the locks, of whatever table.
    database.query(
        "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename = 'register'"
    )
    number = database.edition()
    assert number < 5
    assert process.output == ("" if number == 2 else says_steps(3, number))
    other.query("ROLLBACK")
    assert database.says("migrate").splitlines()[-1] == f"edition {library.workspace.index}"
    assert_whole(database)


@pytest.mark.requirement("whole-steps", kind="integration")
def test_at_the_same_time(library):
    """Two migrations of one database at the same time both end well, and each step is done once."""
    database = library.old(2, ROWS)
    other = library.other(database.name)
    other.query("BEGIN; LOCK TABLE loan, member IN ACCESS EXCLUSIVE MODE")
    both = [database.start("migrate"), database.start("migrate")]
    waits_for_a_lock(database, *both)
    other.query("ROLLBACK")
    assert [process.wait(timeout=20) for process in both] == [0, 0], [process.errors for process in both]
    last = library.workspace.index
    lines = [line for process in both for line in process.output.splitlines()]
    assert {f"edition {number}" for number in range(3, last + 1)} == set(lines)
    assert len(lines) <= last - 1  # Each step once, and once more the edition, by one that has found nothing to do.
    assert_whole(database)
