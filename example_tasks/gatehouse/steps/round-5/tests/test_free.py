"""What is free."""

import pytest

OPEN, CLOSE = "2026-03-05T10:00", "2026-03-05T12:00"


def rooms(house):
    """Add a room and a key that are taken from 10 to 12, and a room that is not."""
    for kind, name in (("room", "Free A"), ("key", "Free B")):
        house.anna.book(house.thing(kind, name), OPEN, CLOSE)
    house.thing("room", "Free C")


STRETCHES = [
    ("from=2026-03-05T08:00&to=2026-03-05T09:59", ["Free A", "Free B", "Free C"]),
    ("from=2026-03-05T12:01&to=2026-03-05T13:00", ["Free A", "Free B", "Free C"]),
    ("from=2026-03-05T11:00&to=2026-03-05T11:01", ["Free C"]),
    ("from=2026-03-05T08:00&to=2026-03-05T10:01", ["Free C"]),
    ("from=2026-03-05T11:59&to=2026-03-05T14:00", ["Free C"]),
    ("from=2026-03-01T00:00&to=2026-03-31T00:00", ["Free C"]),
    ("from=2026-03-05T08:00&to=2026-03-05T09:00&sort=-name&kind=room", ["Free C", "Free A"]),
]


@pytest.mark.requirement("free", kind="core")
def test_free(house):
    """What nobody has within the time is free."""
    house.once(rooms)
    for query, found in STRETCHES:
        assert house.bert.things(f"q=free&{query}") == found


@pytest.mark.requirement("touching", kind="boundary")
def test_touching_keys(house):
    """A key is not free in the minute in which it comes back, and cannot be booked then."""
    house.once(rooms)
    key = next(each["id"] for each in house.otto.got("/things?q=Free%20B")["things"])
    for start, finish in ((CLOSE, "2026-03-05T13:00"), ("2026-03-05T09:00", OPEN)):
        assert "Free B" not in house.bert.things(f"q=free&from={start}&to={finish}")
        assert house.bert.post("/bookings", {"thing": key, "from": start, "to": finish}).status == 409


@pytest.mark.requirement("touching", kind="boundary", retired="round-8")
def test_touching_rooms(house):
    """A room is not free in the minute in which it is left, and cannot be booked then."""
    house.once(rooms)
    room = next(each["id"] for each in house.otto.got("/things?q=Free%20A")["things"])
    for start, finish in ((CLOSE, "2026-03-05T13:00"), ("2026-03-05T09:00", OPEN)):
        assert "Free A" not in house.bert.things(f"q=free&from={start}&to={finish}")
        assert house.bert.post("/bookings", {"thing": room, "from": start, "to": finish}).status == 409


NO_TIMES = [
    f"from={OPEN}",
    f"to={CLOSE}",
    f"from={CLOSE}&to={OPEN}",
    f"from={OPEN}&to={OPEN}",
    f"from=&to={CLOSE}",
    f"from=3.4.2025%209:00&to={CLOSE}",
    f"from=2026-03-05&to={CLOSE}",
    f"from={OPEN}&to={CLOSE}%0A",
    f"from={OPEN}&to=2026-03-05T12:00:00",
]


@pytest.mark.requirement("free", kind="error")
def test_times_that_are_none(house):
    """What is no stretch of time is a bad request."""
    for query in NO_TIMES:
        assert house.bert.get(f"/things?{query}").status == 400


BESIDE_PAPER = [
    ("2025-04-03T10:00", "2025-04-03T10:30", False),
    ("2025-04-03T08:00", "2025-04-03T08:59", True),
    ("2025-04-03T11:29", "2025-04-03T14:00", False),
    ("2024-10-13T01:00", "2024-10-13T01:30", False),
    ("2024-10-12T17:00", "2024-10-14T17:00", False),
    ("2027-01-21T07:04", "2027-01-21T07:06", False),
    ("2027-01-21T17:01", "2027-01-22T17:00", True),
    ("2025-12-01T00:00", "2026-12-01T00:00", True),
]


@pytest.mark.requirement("free", kind="integration")
def test_free_beside_what_is_from_paper(old_house):
    """Bookings from paper are in the way like others, for who looks and for who books."""
    jost = old_house.sign_in("jost", "jost of old")
    for start, finish, free in BESIDE_PAPER:
        assert ("Old hall" in jost.things(f"from={start}&to={finish}")) == free
        reply = jost.post("/bookings", {"thing": 1, "from": start, "to": finish, "note": ""})
        assert reply.status == (201 if free else 409)
        if not free:
            assert (reply.value["from"], reply.value["to"]) in [
                ("2025-04-03T09:00", "2025-04-03T11:30"),
                ("2024-10-12T18:00", "2024-10-13T02:00"),
                ("2027-01-21T07:05", "2027-01-21T17:00"),
            ]
