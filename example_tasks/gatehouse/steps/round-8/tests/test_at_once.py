"""What many do at once."""

import pytest

SLOT = {"from": "2026-03-05T10:00", "to": "2026-03-05T12:00"}


@pytest.mark.requirement("one-gets-it", kind="core")
def test_bookings_at_once(house):
    """Of bookings at once that are in each other's way one is made, and confirmed."""
    people = [house.anna, house.bert, house.otto]
    for number in range(8):
        thing = house.thing("key")
        mails = len(house.outbox())
        wishes = [SLOT | {"thing": thing, "from": f"2026-03-05T1{each % 2}:00", "note": ""} for each in range(6)]
        requests = [(people[each % 3], "POST", "/bookings", wish) for each, wish in enumerate(wishes)]
        replies = house.at_once(requests, held=number % 4 == 3)
        assert sorted(reply.status for reply in replies) == [201, *[409] * 5]
        assert len(house.otto.got(f"/calendar?thing={thing}")["bookings"]) == 1
        assert len(house.outbox()) == mails + 1


@pytest.mark.requirement("one-gets-it", kind="boundary")
def test_bookings_at_once_that_agree(house):
    """Bookings at once that are not in each other's way are all made."""
    things = [house.thing("key") for _ in range(6)]
    replies = house.at_once([(house.anna, "POST", "/bookings", SLOT | {"thing": thing}) for thing in things])
    assert [reply.status for reply in replies] == [201] * 6
    assert len({reply.value["id"] for reply in replies}) == 6


@pytest.mark.requirement("one-gets-it", kind="integration")
def test_moves_at_once(house):
    """Of bookings that are moved into one time at once, and one that is made there, one comes to be there."""
    thing = house.thing("key")
    for held, days in ((False, range(10, 15)), (True, range(20, 25))):
        numbers = [house.anna.book(thing, f"2026-03-{day}T10:00", f"2026-03-{day}T12:00") for day in days]
        slot = {key: value.replace("-05T", f"-0{days[0] // 10}T") for key, value in SLOT.items()}
        moves = [(house.anna, "POST", f"/bookings/{number}", slot) for number in numbers]
        replies = house.at_once([*moves, (house.bert, "POST", "/bookings", slot | {"thing": thing})], held)
        assert sorted(reply.status for reply in replies) in ([200, *[409] * 5], [201, *[409] * 5])
        starts = [each["from"] for each in house.otto.got(f"/calendar?thing={thing}")["bookings"]]
        assert starts.count(slot["from"]) == 1


@pytest.mark.requirement("one-person", kind="core")
def test_people_at_once(house):
    """A person who is added several times at once is added once, and no answer is a failure."""
    for number in range(4):
        person = {"name": f"twin{number}", "full_name": "T", "role": "member", "password": "x"}
        replies = house.at_once([(house.otto, "POST", "/users", person)] * 5, held=number == 3)
        assert sorted(reply.status for reply in replies) == [201, *[409] * 4]


@pytest.mark.requirement("one-cancels", kind="core")
def test_cancelled_at_once(house):
    """A booking that is cancelled several times at once is cancelled once."""
    for held in (False, True):
        booking = house.anna.book(house.thing(), SLOT["from"], SLOT["to"])
        mails = len(house.outbox())
        replies = house.at_once([(house.otto, "DELETE", f"/bookings/{booking}", {})] * 5, held)
        assert sorted(reply.status for reply in replies) == [200, *[404] * 4]
        assert len(house.outbox()) == mails + 1


@pytest.mark.requirement("half-a-request", kind="boundary")
def test_half_a_request(house):
    """Whoever has sent half a request keeps nobody waiting who books, moves what he moves, or looks."""
    booking = house.anna.book(house.thing(), SLOT["from"], SLOT["to"])
    before = house.anna.got(f"/bookings/{booking}")
    connections = [house.connect() for _ in range(4)]
    try:
        for connection, path in zip(connections, ["/bookings", f"/bookings/{booking}"] * 2, strict=True):
            head = f"POST {path} HTTP/1.0\r\nCookie: session={house.anna.session}\r\nContent-Length: 100\r\n\r\n{{"
            connection.sendall(head.encode())
        assert house.bert.book(house.thing(), SLOT["from"], SLOT["to"])
        later = {"to": "2026-03-05T13:00"}
        reply = house.anna.post(f"/bookings/{booking}", later)
        assert (reply.status, reply.value) == (200, before | later)
        assert house.bert.got("/me")["name"] == "bert"
    finally:
        for connection in connections:
            connection.close()
