"""What stands in mails, and to whom they go."""

import pytest
from client import PASSWORD


def head(mail):
    """Return the two lines of a head."""
    lines = mail.splitlines()
    assert lines[2] == "", f"three lines and more in the head: {mail!r}"
    assert lines[0].startswith("To: "), mail
    assert lines[1].startswith("Subject: "), mail
    return lines[0].removeprefix("To: "), lines[1].removeprefix("Subject: ")


BREAKS = ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]


@pytest.mark.requirement("mail-head", kind="core")
def test_notes(house):
    """A note stays in the subject, whatever ends lines in it."""
    thing = house.thing()

    def book():
        for day, signs in enumerate(BREAKS, 1):
            note = f"Choir {day}{signs}Bcc: all@house.example{signs}{signs}/reset/x"
            house.anna.book(thing, f"2026-03-{day:02}T10:00", f"2026-03-{day:02}T12:00", note=note)

    subjects = []
    for day, signs in enumerate(BREAKS, 1):
        blank = " " * len(signs)
        subjects.append(f"Booked: Choir {day}{blank}Bcc: all@house.example{blank}{blank}/reset/x")
    assert sorted(head(mail) for mail in house.new_mails(book)) == [("anna", each) for each in subjects]


@pytest.mark.requirement("mail-head", kind="core")
def test_names(house):
    """Names of people and things are no lines of a head either, and To is the name for signing in alone."""
    person = house.person(full_name="Eva\nBcc: all@house.example")
    person.post("/me", {"full_name": "Eva <all@house.example>,\r\nCc: x"})
    thing = house.thing(name="Hall\nBcc: all@house.example")
    booking = []
    mails = house.new_mails(lambda: booking.append(person.book(thing, "2026-03-01T10:00", "2026-03-01T12:00")))
    mails += house.new_mails(lambda: house.new_link(person.name))
    mails += house.new_mails(lambda: house.otto.delete(f"/bookings/{booking[0]}"))
    assert [head(mail) for mail in mails] == [
        (person.name, "Booked: Hall Bcc: all@house.example"),
        (person.name, "Your password"),
        (person.name, "Cancelled: Hall Bcc: all@house.example"),
    ]


@pytest.mark.requirement("mail-to", kind="core")
def test_whose_booking(house):
    """The mail goes to the person whose booking it is, and has what it had."""
    thing = house.thing(name="Hall")
    book = lambda: house.otto.book(thing, "2026-03-01T10:00", "2026-03-01T12:00", user="anna", note="Choir")  # noqa: E731
    [mail] = house.new_mails(book)
    assert head(mail) == ("anna", "Booked: Choir")
    assert "Hall is yours from 2026-03-01T10:00 to 2026-03-01T12:00." in mail
    assert "otto" not in mail.lower()


@pytest.mark.requirement("mail-changed", kind="core")
def test_changed_passwords(house):
    """Who has a new password gets a mail, which does not have it."""
    person = house.person()
    link = house.new_link(person.name)
    mails = house.new_mails(lambda: house.nobody.post(link, {"new": "Kammer 1"}))
    person = house.sign_in(person.name, "Kammer 1")
    mails += house.new_mails(lambda: person.post("/password", {"old": "Kammer 1", "new": "Kammer 2"}))
    assert [head(mail) for mail in mails] == [(person.name, "Your password was changed")] * 2
    assert "Kammer" not in "".join(mails)
    assert house.new_mails(lambda: person.post("/password", {"old": PASSWORD, "new": "Kammer 3"})) == []
    assert house.new_mails(lambda: house.nobody.post(link, {"new": "Kammer 1"})) == []


@pytest.mark.requirement("mail-cancelled", kind="core")
def test_cancelled_by_others(house):
    """Who cancels his own booking gets no mail; whose booking somebody else cancels gets one."""
    thing = house.thing(name="Loft")
    numbers = [house.anna.book(thing, f"2026-03-0{day}T10:00", f"2026-03-0{day}T12:00", note="x") for day in (1, 2)]
    assert house.new_mails(lambda: house.anna.delete(f"/bookings/{numbers[0]}")) == []
    assert house.new_mails(lambda: house.bert.delete(f"/bookings/{numbers[1]}")) == []
    mails = house.new_mails(lambda: house.otto.delete(f"/bookings/{numbers[1]}"))
    assert [head(mail) for mail in mails] == [("anna", "Cancelled: Loft")]
