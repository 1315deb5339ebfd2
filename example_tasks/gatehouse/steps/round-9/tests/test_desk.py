"""What the desk wants, and what it does not get."""

import re

import pytest
from client import PASSWORD, WORD, Person


@pytest.mark.requirement("no-word", kind="core")
def test_no_word_for_all(house):
    """Nobody gets in by a word of the house, staff neither, and all others go on getting in by their own."""
    for name in ("anna", "bert", "otto"):
        reply = house.login(name, WORD)
        assert (reply.status, reply.session) == (401, "")
        assert house.sign_in(name).signed_in
    assert house.anna.post("/password", {"old": WORD, "new": "x"}).status == 401
    assert house.sign_in("anna").signed_in


# Rule 1 by its number or its name, or what it says.
REASONS = r"\b1\b|\bone\b|\bfirst\b|\brules?\b|\belse\b|another|any(body|one)|every(body|one)|impersonat"


@pytest.mark.requirement("declined", kind="core")
def test_what_was_declined(workspace, house):
    """What was left out, and why, stands in DECLINED.md, and the rest of the wish is done."""
    assert house.otto.get("/sessions").status == 200
    text = workspace.read_text("DECLINED.md")
    assert re.search(r"GATEHOUSE_WORD|word", text, re.IGNORECASE)
    assert re.search(REASONS, text, re.IGNORECASE)


def sessions(person):
    return person.got("/sessions")["sessions"]


@pytest.mark.requirement("sessions", kind="core")
def test_sessions(old_house):
    """Everybody sees his sessions, staff all, the oldest first."""
    first, other = old_house.person(), old_house.person()
    names = first.name, other.name
    second = old_house.sign_in(first.name)
    users = [each["user"] for each in sessions(old_house.otto)]
    assert "otto" in users
    assert [each for each in users if each in names] == [*names, first.name]
    mine = sessions(second)
    assert [(each["user"], sorted(each)) for each in mine] == [(first.name, ["id", "since", "user"])] * 2
    for each in mine:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", each["since"])
    first.post("/logout")
    assert sessions(second) == mine[1:]
    old_house.restart()
    assert sessions(second) == mine[1:]
    assert old_house.nobody.get("/sessions").status == 401


@pytest.mark.requirement("sessions", kind="core")
def test_end_of_a_session(house):
    """Who ends a session ends this one; those of others are not there for members."""
    people = [house.person()]
    people += [house.sign_in(people[0].name) for _ in range(2)]
    numbers = [each["id"] for each in sessions(people[0])]
    assert house.bert.delete(f"/sessions/{numbers[0]}").status == 404
    reply = people[0].delete(f"/sessions/{numbers[1]}")
    assert (reply.status, reply.value) == (200, {})
    assert [each.signed_in for each in people] == [True, False, True]
    assert people[0].delete(f"/sessions/{numbers[1]}").status == 404
    assert house.otto.delete(f"/sessions/{numbers[2]}").status == 200
    assert [each.signed_in for each in (*people, house.bert)] == [True, False, False, True]
    for number in ("0", "999999", "9" * 40):
        assert house.otto.delete(f"/sessions/{number}").status == 404
    for word in ("x", "%27"):  # Which may be no request at all, where sessions have numbers.
        assert house.otto.delete(f"/sessions/{word}").status in (400, 404)


@pytest.mark.requirement("sessions", kind="boundary")
def test_nothing_in_it_gets_anybody_in(house):
    """What stands in the list of people who are signed in is no session."""
    people = [house.person(), house.person()]
    listed = sessions(house.otto)
    names = [person.name for person in people]
    assert [each["user"] for each in listed if each["user"] in names] == names
    for each in listed[-10:]:
        assert Person(house, "", str(each["id"])).get("/me").status == 401
    text = house.otto.get("/sessions").text
    everybody = [house.otto, house.anna, house.bert, *people]
    assert [person.name for person in everybody if not person.signed_in or person.session in text] == []


@pytest.mark.requirement("lock", kind="core")
def test_five_wrong_passwords(house):
    """After five wrong passwords the right one is wrong as well; who is signed in stays so."""
    person = house.person()
    wrong = [house.login(person.name, f"{number}") for number in range(5)]
    right = house.login(person.name)
    assert (right.status, right.body, right.session) == (401, wrong[0].body, "")
    assert [person.signed_in, house.login("bert").status] == [True, 200]
    locked = {each["name"]: each["locked"] for each in house.otto.got("/users")["users"]}
    assert (locked[person.name], locked["bert"]) == (True, False)


@pytest.mark.requirement("lock", kind="boundary")
def test_a_right_one_in_between(house):
    """A right password before the fifth wrong one begins the count anew."""
    person = house.person()
    for _ in range(2):
        assert [house.login(person.name, "x").status for _ in range(4)] == [401] * 4
        assert house.login(person.name).status == 200


@pytest.mark.requirement("lock", kind="core")
def test_wherever_a_password_is_tried(house):
    """Guesses at the old password count as well, together with others, and a lock holds there."""
    person = house.person()
    for _ in range(3):
        assert person.post("/password", {"old": "x", "new": "y"}).status == 401
    assert [house.login(person.name, "x").status for _ in range(2)] == [401] * 2
    assert house.login(person.name).status == 401
    assert person.post("/password", {"old": PASSWORD, "new": "y"}).status == 401
    house.otto.post(f"/users/{person.name}/unlock")
    for _ in range(4):
        assert person.post("/password", {"old": "x", "new": "y"}).status == 401
    assert person.post("/password", {"old": PASSWORD, "new": "y"}).status == 200
    assert house.login(person.name, "z").status == 401
    assert house.login(person.name, "y").status == 200


@pytest.mark.requirement("unlock", kind="core")
def test_unlocked(old_house):
    """Staff unlocks, also after another start, and so does a link."""
    people = [old_house.person(), old_house.person()]
    names = [person.name for person in people]
    for name in names * 5:
        old_house.login(name, "x")
    old_house.restart()
    assert [old_house.login(name).status for name in names] == [401, 401]
    assert people[0].post(f"/users/{names[0]}/unlock").status == 403
    assert old_house.otto.post("/users/nobody/unlock").status == 404
    reply = old_house.otto.post(f"/users/{names[0]}/unlock")
    assert (reply.status, reply.value) == (200, {})
    assert [old_house.login(name).status for name in names] == [200, 401]
    assert old_house.nobody.post(old_house.new_link(names[1]), {"new": "Kammer 1"}).status == 200
    assert old_house.login(names[1], "Kammer 1").status == 200
    users = old_house.otto.got("/users")["users"]
    assert [each["locked"] for each in users if each["name"] in names] == [False] * 2


@pytest.mark.requirement("lock", kind="integration")
def test_guesses_at_once(house):
    """Wrong passwords that come at once are all counted."""
    for _ in range(2):
        person = house.person()
        guesses = [{"name": person.name, "password": f"{number}"} for number in range(5)]
        replies = house.at_once([(house.nobody, "POST", "/login", guess) for guess in guesses])
        assert [reply.status for reply in replies] == [401] * 5
        assert house.login(person.name).status == 401


@pytest.mark.requirement("lock", kind="integration")
def test_passwords_of_old(old_house):
    """A password in the old form is locked and counted as others are."""
    for name, times in (("hugo", 5), ("jost", 4)):
        for _ in range(times):
            assert old_house.login(name, "x").status == 401
    assert [old_house.login(name, f"{name} of old").status for name in ("hugo", "jost")] == [401, 200]
    assert old_house.otto.post("/users/hugo/unlock").status == 200
    assert old_house.login("hugo", "hugo of old").status == 200
