"""`object` and `nights` print what the old scripts print."""

import pytest
from records import Records, card, cards, load, log, table
from scripts import script, starter_files
from steps import take_over

FILES = {
    "a.crd": cards(
        card("0001", "120503", "2210", "T CrB", "HJK", "10.2", "20", "  first"),
        "+  second  ",
        "+third",
        "* comment",
        "+ lost",
        card("0002", "120503", "0110", "T CrBx", "HA", "9", "1"),
        card("0003", "120503", "0120", "T CrB", "HA", "9", "1").replace(" HA", "xHA"),  # Between two columns.
        "+",
        "+ on an empty note",
    ),
    "b.log": log(
        "0004;12.05.2003;22:10; T CrB;HA;9;1; one; two ;",
        "0005;12.05.2003;22:11;T  CrB;HA;9;1;",
        "0006;12.05.2003;22:12;T CrB;HA;9;1;a\\",
        " b\\",
        "c",
    ),
    "c.tsv": table(
        "0007|2003-05-13T01:15|T CrB|HA|9|1| x ", "| y ", "", "|z", "0008|2003-05-13T01:16|T CrB|HA|9|1|", "|w|v"
    ),
}


@pytest.mark.requirement("object", kind="core")
def test_object(almanac):
    """The observations of an object, each with its note, however many lines that has."""
    _, printed, other = almanac.prints(load(FILES), "object 'T CrB'", "object 'T  CrB'", files=FILES)
    assert printed == (
        "2003-05-12 22:10 HJK  10.2   1200s 0001\n"
        "    first second third\n"
        "2003-05-12 22:10 HA      9     60s 0004\n"
        "    one; two ;\n"
        "2003-05-12 22:12 HA      9     60s 0006\n"
        "    a bc\n"
        "2003-05-12 01:15 HA      9      1s 0007\n"
        "    x y\n"
        "2003-05-12 01:16 HA      9      1s 0008\n"
        "     w v\n"
        "2003-05-12 01:20 HA      9     60s 0003\n"
        "      on an empty note\n"
    )
    assert printed == script("object", FILES, "T CrB")
    assert other.splitlines() == ["2003-05-12 22:11 HA      9     60s 0005"]


@pytest.mark.requirement("object", kind="boundary")
def test_object_that_nobody_has_observed(almanac):
    """An object without an observation prints nothing; part of a name, or other letters, is no name."""
    steps = ["object 't crb'", "object 'T Cr'", "object 'T CrBx'"]
    _, *nobody, printed = almanac.prints(load(FILES), *steps, files=FILES)
    assert nobody == ["", ""]
    assert printed == "2003-05-12 01:10 HA      9     60s 0002\n"


@pytest.mark.requirement("object-bytes", kind="boundary", retired="round-3")
def test_bytes_of_an_object(almanac):
    """A name is looked for by its bytes, so one of another encoding is not found, and notes stay as they are."""
    files = {
        "a.log": log("1;01.05.2006;22:10;Häufchen;HA;9;1;für \xa0Jörg"),
        "b.tsv": table("2|2012-03-01T20:15|Häufchen|HÄK|9|1|für Jörg"),
        "c.log": log("1;01.05.2006;22:10;x;HA;9;1;für \xa0Jörg\xa0 "),
    }
    _, printed, other = almanac.prints(load(files), "object Häufchen", "object x", files=files)
    assert printed == script("object", files, "Häufchen")
    assert other.encode("utf-8", "surrogateescape").splitlines()[1] == "    für \xa0Jörg\xa0".encode("latin-1")


@pytest.mark.requirement("nights", kind="core")
def test_nights(almanac):
    """Each night with how many observations it has, and what was exposed in all."""
    files = FILES | {
        "d.crd": cards(
            card("1", "110503", "0110", "x", "HA", "9", "999"),
            *[card("2", "110503", "2310", "x", "HA", "9", "999")] * 3,
        )
    }
    _, printed = almanac.prints(load(files), "nights", files=files)
    assert printed == "2003-05-11    4  239760s\n2003-05-12    8    1502s\n"
    assert printed == script("nights", files)


@pytest.mark.requirement("nights", kind="integration")
def test_many_observations(almanac):
    """However the lines of many files are mixed, objects and nights are printed as before."""
    files = Records(22).files
    _, nights, printed = almanac.prints(load(files), "nights", "object 'a long name of a star'", files=files)
    assert nights == script("nights", files)
    assert printed == script("object", files, "a long name of a star")


@pytest.mark.requirement("take-over", kind="integration", retired="round-3")
def test_the_files_of_the_user(almanac):
    """The database that the first version made has what the scripts print."""
    _, printed = almanac.prints(take_over("backups/1.db"), "object 'T CrB'")
    assert printed == script("object", starter_files(), "T CrB")
