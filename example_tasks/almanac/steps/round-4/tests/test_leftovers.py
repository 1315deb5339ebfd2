"""What the scripts passed over."""

import pytest
from records import card, cards, load, log, table
from steps import take_over

GOOD = card("1", "120503", "2210", "x", "HA", "9", "1")
FILES = {
    "a.crd": cards(
        "+ nothing before",
        "*",
        GOOD,
        "+ a note",
        "",
        "+ too late",
        "   ",
        " 0002 1205 2210 \t für ",
        GOOD,
        "* x",
        "+ also",
    ),
    "b.log": log(
        "#",
        "",
        "",
        "",
        "2;1.5.2006;22:10;für;HA;9;1;",
        " # no comment",
        "3;01.05.2006;22:10;x\\",
        ";HA\t",
        "4;01.05.2006;22:10;x;HA;9\\",
        ";1",
        "5;01.05.2006;22:10;x;HA;9;1;cut off\\",
        "in the middle\\",
    ),
    "c.tsv": "no header\r\n\nx\tχ\n# x\n".encode() + b"f\xfcr\n",
    "d.tsv": table("|before", "1|2012-03-01T20:15|x", "|note", "# comment", "|behind", "2|2012-03-01 20:15|x", "|too")
    + b"no end",
}


@pytest.mark.requirement("leftovers", kind="core")
def test_leftovers(almanac):
    """All lines that are of no observation and not meant to be none, as they are, file by file."""
    assert almanac.prints(load(FILES), "leftovers", files=FILES)[1].split("\n") == [
        "a.crd:1: + nothing before",
        "a.crd:6: + too late",
        "a.crd:8:  0002 1205 2210 \t für ",
        "a.crd:11: + also",
        "b.log:5: 2;1.5.2006;22:10;für;HA;9;1;",
        "b.log:6:  # no comment",
        "b.log:7: 3;01.05.2006;22:10;x\\",
        "b.log:8: ;HA\t",
        "b.log:11: 5;01.05.2006;22:10;x;HA;9;1;cut off\\",
        "b.log:12: in the middle\\",
        "c.tsv:3: x\tχ",
        "c.tsv:5: für",
        "d.tsv:2: \tbefore",
        "d.tsv:6: \tbehind",
        "d.tsv:7: 2\t2012-03-01 20:15\tx",
        "d.tsv:8: \ttoo",
        "d.tsv:9: no end",
        "",
    ]


@pytest.mark.requirement("leftovers", kind="integration")
def test_an_older_database(almanac):
    """They are still there in a database that the first version made."""
    assert almanac.prints(take_over("backups/1.db"), "leftovers")[1] == (
        "2003.crd:11:      Wolken bis Monatsende\n"
        "2006.log:9: 0124;5.3.2006;20:40;SS Cyg;HA;11,8;90;Datum falsch geschrieben\n"
        "2010.log:10: die Batterie der Kamera war leer\n"
        "2014.tsv:8: 0405\t2014-03-02 22:00\tT CrB\tHA\t10.1\t240\tfalsches Datum\n"
    )


@pytest.mark.requirement("leftovers", kind="error")
def test_wrong_calls(almanac):
    """Without a database, and with a word too many, it is as with the others."""
    missing, wrong = almanac.answers("leftovers", "leftovers a.crd")
    assert missing == (1, "", "error: no almanac.db\n")
    assert wrong[:2] == (2, "")
