"""Edition 8: somebody has borrowed a copy, and not just a title."""

import random

import pytest
from library import dump
from wire import SqlError

LOANS = "SELECT member_no, out_on::text, copy_number FROM loan ORDER BY sig, out_on, member_no"
COPIES = "SELECT sig, array_agg(number ORDER BY number)::text FROM copy GROUP BY sig ORDER BY sig"


def days(number):
    return f"{number % 28 + 1:02}.{number // 28 % 12 + 1:02}.{2000 + number // 336}"


def iso(day):
    return "-".join(reversed(day.split(".")))


def given(loans, copies):
    """The rule of the plan, the slow way: (member, out, back) in their order; back None is for ever."""
    taken, numbers = {}, []
    for _, out, back in loans:
        wanted = set(range(out, out + 1 if back == out else back if back is not None else out + 5000))
        number = next(each for each in range(1, 99) if not wanted & taken.get(each, set()))
        taken.setdefault(number, set()).update(wanted)
        numbers.append(number)
    return numbers, max(copies, *taken)


@pytest.mark.requirement("copy-tables", kind="core")
def test_columns_and_constraints(library):
    """Copies are a table, a loan is of one, and no two open loans are of the same."""
    database = library.fresh()
    assert database.columns("copy") == {"sig": "text!", "number": "integer!"}
    assert database.columns("loan")["copy_number"] == "integer!"
    assert "copies" not in database.columns("title")
    database.enrol(A=1, B=2)
    database.shelve(KI_1=2, KI_2=1)
    columns = "INSERT INTO loan (member_no, sig, copy_number, out_on, back_on) VALUES"
    database.query(f"{columns} (1, 'KI 1', 1, '2003-01-01', NULL)")
    for values, code in (
        ("(2, 'KI 1', 1, '2003-02-01', NULL)", "23505"),
        ("(2, 'KI 2', 2, '2003-02-01', NULL)", "23503"),
        ("(2, 'KI 2', NULL, '2003-02-01', NULL)", "23502"),
        ("(1, 'KI 1', 2, '2003-02-01', NULL)", "23505"),
    ):
        with pytest.raises(SqlError, match=code):
            database.query(f"{columns} {values}")
    for statement, code in (
        ("INSERT INTO copy (sig, number) VALUES ('KI 1', 0)", "23514"),
        ("INSERT INTO copy (sig, number) VALUES ('KI 1', 2)", "23505"),
        ("INSERT INTO copy (sig, number) VALUES ('KI 9', 1)", "23503"),
        ("DELETE FROM copy WHERE (sig, number) = ('KI 1', 1)", "23503"),
    ):
        with pytest.raises(SqlError, match=code):
            database.query(statement)


@pytest.mark.requirement("copies-stored", kind="core")
def test_stored_loans(library):
    """Stored loans get the lowest copy that is in, by day and then member, and more copies where there were too few."""
    rows = (
        "(3, 'KI 1', '2003-01-05', NULL), (2, 'KI 1', '2003-01-01', '2003-01-05'),"
        "(1, 'KI 1', '2003-01-01', '2003-01-03'), (1, 'KI 1', '2003-01-04', '2003-01-04'),"
        "(4, 'KI 1', '2003-01-04', '2003-01-06'), (2, 'KI 1', '2003-01-06', NULL), (1, 'KI 1', '2003-01-07', NULL),"
        "(1, 'KI 3', '2003-01-01', '2003-01-02')"
    )
    members = ", ".join(f"({number}, 'A', NULL, NULL, '1990-01-01', NULL)" for number in range(1, 5))
    database = library.old(
        2,
        f"INSERT INTO member VALUES {members};"
        "INSERT INTO title (sig, title, copies) VALUES ('KI 1', 'A', 2), ('KI 2', 'B', 3), ('KI 3', 'C', 1);"
        f"INSERT INTO loan (member_no, sig, out_on, back_on) VALUES {rows}",
    )
    database.says("migrate")
    assert database.query(LOANS) == [
        (1, "2003-01-01", 1), (2, "2003-01-01", 2), (1, "2003-01-04", 1), (4, "2003-01-04", 3), (3, "2003-01-05", 1),
        (2, "2003-01-06", 2), (1, "2003-01-07", 3), (1, "2003-01-01", 1),
    ]  # fmt: skip
    assert database.query(COPIES) == [("KI 1", "{1,2,3}"), ("KI 2", "{1,2,3}"), ("KI 3", "{1}")]


