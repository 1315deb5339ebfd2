"""Rooms follow each other, times exist, and bookings are moved."""

import pytest

OPEN, CLOSE = "2026-03-05T10:00", "2026-03-05T12:00"


@pytest.mark.requirement("touching-rooms", kind="core")
def test_rooms_follow_each_other(house):
    """A room can be had from the minute in which it is left, until the minute in which the next one begins."""
    room = house.thing("room", "Salon")
    house.anna.book(room, OPEN, CLOSE)
    for start, finish in ((CLOSE, "2026-03-05T13:00"), ("2026-03-05T09:00", OPEN)):
        assert house.bert.things(f"q=Salon&from={start}&to={finish}") == ["Salon"]
        house.bert.book(room, start, finish)
        assert house.bert.things(f"q=Salon&from={start}&to={finish}") == []
    for start, finish in (
        ("2026-03-05T11:59", CLOSE),
        (OPEN, "2026-03-05T10:01"),
        ("2026-03-05T08:00", "2026-03-05T14:00"),
    ):
        assert house.bert.post("/bookings", {"thing": room, "from": start, "to": finish}).status == 409


@pytest.mark.requirement("touching-rooms", kind="integration")
def test_beside_what_is_from_paper(old_house):
    """Rooms follow what is from paper as well, and keys do not."""
    fred = old_house.sign_in("fred", "fred of old")
    fred.book(3, "2025-04-03T11:30", "2025-04-03T12:00")
    fred.book(3, "2025-04-03T08:00", "2025-04-03T09:00")
    assert fred.post("/bookings", {"thing": 3, "from": "2025-04-03T11:29", "to": "2025-04-03T11:30"}).status == 409
    assert fred.post("/bookings", {"thing": 2, "from": "2025-03-01T09:00", "to": "2025-03-01T10:00"}).status == 409


WRONG = [
    "2026-02-31T10:00",
    "2026-13-01T10:00",
    "2026-00-10T10:00",
    "2026-03-00T10:00",
    "2026-03-05T24:00",
    "2026-03-05T09:75",
    "2025-02-29T10:00",
]


@pytest.mark.requirement("real-times", kind="error")
def test_times_that_do_not_exist(house):
    """A time that does not exist is a bad request, wherever it comes in."""
    thing = house.thing()
    booking = house.anna.book(thing, OPEN, CLOSE)
    places = [
        lambda time: house.anna.post("/bookings", {"thing": thing, "from": time, "to": "2027-01-01T10:00"}),
        lambda time: house.anna.post(f"/bookings/{booking}", {"from": time, "to": "2027-01-01T10:00"}),
        lambda time: house.anna.get(f"/things?from={time}&to=2027-01-01T10:00"),
        lambda time: house.otto.get(f"/export.csv?to={time}"),
        lambda time: house.anna.get(f"/bookings.csv?from={time}"),
    ]
    for number, time in enumerate(WRONG):
        assert house.anna.post("/bookings", {"thing": thing, "from": "2024-01-01T10:00", "to": time}).status == 400, (
            time
        )
        # The other places have some of these times each.
        for at in (number % 5, (number + 1) % 5):
            assert places[at](time).status == 400, (time, at)
    assert len(house.anna.got(f"/calendar?thing={thing}")["bookings"]) == 1
    house.anna.book(thing, "2028-02-29T00:00", "2028-02-29T23:59")


@pytest.mark.requirement("move", kind="core")
@pytest.mark.parametrize(
    "change",
    [
        {"from": "2026-03-05T11:00", "to": "2026-03-05T15:00"},
        {"from": "2026-03-05T09:00"},
        {"to": "2026-03-05T12:30", "note": "longer"},
        {"note": "later"},
    ],
    ids=["both", "from", "to", "note"],
)
def test_moved(house, change):
    """What is said of a booking changes, the rest stays; it is not in its own way."""
    booking = house.anna.book(house.thing("key"), OPEN, CLOSE, note="as it was")
    before = house.anna.got(f"/bookings/{booking}")
    for person in (house.anna, house.otto):
        reply = person.post(f"/bookings/{booking}", change | {"thing": 1, "user": "bert"})
        assert (reply.status, reply.value) == (200, before | change)
    assert house.anna.got(f"/bookings/{booking}") == before | change


@pytest.mark.requirement("move", kind="boundary")
def test_moves_that_are_none(house):
    """What is in another one's way, or is no stretch of time, changes nothing at all."""
    thing = house.thing("key")
    booking = house.anna.book(thing, OPEN, CLOSE, note="as it was")
    house.bert.book(thing, "2026-03-05T14:00", "2026-03-05T15:00")
    before = house.anna.got(f"/bookings/{booking}")
    reply = house.anna.post(f"/bookings/{booking}", {"to": "2026-03-05T14:00", "note": "x"})
    assert (reply.status, reply.value["from"], reply.value["to"]) == (409, "2026-03-05T14:00", "2026-03-05T15:00")
    assert "bert" not in reply.text.lower()
    for change in (
        {"to": OPEN},
        {"from": CLOSE},
        {"from": 7},
        {"to": None, "note": "x"},
        {"from": OPEN, "note": 7},
        {},
        {"thing": 1},
    ):
        assert house.anna.post(f"/bookings/{booking}", change).status == 400, change
    for change in ({"to": "2026-03-05T13:00"}, {"note": "x"}):
        assert house.bert.post(f"/bookings/{booking}", change).status == 404
    assert house.anna.got(f"/bookings/{booking}") == before


@pytest.mark.requirement("move", kind="integration")
def test_moved_from_paper(old_house):
    """A booking from paper is moved, or gets a note, as others do."""
    gina = old_house.sign_in("gina", "gina of old")
    reply = gina.post("/bookings/22", {"note": "x"})
    assert (reply.value["from"], reply.value["to"], reply.value["note"]) == (
        "2025-04-03T09:00",
        "2025-04-03T11:30",
        "x",
    )
    reply = gina.post("/bookings/22", {"to": "2025-04-03T10:00"})
    assert (reply.status, reply.value["from"], reply.value["to"]) == (200, "2025-04-03T09:00", "2025-04-03T10:00")
    assert gina.post("/bookings/24", {"to": "2027-01-21T07:05"}).status == 400
    gina.book(4, "2025-04-03T10:00", "2025-04-03T11:30")
    assert gina.post("/bookings/24", {"from": "2024-10-13T01:59"}).status == 409
    assert gina.post("/bookings/24", {"from": "2027-01-20T10:00"}).value["to"] == "2027-01-21T17:00"
