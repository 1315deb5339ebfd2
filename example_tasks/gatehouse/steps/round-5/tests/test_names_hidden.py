"""A member does not learn who has something."""

import pytest


def taken(house):
    """Return a thing that anna has for long."""
    thing = house.thing(name="Tower")
    house.anna.book(thing, "2020-03-01T10:00", "2099-03-01T12:00", note="night shift")
    return thing


@pytest.mark.requirement("names-hidden", kind="core")
def test_who(house):
    """A member sees that and when something is taken, and who has it only where it is himself; staff sees all."""
    tower = taken(house)
    for person, name in ((house.bert, None), (house.anna, "Anna Berg"), (house.otto, "Anna Berg")):
        entry = {"from": "2020-03-01T10:00", "to": "2099-03-01T12:00", "who": name}
        assert person.got(f"/calendar?thing={tower}") == {"bookings": [entry]}
        found = {each["id"]: each["holder"] for each in person.got("/things?q=Tower")["things"]}
        assert found[tower] == name


@pytest.mark.requirement("names-hidden", kind="core")
def test_no_answer_tells(house):
    """Nothing that a member asks for has somebody else's name or note in it."""
    tower = taken(house)
    wish = {"thing": tower, "from": "2026-03-01T10:00", "to": "2026-03-01T12:00", "note": ""}
    replies = [
        house.bert.post("/bookings", wish),
        house.bert.get("/things"),
        house.bert.get("/things?sort=-name&q=tow&kind=room"),
        house.bert.get(f"/calendar?thing={tower}"),
        house.bert.get("/bookings"),
        house.bert.post("/bookings", wish | {"user": "anna"}),
    ]
    assert [reply.status for reply in replies] == [409, 200, 200, 200, 200, 403]
    for reply in replies[:-1]:
        for word in ("anna", "berg", "night shift"):
            assert word not in reply.text.lower(), repr(reply)


@pytest.mark.requirement("names-hidden", kind="boundary")
def test_people_from_paper(old_records):
    """Somebody whom we do not have any more is nobody else's business either."""
    bert, otto = old_records.bert, old_records.otto
    assert [each["who"] for each in bert.got("/calendar?thing=1")["bookings"]] == [None] * 3
    assert [each["who"] for each in bert.got("/calendar?thing=2")["bookings"]] == ["Bert Cohn"]
    assert [each["who"] for each in otto.got("/calendar?thing=1")["bookings"]] == ["gone", "Anna Berg", "Anna Berg"]


@pytest.mark.requirement("people-hidden", kind="boundary")
def test_who_is_one_of_us(house):
    """Strangers are answered as people of ours are, but for the name where it is repeated."""
    told = []
    for name in (house.person().name, "nobody at all"):
        replies = house.login(name, "x"), house.nobody.post("/reset", {"name": name})
        told.append([(reply.status, reply.text.replace(name, "NAME")) for reply in replies])
    assert told[0] == told[1]


@pytest.mark.requirement("conflict-times", kind="core")
def test_what_is_in_the_way(house):
    """A booking that is refused tells from when to when the earliest other one is."""
    thing = house.thing()
    for day in (9, 5, 7):
        house.anna.book(thing, f"2026-03-0{day}T10:00", f"2026-03-0{day}T12:00")
    wish = {"thing": thing, "from": "2026-03-05T11:00", "to": "2026-03-09T11:00", "note": ""}
    for person in (house.bert, house.otto):
        reply = person.post("/bookings", wish)
        assert (reply.status, isinstance(reply.value["error"], str)) == (409, True)
        assert (reply.value["from"], reply.value["to"]) == ("2026-03-05T10:00", "2026-03-05T12:00")
    reply = house.bert.post("/bookings", wish | {"from": "2026-03-05T13:00"})
    assert (reply.value["from"], reply.value["to"]) == ("2026-03-07T10:00", "2026-03-07T12:00")


@pytest.mark.requirement("largest-attachment", kind="boundary")
def test_largest_attachment(house):
    """An attachment of 4 MiB is kept, and one of a byte more is not."""
    booking = house.anna.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00")
    size = 4 * 1024 * 1024
    assert house.anna.upload(booking, "a", b"x" * size).status == 201
    head = f"POST /bookings/{booking}/files/b HTTP/1.0\r\nCookie: session={house.anna.session}\r\n"
    assert house.raw(f"{head}Content-Length: {size + 1}\r\n\r\nabc".encode()).status == 413
    assert house.anna.got(f"/bookings/{booking}/files")["sizes"] == {"a": size}
