"""`list` prints what the old script printed."""

import pytest
from records import Records, card, cards, listing, load, log, table
from scripts import script, starter_files


def same_as_script(almanac, files):
    """Import files and return what is listed, which is what the old script prints."""
    _, listed = almanac.prints(load(files), "list", files=files)
    assert listed == script("list", files)
    return listed


def as_script(*names):
    """Return what the old script prints for some of the files that all cases of `listed` share."""
    return script("list", {name: FILES[name] for name in names})


FILES = {}


FILES["cards.crd"] = cards(
    "* Cards, typed in",
    card("0009", "120503", "2210", "T CrB", "HJK", "10.2", "20", "a note"),
    "+ that goes on",
    card("12", "110503", "0130", "R Leo", "HA", "<9.5", ".5"),
    card("", "110503", "2359", "U Gem", "", "", ""),
    card("0014", "010150", "1200", "abcdefghijkl", "ABCDE", "123", "1"),
    "00157130503722117abcdefghijkl7ABC712.371.57between the columns there may be anything",
    "0016\t130503\t2212\tR\tLeo       \tHA \t 9.9\t  2\ttabs",
    card("*017", "130503", "2213", "a comment", "HJK", "10.2", "20"),
)


@pytest.mark.requirement("cards", kind="core")
def test_cards(listed):
    """Columns of a card, with comments, continued notes and nights that go on after midnight."""
    assert (
        listed("1950", "2003")
        == as_script("cards.crd")
        == (
            "1950-01-01 12:00 abcdefghijkl ABC  E  1    180s 0014\n"
            "2003-05-11 23:59 U Gem                       0s \n"
            "2003-05-11 01:30 R Leo        HA   <9.5     30s 12\n"
            "2003-05-12 22:10 T CrB        HJK  10.2   1200s 0009\n"
            "2003-05-13 22:11 abcdefghijkl ABC  12.3     90s 0015\n"
            "2003-05-13 22:12 R Leo        HA    9.9    120s 0016\n"
        )
    )


FILES["logs.log"] = log(
    "0001;31.12.2007;00:15; o Cet ;HA;3,4;1.5;first",
    "# exposure s",
    "0002;31.12.2007;23:50;a long name of a star;MORE;-1,25;90;with; semicolons",
    "#exposure  min",
    "0003;30.12.\\",
    "2007;21:00;R L\\",
    "eo;HA;8.8;2",
    "# exposure sec",
    "0004;30.12.2007;20:59;R Leo;HA;<13,5;3",
    "0005;30.12.2007;21:30;R Leo;HA;9.0;4;does not go on \\ ",
    "0006;30.12.2007;21:31;R Leo;HA;9.1;5",
)


@pytest.mark.requirement("logs", kind="core")
def test_logs(listed):
    """Fields of the notebook, units that change on the way, and lines that go on in the next one."""
    assert (
        listed("2007")
        == as_script("logs.log")
        == (
            "2007-12-30 20:59 R Leo        HA  <13.5    180s 0004\n"
            "2007-12-30 21:00 R Leo        HA    8.8    120s 0003\n"
            "2007-12-30 21:30 R Leo        HA    9.0    240s 0005\n"
            "2007-12-30 21:31 R Leo        HA    9.1    300s 0006\n"
            "2007-12-31 23:50 a long name  MOR -1.25     90s 0002\n"
            "2007-12-31 00:15 o Cet        HA    3.4     90s 0001\n"
        )
    )


FILES["tables.tsv"] = table(
    "3.4|2012-03-01T00:15|o Cet|0001|extra|60|HA",
    " |2012-03-01T12:00|R Leo|0002||90|HA",
    "3.6|2013-01-01T11:59|o Cet|0003||5|",
    "3.7|2011-03-01T05:00|o Cet",
    columns="mag ut object id note exp observer",
)


@pytest.mark.requirement("tables", kind="core")
def test_tables(listed):
    """Columns of a table in any order, and moments before noon that belong to the night before."""
    assert (
        listed("2011", "2012")
        == as_script("tables.tsv")
        == (
            "2011-02-28 05:00 o Cet              3.7      0s \n"
            "2012-02-29 00:15 o Cet        HA    3.4     60s 0001\n"
            "2012-03-01 12:00 R Leo        HA            90s 0002\n"
            "2012-12-31 11:59 o Cet              3.6      5s 0003\n"
        )
    )


