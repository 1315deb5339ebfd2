"""Bodies have a size, and what hangs on a booking goes with it."""

import pytest

KIB = 1024


def booked(house):
    return house.anna.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00")


@pytest.mark.requirement("largest-attachment", kind="boundary", retired="round-5")
def test_largest_attachment(house):
    """An attachment of 1 MiB is kept, and one of a byte more is not."""
    booking = booked(house)
    assert house.anna.upload(booking, "a", b"x" * KIB * KIB).status == 201
    head = f"POST /bookings/{booking}/files/b HTTP/1.0\r\nCookie: session={house.anna.session}\r\n"
    assert house.raw(f"{head}Content-Length: {KIB * KIB + 1}\r\n\r\nabc".encode()).status == 413
    assert house.anna.got(f"/bookings/{booking}/files")["sizes"] == {"a": KIB * KIB}


PATHS = ["/login", "/me", "/bookings", "/reset", "/reset/abc", "/users"]


@pytest.mark.requirement("largest-body", kind="boundary")
def test_largest_bodies(house):
    """What is too large is refused before it has come, and what is just not, is not."""
    for path in PATHS:
        head = f"POST {path} HTTP/1.0\r\nCookie: session={house.otto.session}\r\n"
        for length in (64 * KIB + 1, 10**9, 10**30):
            assert house.raw(f"{head}Content-Length: {length}\r\n\r\n{{".encode()).status == 413
    body = b'{"full_name": "Otto Ahl"}'.ljust(64 * KIB)
    assert house.otto.post("/me", body).status == 200


@pytest.mark.requirement("largest-body", kind="core")
def test_far_too_large_an_attachment(house):
    """Nobody waits for a film, and nothing of it is kept."""
    booking = booked(house)
    head = f"POST /bookings/{booking}/files/film HTTP/1.0\r\nCookie: session={house.anna.session}\r\n"
    for length in (5 * KIB * KIB, 10**12, 10**30):
        assert house.raw(f"{head}Content-Length: {length}\r\n\r\nabc".encode()).status == 413
    assert house.anna.got(f"/bookings/{booking}/files")["files"] == []


NO_LENGTHS = [
    "Content-Length: -1",
    "Content-Length: +5",
    "Content-Length: 5x",
    "Content-Length: 0x5",
    "Content-Length: 1_0",
    "Content-Length: 5, 5",
    "Content-Length: \u0665",
    "Content-Length: 5.0",
    "Transfer-Encoding: chunked",
    "Content-Length: 5\r\nTransfer-Encoding: identity",
]


@pytest.mark.requirement("lengths", kind="error")
def test_lengths_that_are_none(house):
    """What is no length is a bad request, and nothing is kept."""
    booking = booked(house)
    for header in NO_LENGTHS:
        head = f"POST /bookings/{booking}/files/a HTTP/1.0\r\nCookie: session={house.anna.session}\r\n"
        assert house.raw(f"{head}{header}\r\n\r\nabcde".encode()).status == 400, header
    assert house.anna.got(f"/bookings/{booking}/files")["files"] == []


@pytest.mark.requirement("cut-off", kind="error")
def test_what_ends_too_early(house):
    """What is not whole is not kept, and what is there by this name stays."""
    booking = booked(house)
    assert house.anna.upload(booking, "a", b"whole").status == 201
    for name in ("a", "b"):
        head = f"POST /bookings/{booking}/files/{name} HTTP/1.0\r\nCookie: session={house.anna.session}\r\n"
        assert house.raw(f"{head}Content-Length: 500\r\n\r\nhalf".encode(), end=True).status == 400
    assert house.anna.got(f"/bookings/{booking}/files")["files"] == ["a"]
    assert house.anna.download(booking, "a").body == b"whole"


@pytest.mark.requirement("remove-file", kind="core")
def test_remove_an_attachment(house):
    """Who has a booking, and staff, removes an attachment; what is not there is 404."""
    booking = booked(house)
    for name in ("a", "ü b", "c"):
        house.anna.upload(booking, name, name.encode())
    assert house.anna.got(f"/bookings/{booking}/files") == {
        "files": ["a", "c", "ü b"],
        "sizes": {"a": 1, "c": 1, "ü b": 4},
    }
    assert house.bert.delete(f"/bookings/{booking}/files/a").status == 404
    reply = house.anna.delete(f"/bookings/{booking}/files/%C3%BC%20b")
    assert (reply.status, reply.value) == (200, {})
    assert house.otto.delete(f"/bookings/{booking}/files/c").status == 200
    assert house.anna.delete(f"/bookings/{booking}/files/c").status == 404
    assert house.anna.download(booking, "c").status == 404
    assert house.anna.got(f"/bookings/{booking}/files") == {"files": ["a"], "sizes": {"a": 1}}


@pytest.mark.requirement("cancelled", kind="core")
def test_attachments_go_with_the_booking(old_house):
    """What hung on a booking that was cancelled is nowhere, and its number is not given again."""
    thing = old_house.thing()
    numbers = [old_house.anna.book(thing, f"2026-03-0{day}T10:00", f"2026-03-0{day}T12:00") for day in (1, 2)]
    old_house.anna.upload(numbers[1], "letter.txt", b"Dear landlord")
    assert old_house.anna.delete(f"/bookings/{numbers[1]}").status == 200
    later = old_house.bert.book(thing, "2026-03-03T10:00", "2026-03-03T12:00")
    assert later not in numbers
    assert old_house.bert.got(f"/bookings/{later}/files")["files"] == []
    assert old_house.bert.delete(f"/bookings/{later}").status == 200
    old_house.restart()
    assert old_house.bert.book(thing, "2026-03-03T10:00", "2026-03-03T12:00") not in (*numbers, later)
    assert old_house.workspace.run(["grep", "-rl", "Dear landlord", old_house.data]).stdout == ""


@pytest.mark.requirement("cancelled", kind="integration")
def test_numbers_of_old(old_house):
    """Numbers go on behind those of old, also of what was cancelled long ago, and bookings of old are as they were."""
    ines = old_house.sign_in("ines", "ines of old")
    assert ines.download(25, "Plan.pdf").body == b"%PDF- as well"
    assert ines.got("/bookings/25/files") == {"files": ["Plan.pdf"], "sizes": {"Plan.pdf": 13}}
    assert ines.delete("/bookings/30").status == 200
    later = ines.book(2, "2030-03-01T10:00", "2030-03-01T12:00")
    assert later > 500
    assert ines.got(f"/bookings/{later}/files") == {"files": [], "sizes": {}}
    assert [each["id"] for each in ines.got("/bookings")["bookings"]] == [25, later]
