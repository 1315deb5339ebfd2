"""The tables that are handed out."""

import csv
import io

import pytest


def rows(reply):
    """Return what a spreadsheet sees."""
    assert reply.status == 200, repr(reply)
    assert reply.headers.get_content_type() == "text/csv"
    text = reply.body.decode("utf-8")
    assert text.endswith("\r\n")
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def by_id(reply, id):
    return next(row for row in rows(reply) if row[0] == str(id))


@pytest.mark.requirement("columns", kind="core")
def test_columns(house):
    """The export has these columns, and nothing that is nobody's business."""
    person = house.person(full_name="Eva Rot")
    booking = person.book(house.thing(name="Vault"), "2026-03-01T10:00", "2026-03-01T12:00", note="sums")
    reply = house.otto.get("/export.csv")
    assert rows(reply)[0] == ["id", "thing", "from", "to", "name", "note"]
    assert by_id(reply, booking) == [str(booking), "Vault", "2026-03-01T10:00", "2026-03-01T12:00", "Eva Rot", "sums"]
    assert f"{booking},Vault,2026-03-01T10:00,2026-03-01T12:00,Eva Rot,sums\r\n".encode() in reply.body
    assert [word for word in ("scrypt", "staff", "member", person.name) if word in reply.text] == []


@pytest.mark.requirement("columns", kind="core")
def test_own_columns(house):
    """Everybody has a table of his own bookings, staff too."""
    people = [house.person(), house.person(role="staff")]
    thing = house.thing(name="Dome")
    numbers = [each.book(thing, f"2026-03-0{day}T10:00", f"2026-03-0{day}T12:00") for day, each in enumerate(people, 1)]
    for day, (person, number) in enumerate(zip(people, numbers, strict=True), 1):
        expected = [str(number), "Dome", f"2026-03-0{day}T10:00", f"2026-03-0{day}T12:00", ""]
        assert rows(person.get("/bookings.csv")) == [["id", "thing", "from", "to", "note"], expected]
    assert house.nobody.get("/bookings.csv").status == 401
    assert house.bert.get("/export.csv").status == 403


VALUES = [
    ("a, b", "a, b"),
    ('say "no"', 'say "no"'),
    ("two\r\nlines", "two\r\nlines"),
    ("two\nlines", "two\nlines"),
    ("=1+1", "'=1+1"),
    ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
    ("+49 30", "'+49 30"),
    ("-1", "'-1"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1", "'\t=1"),
    ("\tx", "'\tx"),
    ("\r=1", "'\r=1"),
    ("   =1", "'   =1"),
    (" \t@x", "' \t@x"),
    ("  plain", "  plain"),
    ("'=1", "'=1"),
    ("a=1", "a=1"),
    ("Übung heute", "Übung heute"),
    ("", ""),
]


@pytest.mark.requirement("formulas", kind="core")
def test_notes(house):
    """A note stays in its cell, and is never a formula; the booking itself has what was written."""
    thing = house.thing()
    numbers = [
        house.anna.book(thing, f"2026-03-{day:02}T10:00", f"2026-03-{day:02}T12:00", note=note)
        for day, (note, _) in enumerate(VALUES, 1)
    ]
    tables = house.otto.get("/export.csv"), house.anna.get("/bookings.csv")
    notes = {each["id"]: each["note"] for each in house.anna.got("/bookings")["bookings"]}
    for number, (note, cell) in zip(numbers, VALUES, strict=True):
        assert by_id(tables[0], number)[5] == cell
        assert by_id(tables[1], number)[4] == cell
        assert notes[number] == note


@pytest.mark.requirement("formulas", kind="core")
def test_names(house):
    """Names of things and of people are no formulas either."""
    for text in ("=cmd|' /C calc'!A0", "@a, b", " -2"):
        person = house.person(full_name=text)
        booking = person.book(house.thing(name=text), "2026-03-01T10:00", "2026-03-01T12:00")
        assert by_id(house.otto.get("/export.csv"), booking)[1::3] == [f"'{text}", f"'{text}"]
        assert by_id(person.get("/bookings.csv"), booking)[1] == f"'{text}"


@pytest.mark.requirement("quoting", kind="boundary")
def test_lines(house):
    """Lines end with CR LF, what has a comma, a quote or a line's end in it is quoted, and nothing comes before all."""
    person = house.person()
    assert person.get("/bookings.csv").body == b"id,thing,from,to,note\r\n"
    number = person.book(house.thing(name="Dome"), "2026-03-01T10:00", "2026-03-01T12:00", note='a,"b"\nc')
    text = f'id,thing,from,to,note\r\n{number},Dome,2026-03-01T10:00,2026-03-01T12:00,"a,""b""\nc"\r\n'
    assert person.get("/bookings.csv").body == text.encode()


@pytest.mark.requirement("all-bookings", kind="integration")
def test_bookings_from_paper(old_records):
    """The export has all bookings, also from paper and of people who are gone, by time."""
    assert [row for row in rows(old_records.otto.get("/export.csv"))[1:] if row[0] != "20"] == [
        ["2", "Old hall", "2024-10-12T18:00", "2024-10-13T02:00", "gone", "from paper, too"],
        ["3", "Cellar", "2025-03-01T08:00", "2025-03-01T09:00", "Bert Cohn", "typed in"],
        ["1", "Old hall", "2025-04-03T09:00", "2025-04-03T11:30", "Anna Berg", "from paper"],
        ["7", "Old hall", "2027-01-21T07:05", "2027-01-21T17:00", "Anna Berg", "from paper as well"],
    ]
    assert [row[0] for row in rows(old_records.anna.get("/bookings.csv"))[1:]] == ["1", "7"]


@pytest.mark.requirement("all-bookings", kind="boundary")
def test_things_that_are_gone(old_records):
    """A booking of a thing that we do not have has its number, and equal times are sorted by number."""
    found = rows(old_records.otto.get("/export.csv"))
    assert [row[0] for row in found] == ["id", "2", "3", "1", "20", "7"]
    assert found[4] == ["20", "9", "2025-04-03T09:00", "2025-04-03T11:30", "'=gone", "of what is gone"]


RANGES = [
    ("from=2025-03-01T08:00", ["3", "1", "20", "7"]),
    ("from=2025-03-01T08:01", ["1", "20", "7"]),
    ("to=2025-04-03T09:00", ["2", "3"]),
    ("to=2025-04-03T09:01", ["2", "3", "1", "20"]),
    ("from=2025-01-01T00:00&to=2026-01-01T00:00", ["3", "1", "20"]),
    ("from=2024-10-12T18:01&to=2024-10-13T01:00", []),
]


@pytest.mark.requirement("export-range", kind="core")
def test_range(old_records):
    """A range has what begins in it, also from paper."""
    for query, found in RANGES:
        assert [row[0] for row in rows(old_records.otto.get(f"/export.csv?{query}"))[1:]] == found
        own = [row[0] for row in rows(old_records.anna.get(f"/bookings.csv?{query}"))[1:]]
        assert own == [each for each in found if each in "17"]


NO_RANGES = ["from=", "to=x", "from=2026-03-01", "to=3.4.2025%209:00", "from=1;to=2", "to=2026-03-01T10:00'"]


@pytest.mark.requirement("export-range", kind="error")
def test_ranges_that_are_none(house):
    """What is no time is a bad request."""
    for path in ("/export.csv", "/bookings.csv"):
        for query in NO_RANGES:
            assert house.otto.get(f"{path}?{query}").status == 400
