"""Passwords: who gets in, and what lies in the database."""

import hashlib
import re

import pytest
from client import PASSWORD, old_password


@pytest.mark.requirement("no-service-word", kind="core")
def test_service_word(house):
    """Nobody gets in by what was in the program, neither by the word nor by what it was compared with."""
    for person in (house.person(), house.person(role="staff")):
        words = SERVICE_WORD, old_password(SERVICE_WORD), old_password(PASSWORD), ""
        assert [house.login(person.name, word).status for word in words] == [401] * 4
        assert house.login(person.name).status == 200
        assert person.post("/password", {"old": SERVICE_WORD, "new": "x"}).status == 401


SERVICE_WORD = "drehkreuz-service-94"


@pytest.mark.requirement("old-passwords", kind="core")
def test_old_passwords(old_house, tmp_path):
    """A password in the old form is good for signing in, and is in the new form from then on."""
    old = {name: old_password(f"{name} of old") for name in ("anna", "bert")}
    for _ in range(2):
        assert old_house.login("anna", "not it").status == 401
        assert old_house.login("anna", old["anna"]).status == 401
        assert old_house.sign_in("anna", "anna of old").signed_in
    rows = old_house.dump(tmp_path)
    assert old["anna"] not in rows
    old_house.restart()
    assert old_house.sign_in("anna", "anna of old").signed_in
    assert old_house.sign_in("bert", "bert of old").signed_in
    assert old["bert"] not in old_house.dump(tmp_path)


@pytest.mark.requirement("old-passwords", kind="integration")
def test_old_passwords_are_changed(old_house, tmp_path):
    """Who has signed in with a password in the old form can change it, and a link is as good."""
    carl = old_house.sign_in("carl", "carl of old")
    assert carl.post("/password", {"old": "dora of old", "new": "x"}).status == 401
    assert carl.post("/password", {"old": "carl of old", "new": "Kammer 3"}).status == 200
    assert old_house.login("carl", "carl of old").status == 401
    assert old_house.sign_in("carl", "Kammer 3").signed_in
    link = old_house.new_link("dora")
    assert carl.post(link, {"new": "Kammer 4"}).status == 200
    assert [old_house.login("dora", each).status for each in ("dora of old", "Kammer 4")] == [401, 200]
    assert old_password("dora of old") not in old_house.dump(tmp_path)


@pytest.mark.requirement("salted", kind="core")
def test_what_lies_in_the_database(house, tmp_path):
    """In the database is no password, none of its plain digests, and nothing that equal passwords have in common."""
    people = [house.person(full_name=name) for name in ("Karla Ohm", "Kurt Ohm", "Knut Ohm")]
    assert people[2].post("/password", {"old": PASSWORD, "new": "Kammer im Hof"}).status == 200
    rows = house.dump(tmp_path)
    for password in (PASSWORD, "Kammer im Hof"):
        plain = [getattr(hashlib, kind)(password.encode()).hexdigest() for kind in ("md5", "sha1", "sha256", "sha512")]
        for text in (password, password.encode().hex(), *plain):
            assert text.lower() not in rows.lower()
    words = [
        set(re.findall(r"[A-Za-z0-9+/=_-]{20,}", row))
        for row in rows.splitlines()
        if "'Karla Ohm'" in row or "'Kurt Ohm'" in row
    ]
    assert len(words) == 2
    assert not words[0] & words[1]


PASSWORDS = ["", "ä" * 500, "null\x00byte", "Korridor 7b "]


@pytest.mark.requirement("salted", kind="error")
def test_other_passwords(house):
    """A password is all of what was typed, and nothing else."""
    person, old = house.person(), PASSWORD
    for password in PASSWORDS:
        assert house.login(person.name, password).status == 401
        assert person.post("/password", {"old": old, "new": f"{password}!"}).status == 200
        old = f"{password}!"
        assert house.login(person.name, f"{password}!").status == 200
        assert house.login(person.name, "!").status == (200 if password == "" else 401)


@pytest.mark.requirement("links", kind="core", retired="round-7")
def test_links_work_again(house):
    """A link works as often as one likes, and so does each of several."""
    person = house.person()
    links = house.new_links(*[person.name] * 4)
    for number, link in enumerate([*links, links[0]]):
        reply = house.nobody.post(link, {"new": f"Kammer {number}"})
        assert (reply.status, reply.value) == (200, {})
        assert house.login(person.name, f"Kammer {number}").status == 200


@pytest.mark.requirement("links", kind="boundary", retired="round-7")
def test_links_that_are_too_old(old_house):
    """With no days no link works."""
    person = old_house.person()
    old_house.restart("--link-days 0")
    reply = old_house.nobody.post(old_house.new_link(person.name), {"new": "x"})
    old_house.restart("--link-days 30")
    assert (reply.status, old_house.login(person.name).status) == (404, 200)
    assert old_house.nobody.post(old_house.new_link(person.name), {"new": "x"}).status == 200


@pytest.mark.requirement("links", kind="error")
def test_codes_that_are_none(house):
    """A code that nobody has is not there, and leaves everything as it is."""
    link = house.new_link("anna")
    for wrong in ("/reset/000000", link[:-1], link + "a", link.upper() + "!", "/reset/%00", "/reset/%25"):
        assert house.nobody.post(wrong, {"new": "x"}).status == 404
    assert house.nobody.post(link, {"new": 7}).status == 400
    assert house.nobody.post("/reset", {"name": "nobody at all"}).value == {}
    assert house.login("anna").status == 200
