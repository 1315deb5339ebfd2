"""Everybody gets at his own, staff at all."""

import re

import pytest


def booked(house):
    """A booking of anna's with an attachment: (thing, booking)."""
    thing = house.thing()
    booking = house.anna.book(thing, "2026-03-01T10:00", "2026-03-01T12:00", note="divorce lawyer")
    assert house.anna.upload(booking, "plan.txt", b"where to sit").status == 201
    return thing, booking


REQUESTS = [
    ("GET", "", None),
    ("DELETE", "", None),
    ("POST", "", {"note": "mine"}),
    ("GET", "/files", None),
    ("GET", "/files/plan.txt", None),
    ("POST", "/files/plan.txt", b"other"),
    ("POST", "/files/new.txt", b"other"),
]


@pytest.mark.requirement("own-bookings", kind="core")
@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=[f"{each[0]}-{each[1]}" for each in REQUESTS])
def test_others_bookings(house, method, path, body):
    """A member is answered as if somebody else's booking was not there, and nothing of it changes."""
    _, booking = booked(house)
    missing = house.bert.ask(method, f"/bookings/999999{path}", body)
    reply = house.bert.ask(method, f"/bookings/{booking}{path}", body)
    told, expected = [re.sub(rb"[0-9]+", b"N", each.body) for each in (reply, missing)]
    assert (missing.status, reply.status, told) == (404, 404, expected)
    assert house.anna.got(f"/bookings/{booking}")["note"] == "divorce lawyer"
    assert house.anna.got(f"/bookings/{booking}/files")["files"] == ["plan.txt"]
    assert house.anna.download(booking, "plan.txt").body == b"where to sit"


@pytest.mark.requirement("own-bookings", kind="core")
def test_own_and_staff(house):
    """Who has a booking, and staff, see and change it and its attachments."""
    thing, booking = booked(house)
    expected = {
        "id": booking,
        "thing": thing,
        "user": "anna",
        "from": "2026-03-01T10:00",
        "to": "2026-03-01T12:00",
        "note": "divorce lawyer",
    }
    for person in (house.anna, house.otto):
        assert person.got(f"/bookings/{booking}") == expected
        assert person.download(booking, "plan.txt").body == b"where to sit"
        assert person.upload(booking, f"{person.name}.txt").status == 201
    assert house.otto.got(f"/bookings/{booking}/files")["files"] == ["anna.txt", "otto.txt", "plan.txt"]
    # What hung on a booking may lie about when it is cancelled, so its number must not be the next one that is given.
    house.anna.book(thing, "2026-03-02T10:00", "2026-03-02T12:00")
    reply = house.otto.delete(f"/bookings/{booking}")
    assert (reply.status, reply.value) == (200, {})
    assert house.anna.get(f"/bookings/{booking}").status == 404


@pytest.mark.requirement("own-bookings", kind="integration")
def test_list(house):
    """The list has one's own bookings, and all for staff."""
    _, booking = booked(house)
    other = house.bert.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00")
    lists = [{each["id"] for each in person.got("/bookings")["bookings"]} for person in (house.anna, house.bert)]
    assert [booking in lists[0], other in lists[0], booking in lists[1], other in lists[1]] == [
        True,
        False,
        False,
        True,
    ]
    assert {booking, other} <= {each["id"] for each in house.otto.got("/bookings")["bookings"]}


STAFF = [
    ("GET", "/users", None),
    ("POST", "/users", {"name": "mole", "full_name": "M", "role": "staff", "password": "m"}),
    ("POST", "/things", {"kind": "room", "name": "Molehill", "place": "x"}),
    ("GET", "/export.csv", None),
]


@pytest.mark.requirement("staff-only", kind="core")
@pytest.mark.parametrize(("method", "path", "body"), STAFF, ids=[f"{each[0]}{each[1]}" for each in STAFF])
def test_for_staff(house, method, path, body):
    """What is for staff is refused to members, and to those who are not signed in."""
    house.anna.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00")  # The export is not empty.
    assert house.anna.ask(method, path, body).status == 403
    assert house.nobody.ask(method, path, body).status == 401
    assert "mole" not in [user["name"] for user in house.otto.got("/users")["users"]]
    assert house.otto.things("q=Molehill") == []
    assert house.otto.get("/export.csv").status == 200


@pytest.mark.requirement("staff-only", kind="boundary")
def test_for_somebody_else(house):
    """Only staff books for somebody else; a member may name himself."""
    thing = house.thing()
    wish = {"thing": thing, "from": "2026-03-01T10:00", "to": "2026-03-01T12:00", "note": ""}
    assert house.anna.post("/bookings", wish | {"user": "bert"}).status == 403
    assert house.anna.got(f"/calendar?thing={thing}") == {"bookings": []}
    first = house.otto.book(thing, "2026-03-01T10:00", "2026-03-01T12:00", user="bert")
    assert house.bert.got(f"/bookings/{first}")["user"] == "bert"
    second = house.anna.book(thing, "2026-03-02T10:00", "2026-03-02T12:00", user="anna")
    assert house.anna.got(f"/bookings/{second}")["user"] == "anna"


@pytest.mark.requirement("no-more-than-one-is", kind="core")
def test_me(house):
    """Who changes his full name changes nothing else of himself."""
    person = house.person()
    for column in ("role", "name", "password"):
        reply = person.post("/me", {"full_name": "Eva Neu", column: "staff"})
        expected = {"name": person.name, "full_name": "Eva Neu", "role": "member"}
        assert (reply.status, reply.value, person.got("/me")) == (200, expected, expected)
    assert house.sign_in(person.name).get("/users").status == 403


PATHS = ["/me", "/things", "/calendar?thing=1", "/bookings", "/bookings/1", "/bookings/1/files/a"]


@pytest.mark.requirement("signed-in", kind="error")
def test_not_signed_in(house):
    """Who is not signed in, or says that he was, sees nothing, and changes no note."""
    booking = house.anna.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00", note="hers")
    requests = [("GET", path, None) for path in PATHS] + [("POST", f"/bookings/{booking}", {"note": "mine"})]
    for method, path, body in requests:
        assert house.nobody.ask(method, path, body).status == 401, (method, path)
        assert house.nobody.ask(method, path, body, {"Cookie": "session=anna"}).status == 401, (method, path)
    assert house.anna.got(f"/bookings/{booking}")["note"] == "hers"
