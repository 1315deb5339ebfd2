"""Listings in UTF-8, with columns of characters."""

import pytest
from records import Records, card, cards, load, log, table
from scripts import script
from steps import show, shown, take_over


@pytest.mark.requirement("letters", kind="core")
def test_columns(almanac):
    """Files of both encodings are listed in UTF-8, with columns as wide as ever, and cut behind a character."""
    files = {
        "a.crd": cards(card("1", "120503", "2210", "Bärenhüter", "MÜL", "9", "1")),
        "b.log": log("2;01.05.2006;22:10;Häufchen ÄÖÜäö;ÅSÖÅ;9;1;", "5;01.05.2006;22:11;Ã¤;HA;9;1"),
        "c.tsv": table("3|2012-03-01T20:15|χ Cyg|ÅSÖÅ|9|1", "4|2012-03-01T20:16|ΩΩΩΩΩΩ ΩΩΩΩΩΩ|☾|9|1"),
    }
    _, listed = almanac.prints(load(files), "list", files=files)
    assert listed == (
        "2003-05-12 22:10 Bärenhüter   MÜL     9     60s 1\n"
        "2006-05-01 22:10 Häufchen ÄÖÜ ÅSÖ     9     60s 2\n"
        "2006-05-01 22:11 Ã¤           HA      9     60s 5\n"
        "2012-03-01 20:15 χ Cyg        ÅSÖ     9      1s 3\n"
        "2012-03-01 20:16 ΩΩΩΩΩΩ ΩΩΩΩΩ ☾       9      1s 4\n"
    )


@pytest.mark.requirement("letters", kind="boundary")
def test_lines_of_another_encoding(almanac):
    """A line of a table that is no valid UTF-8 is Latin-1, and the lines beside it are not."""
    lines = [
        b"id\tut\tobject\tnote",
        "1\t2012-03-01T20:15\tχ Cyg\tMär".encode(),
        "2\t2012-03-01T20:16\tJäger\tMä".encode("latin-1"),
        b"\trz",
        "\tJuni ö".encode("latin-1"),
        "3\t2012-03-01T20:17\tJäger\t".encode(),
    ]
    files = {"a.tsv": b"\r\n".join(lines)}
    _, listed, printed = almanac.prints(load(files), "list", "object Jäger", files=files)
    assert [line[17:29] for line in listed.splitlines()] == ["χ Cyg       ", "Jäger       ", "Jäger       "]
    assert printed.splitlines()[1] == "    Mä rz Juni ö"


@pytest.mark.requirement("letters", kind="boundary")
def test_bytes_that_end_no_line(almanac):
    """Only line feeds end a line, and only blanks are taken from the ends of a field."""
    odd = "\x85x\x0by\x0cz\x1c \x85"
    files = {
        "a.log": log(f"1;01.05.2006;22:10; {odd} ;HA;9;1; \xa0n\x85\xa0 "),
        "b.tsv": table("2|2012-03-01T20:15|x|HA|9|1|\u2028\u3000\r\r"),
    }
    _, *printed = almanac.prints(load(files), "list", f"object '{odd}'", "object x", files=files)
    listed, first, second = (text.split("\n") for text in printed)
    assert listed[0][17:30] == f"{odd}    "
    assert first[1] == "    \xa0n\x85\xa0"
    assert second[1] == "    \u2028\u3000\r"


@pytest.mark.requirement("object-letters", kind="core")
def test_object_in_all_files(almanac):
    """A name is found as it is typed, in files of both encodings."""
    files = {
        "a.crd": cards(card("1", "120503", "2210", "Häufchen", "MÜL", "9", "1", "für Jörg"), "+ und Zoë"),
        "b.log": log("2;01.05.2006;22:10;Häufchen;ÅSÖ;9;1;"),
        "c.tsv": table("3|2012-03-01T20:15|Häufchen|HÄK|9|1|χ"),
    }
    _, printed = almanac.prints(load(files), "object Häufchen", files=files)
    assert printed == (
        "2003-05-12 22:10 MÜL     9     60s 1\n    für Jörg und Zoë\n2006-05-01 22:10 ÅSÖ     9     60s 2\n"
        "2012-03-01 20:15 HÄK     9      1s 3\n    χ\n"
    )


@pytest.mark.requirement("numbers", kind="core")
def test_byte_order_mark(almanac):
    """Before the first column's name a byte order mark is no part of it."""
    marked = table("0001|2012-03-01T20:15|x|HA|9|1")
    files = {"a.tsv": b"\xef\xbb\xbf" + marked, "b.tsv": b"\xef\xbb\xbf"}
    _, listed = almanac.prints(load(files), "list", files=files)
    assert [line[:17] + line[48:] for line in listed.splitlines()] == ["2012-03-01 20:15 0001"]


@pytest.mark.requirement("export", kind="integration")
def test_export_stays(almanac):
    """What is exported has the bytes of the file, its mark too, and the scripts read it as ever."""
    files = Records(31, wild=True).files | {"mark.tsv": b"\xef\xbb\xbf" + table("1|2012-03-01T20:15|x\xa0|HA|9|1")}
    scripts = ["sh", "-c", "sh /app/old/list.sh out/*"]
    _, _, exported, listed = almanac.prints(load(files), "export out", show(files), scripts, files=files)
    assert exported == shown(files)
    assert listed == script("list", files)


@pytest.mark.requirement("take-over", kind="integration")
def test_the_files_of_the_user(almanac):
    """The user's own database has its letters and the numbers of 2016 at once."""
    period = "list --from 2014-01-01 --to 2016-12-31"
    _, listed, printed = almanac.prints(take_over(), period, "object Bärenhüter")
    assert [line[17:33] + line[48:] for line in listed.splitlines()] == [
        "χ Cyg        ÅSÖ0401",
        "T CrB        MÜL0402",
        "η Aql        HA 0403",
        "Häufchen h   MÜL0404",
        "SS Cyg       HA 0501",
        "β Lyrae Sche MÜL0502",
        "SS Cyg       ÅSÖ0503",
    ]
    assert printed.splitlines()[1] == "    nicht gefunden, Karte verlegt, am nächsten Abend wiederholt; siehe 0006"
