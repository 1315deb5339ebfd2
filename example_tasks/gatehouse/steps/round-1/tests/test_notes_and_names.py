"""Notes can be changed, and people have names."""

import pytest


@pytest.mark.requirement("note", kind="core")
def test_note(house):
    """Who has a booking, and staff, change its note, and nothing else."""
    thing = house.thing()
    booking = house.anna.book(thing, "2026-03-01T10:00", "2026-03-01T12:00", note="a")
    before = house.anna.got(f"/bookings/{booking}")
    for person, note in ((house.anna, "Übung, 'laut'"), (house.otto, "")):
        reply = person.post(f"/bookings/{booking}", {"note": note, "user": "bert", "id": 1})
        assert (reply.status, reply.value) == (200, before | {"note": note})
        assert house.anna.got(f"/bookings/{booking}") == before | {"note": note}


@pytest.mark.requirement("names", kind="core", retired="round-5")
def test_whole_names(house):
    """Everybody sees in the calendar and in the list who has something, by the full name."""
    thing = house.thing(name="Loft")
    house.anna.book(thing, "2020-03-01T10:00", "2099-03-01T12:00")
    entry = {"from": "2020-03-01T10:00", "to": "2099-03-01T12:00", "who": "Anna Berg"}
    assert house.bert.got(f"/calendar?thing={thing}") == {"bookings": [entry]}
    expected = {"id": thing, "kind": "room", "name": "Loft", "place": "1st floor", "holder": "Anna Berg"}
    assert house.bert.got("/things?q=Loft") == {"things": [expected]}


@pytest.mark.requirement("names", kind="core")
def test_whole_names_for_staff(house):
    """Staff sees full names, as they are now; what nobody has has no holder."""
    thing, free = house.thing(name="Attic"), house.thing(name="Attic 2")
    guest = house.person(full_name="Eva Alt")
    guest.book(thing, "2020-03-01T10:00", "2099-03-01T12:00")
    guest.book(free, "2020-03-01T10:00", "2021-03-01T12:00")
    guest.post("/me", {"full_name": "Eva Neu"})
    assert [each["holder"] for each in house.otto.got("/things?q=Attic")["things"]] == ["Eva Neu", None]
    assert [each["who"] for each in house.otto.got(f"/calendar?thing={free}")["bookings"]] == ["Eva Neu"]


@pytest.mark.requirement("old-data", kind="integration")
def test_bookings_of_old(old_records, tmp_path):
    """Bookings from paper are shown like others, with what they have of people who are gone, and kept as they were."""
    entries = [
        (each["from"], each["to"], each["who"]) for each in old_records.otto.got("/calendar?thing=1")["bookings"]
    ]
    assert entries == [
        ("2024-10-12T18:00", "2024-10-13T02:00", "gone"),
        ("2025-04-03T09:00", "2025-04-03T11:30", "Anna Berg"),
        ("2027-01-21T07:05", "2027-01-21T17:00", "Anna Berg"),
    ]
    assert old_records.otto.got("/bookings/2")["from"] == "2024-10-12T18:00"
    assert "'12.10.2024 18:00'" in old_records.dump(tmp_path)


@pytest.mark.requirement("old-data", kind="integration")
def test_attachments_of_old(old_records):
    """Attachments of years are where they were, for whom they are, also after another start."""
    assert old_records.anna.got("/bookings/1/files")["files"] == ["Plan Süd.pdf"]
    assert old_records.anna.download(1, "Plan Süd.pdf").body == b"%PDF- of old"
    assert old_records.bert.download(1, "Plan Süd.pdf").status == 404
    old_records.restart()
    assert old_records.bert.download(3, "notes.txt").body == b"typed"