FILES |= {
    "few.tsv": table("2014-03-01T20:15|o Cet", columns="ut object"),
    "none.tsv": table("0001|o Cet|3.4", columns="id object mag"),
    "nothing.tsv": b"",
}


@pytest.mark.requirement("tables", kind="boundary")
def test_columns_that_are_missing(listed):
    """A table may lack a column, and a table without moments has no observation."""
    assert listed("2014") == "2014-03-01 20:15 o Cet                       0s \n"


FILES |= {
    "passed.crd": cards(
        "+ nothing before",
        " 001 12050 2210 T CrB",
        "",
        card("0002", "120504", "2210", "ok", "HA", "9", "1"),
        "x",
        "+ y",
    ),
    "passed.log": log("1;1.5.2006;22:10;no;HA;9;1;", "2;01.05.2006;22:10;no;HA;9", "3;01.05.2006;22:11;ok;HA;9;1;x\\"),
    "over.log": log("4;01.05.2006;22:12;ok;HA;9;1", "5;01.05.2006;9:10;no;HA;9;1", "6; 01.05.2006;22:10;no;HA;9;1"),
    "passed.tsv": table("7|2016-03-01 20:15|no", "8|2016-03-01T20:15:00|no", "|goes on", "9|2016-03-01T20:15|ok"),
}


@pytest.mark.requirement("passed-over", kind="boundary")
def test_lines_that_are_passed_over(listed):
    """What the scripts do not take for an observation is not listed, and what goes on with it neither."""
    lines = listed("2004", "2006", "2016")
    assert lines == as_script("passed.crd", "passed.log", "over.log", "passed.tsv")
    assert [line.split()[2] for line in lines.splitlines()] == ["ok", "ok", "ok"]


FILES |= {
    "dates.crd": cards(card("0001", "310205", "2210", "T CrB", "HA", "9", "1")),
    "dates.log": log("2;45.13.2009;25:61;T CrB;HA;9;1;"),
    "dates.tsv": table("3|2013-02-30T01:00|T CrB", "4|2018-13-01T00:00|T CrB"),
}


@pytest.mark.requirement("passed-over", kind="boundary")
def test_dates_that_do_not_exist(listed):
    """Nobody looks whether a date exists: it is listed as it stands, or a night back."""
    lines = listed("2005", "2009", "2013", "2018")
    assert lines == as_script("dates.crd", "dates.log", "dates.tsv")
    assert [line[:16] for line in lines.splitlines()] == [
        "2005-02-31 22:10",
        "2009-13-45 25:61",
        "2013-02-29 01:00",
        "2018-12-31 00:00",
    ]


FILES["exposures.tsv"] = table(
    *(f"{number}|2017-03-01T20:{number}|x|HA|9|{text}" for number, text in [(10, "90 s"), (11, "ca. 90"), (12, "+5x")])
)


@pytest.mark.requirement("passed-over", kind="boundary")
def test_exposures_that_are_not_only_a_number(listed):
    """Of an exposure counts the number that it begins with, and there need not be one."""
    lines = listed("2017")
    assert lines == as_script("exposures.tsv")
    assert [line[40:47] for line in lines.splitlines()] == ["    90s", "     0s", "     5s"]


@pytest.mark.requirement("exposures", kind="boundary", retired="round-6")
def test_odd_exposures(almanac):
    """The scripts' arithmetic: 4.1 minutes are 245 seconds, and nothing behind a comma counts."""
    files = {
        "a.crd": cards(card("1", "120503", "2210", "x", "HA", "9", "4.1")),
        "b.log": log(
            "2;01.05.2006;22:10;x;HA;9;1,5;",
            "3;01.05.2006;22:11;x;HA;9;0.29",
            "# exposure s",
            "4;01.05.2006;22:12;x;HA;9;9.9",
        ),
    }
    listed = same_as_script(almanac, files).splitlines()
    assert [line[40:47] for line in listed] == ["   245s", "    60s", "    17s", "     9s"]