@pytest.mark.requirement("copies-stored", kind="boundary")
@pytest.mark.parametrize("seed", range(2))
def test_many_stored_loans(library, seed):
    """The rule holds for any loans: the lowest copy that is in on all days, in the order of day and member."""
    chance = random.Random(seed)
    loans = sorted({(chance.randrange(200), member) for member in range(1, 41) for _ in range(3)})
    loans = [(member, out, out + chance.randrange(12)) for out, member in loans]
    latest = {member: index for index, (member, _, _) in enumerate(loans)}
    for index in list(latest.values())[::4]:
        loans[index] = (*loans[index][:2], None)
    rows = ", ".join(
        f"({member}, 'KI 1', '{iso(days(out))}', {'NULL' if back is None else repr(iso(days(back)))})"
        for member, out, back in chance.sample(loans, len(loans))
    )
    database = library.old(
        5,
        "INSERT INTO member SELECT number, 'A', NULL, NULL, '1990-01-01' FROM generate_series(1, 40) number;"
        f"INSERT INTO title VALUES ('KI 1', 'A', NULL, NULL, 2);"
        f"INSERT INTO loan (member_no, sig, out_on, back_on) VALUES {rows}",
    )
    database.says("migrate")
    # Days of the calendar that are left out between two months change no order, and so no copy.
    numbers, last = given(loans, 2)
    assert database.query(LOANS) == [
        (member, iso(days(out)), number) for (member, out, _), number in zip(loans, numbers, strict=True)
    ]
    assert database.query(COPIES) == [("KI 1", "{" + ",".join(str(each) for each in range(1, last + 1)) + "}")]


@pytest.mark.requirement("copies-loaded", kind="core")
def test_loaded_loans(library):
    """A new loan gets the lowest copy that is in on all its days, in the order of the dump, or one more."""
    database = library.fresh()
    database.enrol(A=1, B=2, C=3, D=4, E=5, F=6)
    database.shelve(KI_1=2)
    records = (
        "1|KI 1|10.01.03|", "2|KI 1|01.01.03|10.01.03", "3|KI 1|01.01.03|11.01.03", "4|KI 1|31.12.02|",
        "5|KI 1|11.01.03|11.01.03", "6|KI 1|11.01.03|12.01.03", "6|KI 1|20.12.02|31.12.02",
    )  # fmt: skip
    database.load(loans=dump("LOANS", *records))
    assert database.query("SELECT member_no, copy_number FROM loan ORDER BY member_no, out_on") == [
        (1, 1), (2, 1), (3, 2), (4, 3), (5, 2), (6, 1), (6, 4),
    ]  # fmt: skip
    assert database.query(COPIES) == [("KI 1", "{1,2,3,4}")]


@pytest.mark.requirement("copies-loaded", kind="boundary")
def test_a_loan_keeps_its_copy(library):
    """A loan that comes back keeps the copy that it has, also where a lower one is in by then."""
    database = library.fresh()
    database.enrol(A=1, B=2)
    database.shelve(KI_1=2)
    files = {
        "A.DMP": dump("LOANS", "1|KI 1|01.01.03|", "2|KI 1|05.01.03|"),
        "B.DMP": dump("LOANS", "1|KI 1|01.01.03|02.01.03", "2|KI 1|05.01.03|06.01.03"),
    }
    database.say("load A.DMP", "load B.DMP", files=files)
    found = database.query("SELECT member_no, copy_number, back_on::text FROM loan ORDER BY member_no")
    assert found == [(1, 1, "2003-01-02"), (2, 2, "2003-01-06")]


