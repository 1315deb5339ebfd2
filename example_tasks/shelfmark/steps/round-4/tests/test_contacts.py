"""Edition 4: telephone numbers become contacts."""

import pytest
from library import dump
from wire import SqlError

PHONES = {
    "02736/12 34": [("phone", "+4927361234")],
    "0271 - 44.001": [("phone", "+4927144001")],
    "0049 (0)2736 5501": [("phone", "+4927365501")],
    "+49 (0) 2736 55-01": [("phone", "+4927365501")],
    "00351 21 555 0000": [("phone", "+351215550000")],
    "1212, 0171/5566777": [("phone", "+491715566777"), ("phone", "+4927361212")],
    "1212,, 02736/1212 , ": [("phone", "+4927361212")],
    "nur abends, 1213": [("note", "nur abends"), ("phone", "+4927361213")],
    "02736/12 34 (Büro)": [("note", "02736/12 34 (Büro)")],
    "+123456": [("note", "+123456")],
    "+1234567": [("phone", "+1234567")],
    "00 123456789012345": [("phone", "+123456789012345")],
    "+1234567890123456": [("note", "+1234567890123456")],
    "000 1234567": [("phone", "+01234567")],
    " , ": [],
    "": [],
}
CONTACTS = 'SELECT member_no, kind, value FROM contact ORDER BY member_no, kind, value COLLATE "C"'


def by_member(database):
    found = {number: [] for number in range(1, len(PHONES) + 1)}
    for number, kind, value in database.query(CONTACTS):
        found[number].append((kind, value))
    return dict(zip(PHONES, found.values(), strict=True))


@pytest.mark.requirement("contacts", kind="core")
@pytest.mark.parametrize("phone", PHONES, ids=lambda phone: phone.strip() or f"empty-{len(phone)}")
def test_loaded(library, phone):
    """What is in the field becomes contacts: numbers that can be dialled from anywhere, and notes of all else."""

    def make():
        database = library.fresh()
        records = [f"{number}|A|||01.01.90|{text}" for number, text in enumerate(PHONES, 1)]
        assert database.load(members=dump("MEMBERS", *records)) == f"MEMBERS: {len(PHONES)} loaded, 0 rejected\n"
        return by_member(database)

    assert library.once("contacts", make)[phone] == PHONES[phone]


@pytest.mark.requirement("contacts-stored", kind="core")
@pytest.mark.parametrize("edition", [1, 3])
def test_stored(library, edition):
    """Stored telephone numbers become the same contacts, from whichever edition."""
    rows = ", ".join(
        f"({number}, 'A', NULL, NULL, '1990-01-01', {repr(text.strip()) if text.strip() else 'NULL'})"
        for number, text in enumerate(PHONES, 1)
    )
    database = library.old(edition, f"INSERT INTO member VALUES {rows}")
    database.says("migrate")
    assert by_member(database) == PHONES


@pytest.mark.requirement("contacts", kind="core")
def test_tables_of_contacts(library):
    """Contacts are a table of their own, with a key over all columns and two kinds, and `phone` is gone."""
    database = library.fresh()
    assert database.columns("contact") == {"member_no": "integer!", "kind": "text!", "value": "text!"}
    columns = database.columns("member")
    assert "phone" not in columns
    expected = {"no": "integer!", "name": "text!", "first_name": "text", "born": "date", "since": "date!"}
    assert {name: columns.get(name) for name in expected} == expected
    database.enrol(Roth=2)
    database.query(
        "INSERT INTO contact (member_no, kind, value) VALUES (2, 'note', 'x'), (2, 'phone', 'x'), (2, 'note', 'y')"
    )
    for values, code in (("2, 'fax', 'x'", "23514"), ("2, 'note', 'x'", "23505"), ("3, 'note', 'x'", "23503")):
        with pytest.raises(SqlError, match=code):
            database.query(f"INSERT INTO contact (member_no, kind, value) VALUES ({values})")
    database.query("DELETE FROM member")
    assert database.query(CONTACTS) == []


@pytest.mark.requirement("contacts-replaced", kind="boundary", retired="round-10")
def test_overwritten(library):
    """A member who is overwritten has the contacts of the record alone, and others keep theirs."""
    database = library.fresh()
    files = {
        "A.DMP": dump("MEMBERS", "1|A|||01.01.90|1212,abends", "2|A|||01.01.90|1213"),
        "B.DMP": dump("MEMBERS", "1|A|||01.01.90|1214"),
    }
    database.say("load A.DMP", "load B.DMP", files=files)
    assert database.query(CONTACTS) == [(1, "phone", "+4927361214"), (2, "phone", "+4927361213")]


@pytest.mark.requirement("contacts-replaced", kind="boundary")
def test_a_reject_changes_no_contact(library):
    """A record that cannot be loaded leaves the member as he is."""
    database = library.fresh()
    files = {
        "A.DMP": dump("MEMBERS", "1|A|||01.01.90|1212,abends"),
        "B.DMP": dump("MEMBERS", "1|B|||01.13.90|1214"),
    }
    database.say("load A.DMP", "load B.DMP", files=files)
    assert database.query(CONTACTS) == [(1, "note", "abends"), (1, "phone", "+4927361212")]
    assert database.query("SELECT name FROM member") == [("A",)]


@pytest.mark.requirement("contacts-stored", kind="integration")
def test_the_registers_contacts(library):
    """The register of the main house has its numbers as contacts."""
    live = library.live()
    found = live.query("SELECT member_no, kind, value FROM contact WHERE member_no IN (5, 12, 30, 501) ORDER BY 1")
    assert found == [
        (5, "note", "nur abends"), (12, "phone", "+4927361212"), (30, "phone", "+351215550000"),
        (501, "phone", "+4927361301"),
    ]  # fmt: skip