@pytest.mark.requirement("evenings", kind="boundary", retired="round-4")
def test_notebook_has_evenings(almanac):
    """In the notebook every date is that of the evening, in all its years."""
    content = log(
        "1;04.07.2010;00:45;SS Cyg;HA;9;1;", "2;04.07.2010;22:45;SS Cyg;HA;9;1;", "3;03.07.2010;23:45;SS Cyg;HA;9;1;"
    )
    listed = same_as_script(almanac, {"x.log": content}).splitlines()
    assert [line[:16] for line in listed] == ["2010-07-03 23:45", "2010-07-04 22:45", "2010-07-04 00:45"]


@pytest.mark.requirement("bytes", kind="core", retired="round-3")
def test_bytes(almanac):
    """Every file's letters are listed as they stand there, and columns are counted in bytes."""
    files = {
        "a.crd": cards(card("1", "120503", "2210", "Bärenhüter", "MÜL", "9", "1")),
        "b.log": log("2;01.05.2006;22:10;Häufchen \x85\xa0;ÅSÖ;9;1;"),
        "c.tsv": table("3|2012-03-01T20:15|χ Cyg|ÅSÖ|9|1", "4|2012-03-01T20:16|ΩΩΩΩΩΩ Ω|MÜL|9|1"),
    }
    listed = same_as_script(almanac, files)
    assert "ΩΩΩΩΩΩ MÜ " in listed
    assert b"H\xe4ufchen \x85\xa0  \xc5S\xd6" in listed.encode("utf-8", "surrogateescape")


@pytest.mark.requirement("mark", kind="boundary", retired="round-3")
def test_byte_order_mark(almanac):
    """Before the first column's name a byte order mark keeps that column from being found, as in the scripts."""
    content = b"\xef\xbb\xbf" + table("0001|2012-03-01T20:15|x|HA|9|1")
    assert same_as_script(almanac, {"x.tsv": content}) == "2012-03-01 20:15 x            HA      9      1s \n"


@pytest.mark.requirement("starter", kind="integration", retired="round-3")
def test_the_observatory(almanac):
    """The observatory's own files are listed to the byte as before."""
    assert "<9.5    245s 0003" in same_as_script(almanac, starter_files())


FILES["order.crd"] = cards(
    *(
        card(str(number), date, time, "x", "HA", "9", "1")
        for number, (date, time) in enumerate(
            [
                ("130502", "2200"),
                ("120502", "0200"),
                ("120502", "2200"),
                ("311299", "2200"),
                ("120502", "1159"),
                ("120502", "1200"),
                ("120502", "2200"),
                ("010100", "0000"),
                ("120502", "2200"),
            ]
        )
    )
)


@pytest.mark.requirement("order", kind="core")
def test_order(listed):
    """By night and time, after midnight behind the evening; what is of one moment in the order of its lines."""
    lines = listed("1999", "2000", "2002")
    assert lines == as_script("order.crd")
    assert [line.split()[-1] for line in lines.splitlines()] == ["3", "7", "5", "2", "6", "8", "1", "4", "0"]


@pytest.mark.requirement("order-files", kind="core", retired="round-7")
def test_order_of_files(almanac):
    """What is of one moment comes in the order in which the files first came, also when one comes once more."""
    files = {name: table(f"{name}|2012-03-01T20:15|x|HA|9|1|") for name in ("b.tsv", "c.tsv", "a.tsv")}
    changed = table("B|2012-03-01T20:15|x|HA|9|1|", "B|2012-03-01T20:15|y|HA|9|1|", "b.tsv|2012-03-01T20:15|x|HA|9|1|")
    steps = [load(files), "list", "import new/b.tsv", "list"]
    _, before, _, after = almanac.prints(*steps, files=files | {"new/b.tsv": changed})
    assert before == script("list", files)
    assert [line.split()[-1] for line in after.splitlines()] == ["B", "B", "b.tsv", "c.tsv", "a.tsv"]


@pytest.mark.requirement("list", kind="integration")
def test_many_observations(almanac):
    """However the lines of many files are mixed, they are listed as before."""
    records = Records(11)
    assert same_as_script(almanac, records.files) == listing(records.seen)