@pytest.mark.requirement("copies-moved", kind="boundary", retired="round-10")
def test_a_loan_that_lasts_longer(library):
    """Where a later BACK runs into another loan of the copy, the loan gets one as if it was new."""
    database = library.fresh()
    database.enrol(A=1, B=2)
    database.shelve(KI_1=1)
    database.load(loans=dump("LOANS", "1|KI 1|01.01.03|03.01.03", "2|KI 1|05.01.03|06.01.03"))
    database.load(loans=dump("LOANS", "1|KI 1|01.01.03|05.01.03"))
    assert database.query("SELECT member_no, copy_number FROM loan ORDER BY member_no") == [(1, 1), (2, 1)]
    database.load(loans=dump("LOANS", "1|KI 1|01.01.03|06.01.03"))
    assert database.query("SELECT member_no, copy_number FROM loan ORDER BY member_no") == [(1, 2), (2, 1)]


@pytest.mark.requirement("copies-of-titles", kind="core")
def test_new_titles(library):
    """A new title has as many copies as the field says, and one where it is empty."""
    database = library.fresh()
    database.load(titles=dump("TITLES", "KI 1|A|||3", "KI 2|B|||", "KI 3|C|||99"))
    assert database.query("SELECT sig, count(*)::integer, max(number) FROM copy GROUP BY sig ORDER BY sig") == [
        ("KI 1", 3, 3), ("KI 2", 1, 1), ("KI 3", 99, 99),
    ]  # fmt: skip


@pytest.mark.requirement("copies-added", kind="core", retired="round-10")
def test_more_copies(library):
    """A title that is there gets the copies that it lacks, after the highest number, and never loses one."""
    database = library.fresh()
    database.shelve(KI_1=2, KI_2=3)
    database.query("DELETE FROM copy WHERE (sig, number) = ('KI 2', 1)")
    database.load(titles=dump("TITLES", "KI 1|A|||1", "KI 2|B|||4"))
    assert database.query(COPIES) == [("KI 1", "{1,2}"), ("KI 2", "{2,3,4,5}")]


@pytest.mark.requirement("overdue-copies", kind="core")
def test_overdue_names_the_copy(library):
    """The second column is the copy; members come by number, and one's copies by shelf mark and number."""
    database = library.fresh()
    database.enrol(Roth=2, Sand=3, Fuchs=30)
    database.shelve(KI_12=12, KI_20=1)
    records = [
        "2|KI 20|01.03.03|", "2|KI 12|01.03.03|", "30|KI 12|28.02.03|", "30|KI 20|01.03.03|02.03.03",
        "3|KI 12|01.03.03|",
    ]  # fmt: skip
    database.load(loans=dump("LOANS", *records))
    database.query("UPDATE loan SET copy_number = 12 WHERE sig = 'KI 12' AND member_no = 2")
    assert database.says("overdue", "2003-03-30").splitlines() == [
        "30\tKI 12/2\t2\tFuchs", "2\tKI 12/12\t1\tRoth", "2\tKI 20/1\t1\tRoth", "3\tKI 12/3\t1\tSand",
    ]  # fmt: skip


@pytest.mark.requirement("copies-stored", kind="integration")
def test_the_registers_copies(library):
    """In the register of the main house no two loans have one copy on the same day, and each title has its copies."""
    live = library.live()
    overlaps = (
        "SELECT count(*)::integer FROM loan a JOIN loan b USING (sig, copy_number) WHERE a.id < b.id"
        " AND daterange(a.out_on, greatest(a.back_on, a.out_on + 1))"
        " && daterange(b.out_on, greatest(b.back_on, b.out_on + 1))"
        " AND a.back_on IS NOT NULL AND b.back_on IS NOT NULL"
    )
    assert live.query(overlaps) == [(0,)]
    assert live.query("SELECT count(*)::integer, count(copy_number)::integer FROM loan") == [(62, 62)]
    assert live.query("SELECT copy_number FROM loan WHERE sig = 'KI 12' AND back_on IS NULL ORDER BY out_on") == [
        (1,), (2,), (3,),
    ]  # fmt: skip
