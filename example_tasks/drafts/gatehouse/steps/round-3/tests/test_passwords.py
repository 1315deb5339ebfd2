"""Passwords: who gets in, and what lies in the database."""

import hashlib
import re

import pytest
from client import PASSWORD, old_password


@pytest.mark.requirement("no-service-word", kind="core")
def test_service_word(house):
    """Nobody gets in by what was in the program, neither by the word nor by what it was compared with."""
    for name in ("anna", "otto"):
        for words in (SERVICE_WORD, old_password(SERVICE_WORD), old_password(PASSWORD)), ("", "admin", "service"):
            assert [house.login(name, word).status for word in words] == [401] * 3
            assert house.login(name).status == 200
        assert house.anna.post("/password", {"old": SERVICE_WORD, "new": "x"}).status == 401


SERVICE_WORD = "drehkreuz-service-94"


@pytest.mark.requirement("old-passwords", kind="core")
def test_old_passwords(old_house, tmp_path):
    """A password in the old form is good for signing in, and is in the new form from then on."""
    old = {name: old_password(f"{name} of old") for name in ("otto", "anna", "bert")}
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
    anna = old_house.sign_in("anna", "anna of old")
    assert anna.post("/password", {"old": "bert of old", "new": "x"}).status == 401
    assert anna.post("/password", {"old": "anna of old", "new": "Kammer 3"}).status == 200
    assert old_house.login("anna", "anna of old").status == 401
    assert old_house.sign_in("anna", "Kammer 3").signed_in
    link = old_house.new_link("bert")
    assert anna.post(link, {"new": "Kammer 4"}).status == 200
    assert [old_house.login("bert", each).status for each in ("bert of old", "Kammer 4")] == [401, 200]
    assert old_password("bert of old") not in old_house.dump(tmp_path)


@pytest.mark.requirement("salted", kind="core")
def test_what_lies_in_the_database(own_house, tmp_path):
    """In the database is no password, none of its plain digests, and nothing that equal passwords have in common."""
    own_house.anna.post("/password", {"old": PASSWORD, "new": "Kammer 3"})
    rows = own_house.dump(tmp_path)
    for password in (PASSWORD, "Kammer 3"):
        plain = [getattr(hashlib, kind)(password.encode()).hexdigest() for kind in ("md5", "sha1", "sha256", "sha512")]
        for text in (password, password.encode().hex(), *plain):
            assert text.lower() not in rows.lower()
    words = [
        set(re.findall(r"[A-Za-z0-9+/=_-]{20,}", row))
        for row in rows.splitlines()
        if "'Bert Cohn'" in row or "'Otto Ahl'" in row
    ]
    assert len(words) == 2
    assert not words[0] & words[1]


PASSWORDS = ["", "ä" * 500, "null\x00byte", "Korridor 7b "]


@pytest.mark.requirement("salted", kind="error")
def test_other_passwords(house):
    """A password is all of what was typed, and nothing else."""
    for password in PASSWORDS:
        person = house.person()
        assert house.login(person.name, password).status == 401
        assert person.post("/password", {"old": PASSWORD, "new": f"{password}!"}).status == 200
        assert house.login(person.name, f"{password}!").status == 200
        assert house.login(person.name, "!").status == (200 if password == "" else 401)


@pytest.mark.requirement("links", kind="core", retired="round-7")
def test_links_work_again(house):
    """A link works as often as one likes, and so does each of several."""
    person = house.person()
    links = [house.new_link(person.name) for _ in range(2)]
    for number, link in enumerate([links[0], links[1], links[0]]):
        reply = house.nobody.post(link, {"new": f"Kammer {number}"})
        assert (reply.status, reply.value) == (200, {})
        assert house.login(person.name, f"Kammer {number}").status == 200


@pytest.mark.requirement("links", kind="boundary", retired="round-7")
def test_links_that_are_too_old(empty_house):
    """With no days no link works."""
    house = empty_house("--link-days 0").inherit()
    assert house.nobody.post(house.new_link("anna"), {"new": "x"}).status == 404
    assert house.login("anna").status == 200
    house.arguments = "--link-days 30"
    house.restart()
    assert house.nobody.post(house.new_link("anna"), {"new": "x"}).status == 200


@pytest.mark.requirement("links", kind="error")
def test_codes_that_are_none(house):
    """A code that nobody has is not there, and leaves everything as it is."""
    link = house.new_link("anna")
    for wrong in ("/reset/000000", link[:-1], link + "a", link.upper() + "!", "/reset/%00", "/reset/%25"):
        assert house.nobody.post(wrong, {"new": "x"}).status == 404
    assert house.nobody.post(link, {"new": 7}).status == 400
    assert house.nobody.post("/reset", {"name": "nobody at all"}).value == {}
    assert house.login("anna").status == 200
