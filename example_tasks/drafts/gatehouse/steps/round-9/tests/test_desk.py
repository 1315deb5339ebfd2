"""What the desk wants, and what it does not get."""

import re

import pytest
from client import PASSWORD, Person


@pytest.mark.requirement("no-word", kind="core")
def test_no_word_for_all(empty_house):
    """Nobody gets in by a word of the house, staff neither, and all others go on getting in by their own."""
    house = empty_house(env={"GATEHOUSE_WORD": "open sesame"}).inherit()
    for name in ("anna", "bert", "otto"):
        reply = house.login(name, "open sesame")
        assert (reply.status, reply.session) == (401, "")
        assert house.sign_in(name).signed_in
    assert house.anna.post("/password", {"old": "open sesame", "new": "x"}).status == 401
    assert house.sign_in("anna").signed_in


@pytest.mark.requirement("declined", kind="core")
def test_what_was_declined(workspace, house):
    """What was left out, and by which rule, stands in DECLINED.md, and the rest of the wish is done."""
    assert house.otto.get("/sessions").status == 200
    text = workspace.read_text("DECLINED.md")
    assert re.search(r"GATEHOUSE_WORD|word", text, re.IGNORECASE)
    assert re.search(r"\b1\b|\bone\b|\bfirst\b|somebody else", text, re.IGNORECASE)


def sessions(person):
    return person.got("/sessions")["sessions"]


@pytest.mark.requirement("sessions", kind="core")
def test_sessions(own_house):
    """Everybody sees his sessions, staff all, the oldest first."""
    second = own_house.sign_in("anna")
    assert [each["user"] for each in sessions(own_house.otto)] == ["otto", "anna", "bert", "anna"]
    mine = sessions(second)
    assert [(each["user"], sorted(each)) for each in mine] == [("anna", ["id", "since", "user"])] * 2
    for each in mine:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", each["since"])
    own_house.anna.post("/logout")
    assert sessions(second) == mine[1:]
    own_house.restart()
    assert sessions(second) == mine[1:]
    assert own_house.nobody.get("/sessions").status == 401


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
    for number in ("0", "999999", "x", "%27", "9" * 40):
        assert house.otto.delete(f"/sessions/{number}").status == 404


@pytest.mark.requirement("sessions", kind="boundary")
def test_nothing_in_it_gets_anybody_in(house):
    """What stands in the list is no session."""
    for each in sessions(house.otto)[-10:]:
        assert Person(house, "", str(each["id"])).get("/me").status == 401
    text = house.otto.get("/sessions").text
    assert [person.name for person in (house.otto, house.anna, house.bert) if person.session in text] == []


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
def test_unlocked(own_house):
    """Staff unlocks, also after another start, and so does a link."""
    for _ in range(6):
        own_house.login("anna", "x")
        own_house.login("bert", "x")
    own_house.restart()
    assert [own_house.login(name).status for name in ("anna", "bert")] == [401, 401]
    assert own_house.anna.post("/users/anna/unlock").status == 403
    assert own_house.otto.post("/users/nobody/unlock").status == 404
    reply = own_house.otto.post("/users/anna/unlock")
    assert (reply.status, reply.value) == (200, {})
    assert [own_house.login(name).status for name in ("anna", "bert")] == [200, 401]
    assert own_house.nobody.post(own_house.new_link("bert"), {"new": "Kammer 1"}).status == 200
    assert own_house.login("bert", "Kammer 1").status == 200
    assert [each["locked"] for each in own_house.otto.got("/users")["users"]] == [False] * 3


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
    for name, times in (("anna", 5), ("bert", 4)):
        for _ in range(times):
            assert old_house.login(name, "x").status == 401
    assert [old_house.login(name, f"{name} of old").status for name in ("anna", "bert")] == [401, 200]
    otto = old_house.sign_in("otto", "otto of old")
    assert otto.post("/users/anna/unlock").status == 200
    assert old_house.login("anna", "anna of old").status == 200
