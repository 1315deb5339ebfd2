"""Edition 6: dumps of BIBLIO 3 have another code page, and nobody knows which rows came from them."""

import re

import pytest
from library import dump

WRONG = {"Sch\u00f5fer": "J³rgen", "Simões": "M", "Sõber": "A", "M³ller": "K", "K÷hler": "Bj÷rn", "Müller": "³"}


@pytest.mark.requirement("code-page", kind="core")
def test_windows_letters(library):
    """A dump of BIBLIO 3 is read in code page 1252, and one of any other in 850, in one call, too."""
    database = library.fresh()
    files = {
        "a.dmp": dump("MEMBERS", "1|Müller € ‰|Zoë||01.01.90|ä", version="3.0", code="cp1252"),
        "b.dmp": dump("MEMBERS", "2|Müller ▀|Zoë||01.01.90|ä", version="2.3"),
        "c.dmp": dump("TITLES", "KI 1|Größe|Jürgen|1990|1", version="3.12", code="cp1252"),
        "d.dmp": dump("TITLES", "KI 2|Größe|Jürgen|1990|1", version="30.1"),
    }
    database.says("load", *files, files=files)
    assert database.query("SELECT no, name, first_name FROM member ORDER BY no") == [
        (1, "Müller € ‰", "Zoë"), (2, "Müller ▀", "Zoë"),
    ]  # fmt: skip
    assert database.query("SELECT sig, title, author FROM title ORDER BY sig") == [
        ("KI 1", "Größe", "Jürgen"), ("KI 2", "Größe", "Jürgen"),
    ]  # fmt: skip
    assert database.column("SELECT value FROM contact ORDER BY member_no") == ["ä", "ä"]


@pytest.mark.requirement("code-page", kind="error")
def test_bytes_without_meaning(library):
    """A byte that means nothing is a reject before all other reasons, in code page 1252 only."""
    database = library.fresh()
    record = b"x|A\x81\x8d\x8f\x90\x9d|\r\n"
    files = {f"{version}.dmp": f"BIBLIO {version} MEMBERS 1\r\n".encode() + record for version in ("3.0", "2.1")}
    database.says("load", *files, files=files)
    assert database.query("SELECT file, reason, encode(raw, 'hex') FROM reject ORDER BY file DESC") == [
        ("3.0.dmp", "code", record[:-2].hex()), ("2.1.dmp", "fields", record[:-2].hex()),
    ]  # fmt: skip


@pytest.mark.requirement("version", kind="core")
def test_where_a_row_is_from(library):
    """Members and titles say which version of BIBLIO has written them; for older rows nobody knows."""
    rows = "INSERT INTO member VALUES (1, 'A', NULL, NULL, '1990-01-01'); INSERT INTO title VALUES ('KI 1', 'T')"
    database = library.old(5, rows.replace("'T'", "'T', NULL, NULL, 1"))
    files = {
        "m.dmp": dump("MEMBERS", "2|B|||01.01.90|", version="1.4"),
        "t.dmp": dump("TITLES", "KI 2|B|||1", version="3.0"),
    }
    database.say("migrate", "load m.dmp t.dmp", files=files)
    assert database.query("SELECT no, version FROM member ORDER BY no") == [(1, None), (2, "1.4")]
    assert database.query("SELECT sig, version FROM title ORDER BY sig") == [("KI 1", None), ("KI 2", "3.0")]


@pytest.mark.requirement("letters-doubt", kind="core", retired="round-7")
def test_question_is_asked(workspace):
    """QUESTIONS.md has what is in doubt, the rows of BIBLIO 3, with the edition and the section."""
    questions = workspace.read_text("QUESTIONS.md")
    for word in ("BIBLIO 3|1252", r"\b5\b", r"\b6\b"):
        assert re.search(word, questions, re.IGNORECASE), f"QUESTIONS.md does not mention {word}"


def migrated(library):
    rows = ", ".join(
        f"({number}, '{name}', '{first}', NULL, '1990-01-01')" for number, (name, first) in enumerate(WRONG.items(), 1)
    )
    title = "INSERT INTO title VALUES ('KI 1', 'Gr÷▀e', 'Simões', 1990, 1), ('KI 2', 'Größe', 'õ', 1990, 1)"
    database = library.old(5, f"INSERT INTO member VALUES {rows}; {title}")
    database.says("migrate")
    return database


@pytest.mark.requirement("letters-doubt", kind="boundary", retired="round-7")
def test_nothing_is_changed_on_a_guess(library):
    """As long as nobody knows, no stored letter is changed, and the database is of this edition all the same."""
    database = migrated(library)
    assert database.columns("member")["version"] == "text"
    assert dict(database.query("SELECT name, first_name FROM member")) == WRONG
    assert database.query("SELECT title, author FROM title ORDER BY sig") == [("Gr÷▀e", "Simões"), ("Größe", "õ")]


@pytest.mark.requirement("letters-doubt", kind="boundary")
def test_right_letters_stay(library):
    """Mr. Simões and Ms. Sõber keep their names."""
    database = migrated(library)
    assert database.columns("member")["version"] == "text"
    found = database.query("SELECT name, first_name FROM member WHERE no IN (2, 3) ORDER BY no")
    assert found == [("Simões", "M"), ("Sõber", "A")]
    assert database.query("SELECT title, author FROM title WHERE sig = 'KI 2'") == [("Größe", "õ")]
