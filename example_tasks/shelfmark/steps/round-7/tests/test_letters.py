"""Edition 7: the letters of BIBLIO 3 are put right where they prove themselves; the list of rejects."""

import pytest
from library import dump


def wrong(text):
    """What a text of BIBLIO 3 was read as."""
    return text.encode("cp1252").decode("cp850")


MEMBERS = {
    "umlaut-u": ((wrong("Müller"), wrong("Käthe")), ("Müller", "Käthe")),
    "umlaut-o": ((wrong("Köhler"), None), ("Köhler", None)),
    "sharp-s": ((wrong("Weiß"), wrong("Hélène")), ("Weiß", "Hélène")),
    "capital-a": ((wrong("Ähle"), "Otto"), ("Ähle", "Otto")),
    "capital-u": (("Roth", wrong("Ümit")), ("Roth", "Ümit")),
    "first-name": ((wrong("Jäger"), wrong("Björn")), ("Jäger", "Björn")),
    "no-proof": ((wrong("Schäfer"), wrong("Hélène")), (wrong("Schäfer"), wrong("Hélène"))),
    "portuguese": (("Simões", "João"), ("Simões", "João")),
    "not-in-850": (("M³ller", "Łucja"), ("M³ller", "Łucja")),
    "not-in-1252": (("M³ller", "Gülay"), ("M³ller", "Gülay")),
    "mixed": (("M³ller", "Jöns"), ("Müller", "J”ns")),
}


@pytest.mark.requirement("letters", kind="core")
@pytest.mark.parametrize("case", MEMBERS)
def test_names(library, case):
    """A member with one of the five characters is read anew in all texts, or stays where that cannot be done."""

    def make():
        rows = ", ".join(
            f"({number}, '{name}', {repr(first) if first else 'NULL'}, NULL, '1990-01-01')"
            for number, ((name, first), _) in enumerate(MEMBERS.values(), 1)
        )
        database = library.old(5, f"INSERT INTO member VALUES {rows}")
        database.says("migrate")
        found = database.query("SELECT name, first_name, version FROM member ORDER BY no")
        return dict(zip(MEMBERS, found, strict=True))

    assert library.once("letters", make)[case] == (*MEMBERS[case][1], None)


@pytest.mark.requirement("letters", kind="core")
def test_titles(library):
    """Titles and authors are put right in the same way, and nothing else of them is changed."""
    rows = (
        f"('KI 1', '{wrong('Größe')}', NULL, 1990, 2), ('KI 2', 'Mut', '{wrong('Böll, Käthe')}', NULL, 1),"
        f"('KI 3', '{wrong('Zärtlich')}', '{wrong('Ende')}', 1990, 1)"
    )
    database = library.old(4, f"INSERT INTO title VALUES {rows}")
    database.says("migrate")
    assert database.query("SELECT sig, title, author, year FROM title ORDER BY sig") == [
        ("KI 1", "Größe", None, 1990), ("KI 2", "Mut", "Böll, Käthe", None), ("KI 3", wrong("Zärtlich"), "Ende", 1990),
    ]  # fmt: skip


@pytest.mark.requirement("letters", kind="boundary")
def test_rows_of_a_known_version(library):
    """Rows that say where they came from are right, whatever is in them, and so is what is loaded from now on."""
    rows = "(1, 'M³', '▀', NULL, '1990-01-01', '3.0'), (2, 'M³', NULL, NULL, '1990-01-01', NULL)"
    title = "INSERT INTO title VALUES ('KI 1', 'x³', NULL, NULL, 1, '2.1')"
    database = library.old(6, f"INSERT INTO member VALUES {rows}; {title}")
    database.say("migrate", "load M.DMP", "migrate", files={"M.DMP": dump("MEMBERS", "3|m³|||01.01.90|")})
    found = database.query("SELECT name, first_name FROM member ORDER BY no")
    assert found == [("M³", "▀"), ("Mü", None), ("m³", None)]
    assert database.query("SELECT title FROM title") == [("x³",)]


@pytest.mark.requirement("reject-list", kind="core")
def test_rejects(library):
    """Rejects are listed by file and line, in the code page of their dump; bytes without meaning are question marks."""
    database = library.fresh()
    files = {
        "b.dmp": dump("MEMBERS", "1|Größe", "2|A|||01.01.90|", *["3|B"] * 8, "3|Jäger"),
        "a.dmp": dump("TITLES", "Ä 1|Ä|||", b"KI 1|\x81\x9d", version="3.0", code="cp1252"),
        "B.dmp": b"BIBLIO 2.1 LOANS 1\r\n\r\n x |KI 1|01.01.03|",
    }
    none, _, listed = database.say("rejects", f"load {' '.join(files)}", "rejects", files=files)
    assert none == ""
    assert listed.splitlines() == [
        "B.dmp\t3\tnumber\t x |KI 1|01.01.03|",
        "a.dmp\t2\tsig\tÄ 1|Ä|||",
        "a.dmp\t3\tcode\tKI 1|??",
        "b.dmp\t2\tfields\t1|Größe",
        *[f"b.dmp\t{line}\tfields\t3|B" for line in range(4, 12)],
        "b.dmp\t12\tfields\t3|Jäger",
    ]


@pytest.mark.requirement("reject-list", kind="integration")
def test_rejects_of_an_earlier_edition(library):
    """Rejects that edition 1 has kept are read by the header that it has kept, too."""
    rows = r"('N.DMP', 2, 'BIBLIO 3.0 MEMBERS 1', 'fields', '\x31fc'), "
    rows += r"('M.DMP', 9, 'BIBLIO 2.1 MEMBERS 1', 'date', '\x3181')"
    database = library.old(1, f"INSERT INTO reject VALUES {rows}")
    assert database.say("migrate", "rejects")[1] == "M.DMP\t9\tdate\t1ü\nN.DMP\t2\tfields\t1ü\n"


@pytest.mark.requirement("letters", kind="integration")
def test_the_registers_letters(library):
    """The members of the branch have their names in the register of the main house, as far as they prove it."""
    live = library.live()
    rows = live.query("SELECT no, name, first_name FROM member WHERE no IN (34, 35, 501, 502, 503) ORDER BY no")
    assert rows == [
        (34, "Simões", "Maria"), (35, "Sõber", "Anna"), (501, "Müller", "Björn"), (502, "Weiß", "Hélène"),
        (503, "Lange", "Jürgen"),
    ]  # fmt: skip
    # Who has loaded the disk of the branch once more knows where the row is from.
    unproved, loaded = ("Jõger", "Kõthe", None), ("Jäger", "Käthe", "3.0")
    assert live.query("SELECT name, first_name, version FROM member WHERE no = 504")[0] in (unproved, loaded)
