"""A link works once, and the newest only."""

import re

import pytest
from client import KEEP_BYTECODE, PASSWORD, Person


@pytest.mark.requirement("link-once", kind="core")
def test_once(house):
    """A link sets one password, and is not there afterwards."""
    person = house.person()
    link = house.new_link(person.name)
    reply = house.nobody.post(link, {"new": "Kammer 1"})
    assert (reply.status, reply.value) == (200, {})
    assert house.nobody.post(link, {"new": "Kammer 2"}).status == 404
    assert [house.login(person.name, password).status for password in ("Kammer 2", "Kammer 1")] == [401, 200]


@pytest.mark.requirement("link-newest", kind="core")
def test_the_newest(house):
    """Of several links the newest works, and those of other people go on working."""
    people = [house.person(), house.person()]
    other = house.new_link(people[1].name)
    links = [house.new_link(people[0].name) for _ in range(3)]
    statuses = [house.nobody.post(link, {"new": f"Kammer {number}"}).status for number, link in enumerate(links)]
    assert statuses == [404, 404, 200]
    assert house.login(people[0].name, "Kammer 2").status == 200
    assert house.nobody.post(other, {"new": "Kammer 9"}).status == 200


@pytest.mark.requirement("link-newest", kind="boundary")
def test_after_another_change(house):
    """A change of the password makes links void; an attempt at one does not."""
    person = house.person()
    link = house.new_link(person.name)
    assert person.post("/password", {"old": "wrong", "new": "Kammer 1"}).status == 401
    assert person.post("/password", {"old": PASSWORD, "new": "Kammer 1"}).status == 200
    assert house.nobody.post(link, {"new": "Kammer 2"}).status == 404
    assert house.login(person.name, "Kammer 1").status == 200


@pytest.mark.requirement("link-once", kind="error")
def test_refused_bodies(house):
    """A link that was used wrongly can still be used."""
    person = house.person()
    link = house.new_link(person.name)
    for body in ({}, {"new": 7}, {"new": None}, [], b"{"):
        assert house.nobody.post(link, body).status == 400, body
    assert house.login(person.name).status == 200
    assert house.nobody.post(link, {"new": "Kammer 1"}).status == 200


@pytest.mark.requirement("link-once", kind="integration")
def test_several_at_once(house):
    """If several use a link at once, one of them does, and his password holds."""
    for _ in range(2):
        person = house.person()
        link = house.new_link(person.name)
        replies = house.at_once([(house.nobody, "POST", link, {"new": f"Kammer {number}"}) for number in range(6)])
        statuses = [reply.status for reply in replies]
        assert sorted(statuses) == [200, *[404] * 5]
        assert house.login(person.name, f"Kammer {statuses.index(200)}").status == 200


@pytest.mark.requirement("link-minutes", kind="boundary")
def test_minutes(old_house):
    """With no minutes no link works; links survive another start."""
    people = [old_house.person(), old_house.person()]
    old_house.restart("--link-minutes 0")
    reply = old_house.nobody.post(old_house.new_link(people[0].name), {"new": "x"})
    old_house.restart()
    assert reply.status == 404
    link = old_house.new_link(people[1].name)
    old_house.restart()
    assert old_house.nobody.post(link, {"new": "Kammer 1"}).status == 200
    command = ["python3", "-m", "gatehouse", "--data", f"{old_house.data}-2", "--port", "0", "--link-days", "7"]
    assert old_house.workspace.run(command, env=KEEP_BYTECODE, timeout=60).exit_code == 2


@pytest.mark.requirement("nothing-in-the-database", kind="core")
def test_what_lies_in_the_database(own_house, tmp_path):
    """Nothing that stands in the database gets anybody in, neither as a session nor as a code."""
    anna, link = own_house.anna, own_house.new_link("bert")
    rows = own_house.dump(tmp_path)
    words = set(re.findall(r"[A-Za-z0-9+/=_-]{16,}", rows)) | set(re.findall(r"[A-Za-z0-9+/=_.:$-]{16,}", rows))
    assert anna.session not in rows
    assert link.removeprefix("/reset/") not in rows
    for word in words:
        assert Person(own_house, "", word).get("/me").status == 401
        assert own_house.nobody.post(f"/reset/{word}", {"new": "x"}).status in (400, 404)
    assert anna.signed_in
    assert own_house.nobody.post(link, {"new": "Kammer 1"}).status == 200
