"""What is typed is text, wherever."""

import json
from urllib.parse import unquote

import pytest

INSIDE = ["Traceback", ".py", "sqlite", "SELECT", "OperationalError", 'File "', 'near "']


def assert_no_inside(reply, typed=""):
    """Assert that an answer is an error, and tells nothing of the program's inside; it may repeat what was typed."""
    assert isinstance(reply.value["error"], str), repr(reply)
    assert [word for word in INSIDE if word in reply.text and word not in typed] == [], repr(reply)


NAMES = [
    "O'Brien's key",
    'The "small" key',
    "100% cotton key",
    "a_b key",
    "back\\slash key",
    "plain key",
    "1009 cotton key",
]


def keys(house):
    for name in NAMES:
        house.thing("key", name, "board")


SEARCHES = [
    ("O%27Brien%27s", ["O'Brien's key"]),
    ("%22small%22", ['The "small" key']),
    ("0%25", ["100% cotton key"]),
    ("%25", ["100% cotton key"]),
    ("a_b", ["a_b key"]),
    ("_", ["a_b key"]),
    ("%5C", ["back\\slash key"]),
    ("%27", ["O'Brien's key"]),
    ("%27%20OR%20%271%27%3D%271", []),
    ("%27%20UNION%20SELECT%20name,password,role,full_name%20FROM%20users--", []),
    ("cotton", ["100% cotton key", "1009 cotton key"]),
]


@pytest.mark.requirement("search-text", kind="core")
def test_search(house):
    """A search finds what has exactly this text in it, whatever signs that are."""
    house.once(keys)
    for query, found in SEARCHES:
        assert [name for name in house.anna.things(f"q={query}") if name in NAMES] == found, query


NO_NAMES = ["anna' --", "anna' OR '1'='1", "' OR role='staff' --", "' UNION SELECT * FROM users --", "ann_", "%"]


@pytest.mark.requirement("login-text", kind="core")
def test_login(house):
    """A name at the login is the name that it is; nobody gets in by one that is none."""
    before = house.outbox()
    for name in NO_NAMES:
        for password in ("Korridor 7b", "' OR '1'='1"):
            reply = house.login(name, password)
            assert (reply.status, reply.session) == (401, "")
            assert_no_inside(reply, name)
        assert house.nobody.post("/reset", {"name": name}).status == 200
    assert house.outbox() == before


@pytest.mark.requirement("login-text", kind="integration")
def test_people_with_quotes(house):
    """Somebody whose name has a quote in it is added, signs in, books and sees what is his."""
    reply = house.otto.post(
        "/users", {"name": "d'arc", "full_name": "Jo' d\"Arc", "role": "member", "password": "it's"}
    )
    assert reply.status == 201
    person = house.sign_in("d'arc", "it's")
    booking = person.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00", note="it's; --")
    assert [(each["id"], each["note"]) for each in person.got("/bookings")["bookings"]] == [(booking, "it's; --")]
    assert len(house.new_link("d'arc")) > len("/reset/")


QUERIES = [
    "/things?sort=name;",
    "/things?sort=password",
    "/things?sort=1",
    "/things?sort=",
    "/things?sort=--name",
    "/things?sort=(SELECT%20password%20FROM%20users)",
    "/things?sort=name%20DESC",
    "/things?kind=door",
    "/bookings?sort=note",
    "/bookings?sort=start",
    "/bookings?sort=",
    "/bookings?sort=CASE%20WHEN%201%20THEN%20id%20END",
    "/calendar?thing=1%20OR%201=1",
    "/calendar?thing=x",
    "/calendar?thing=",
    "/calendar",
    "/calendar?thing=1.0",
    "/calendar?thing=0%20UNION%20SELECT%201,1,name,password,role,1%20FROM%20users",
]


@pytest.mark.requirement("known-values", kind="error")
def test_unknown_values(house):
    """A column or thing that is none is a bad request."""
    for path in QUERIES:
        reply = house.anna.get(path)
        assert reply.status == 400
        assert_no_inside(reply, unquote(path))


@pytest.mark.requirement("known-values", kind="boundary")
def test_numbers_that_nothing_has(house):
    """A number that nothing has is not there, however long it is."""
    for number in ("999999", "9" * 19, "9" * 40):
        paths = [
            f"/calendar?thing={number}",
            f"/bookings/{number}",
            f"/bookings/{number}/files",
            f"/bookings/{number}/files/a",
        ]
        replies = [house.otto.get(path) for path in paths] + [house.otto.delete(f"/bookings/{number}")]
        wish = {"thing": int(number), "from": "2026-03-01T10:00", "to": "2026-03-01T12:00"}
        replies.append(house.otto.post("/bookings", wish))
        assert [reply.status for reply in replies] == [404] * 6
        for reply in replies:
            assert_no_inside(reply)


BODIES = [
    ("/bookings", {"thing": [1]}),
    ("/bookings", {"thing": {"id": 1}}),
    ("/bookings", {"thing": True}),
    ("/bookings", {"thing": "1 OR 1=1"}),
    ("/bookings", {"thing": 1.5}),
    ("/bookings", {"thing": None}),
    ("/bookings", {"from": 20260301}),
    ("/bookings", {"note": 7}),
    ("/bookings", {"note": ["a"]}),
    ("/bookings", {"user": ["anna"]}),
    ("/bookings/{booking}", {"note": 7}),
    ("/bookings/{booking}", {}),
    ("/me", {"full_name": ["Anna"]}),
    ("/me", []),
    ("/me", b"{full_name"),
    ("/me", b"\xff\xfe"),
    ("/login", {"name": {"$ne": ""}, "password": "x"}),
    ("/login", {"name": "anna", "password": None}),
    ("/reset", {"name": 1}),
]


@pytest.mark.requirement("known-values", kind="error")
def test_values_of_other_kinds(house):
    """A value that is not of its kind is a bad request that changes nothing."""
    thing = house.thing()
    booking = house.anna.book(thing, "2026-04-01T10:00", "2026-04-01T12:00", note="as it was")
    for path, body in BODIES:
        if path == "/bookings":
            body = {"thing": thing, "from": "2026-03-01T10:00", "to": "2026-03-01T12:00", "note": "x"} | body
        reply = house.anna.post(path.format(booking=booking), body)
        assert reply.status == 400, (path, body)
        assert_no_inside(reply)
    assert house.anna.got("/me")["full_name"] == "Anna Berg"
    assert house.anna.got(f"/bookings/{booking}")["note"] == "as it was"
    assert len(house.otto.got(f"/calendar?thing={thing}")["bookings"]) == 1


@pytest.mark.requirement("no-inside", kind="error")
def test_what_nobody_thought_of(house):
    """Whatever comes in, an answer that is an error is JSON, and shows nothing of the inside; the service goes on."""
    odd = [
        house.anna.post("/me", b'{"full_name": "\\ud800"}'),
        house.anna.post("/me", b"[" * 60_000),
        house.anna.post("/login", b'{"name": "\\udfff", "password": "\\udfff"}'),
        house.anna.get("/things?q=%00&sort=%00"),
        house.anna.get("/no/such/page"),
        house.anna.delete("/things"),
        house.anna.post("/reset/%27", {"new": "x"}),
        house.anna.post("/me", json.dumps({"full_name": None}).encode()),
    ]
    for reply in odd:
        assert 400 <= reply.status <= 500, repr(reply)
        assert_no_inside(reply)
    assert house.anna.got("/me")["full_name"] == "Anna Berg"
