"""The dates of the notebook."""

import pytest
from records import log, table
from steps import take_over

LINES = [
    ("30.06.2010;23:10", "2010-06-30 23:10"),
    ("30.06.2010;00:10", "2010-06-30 00:10"),
    ("01.07.2010;00:15", "2010-06-30 00:15"),
    ("01.07.2010;11:59", "2010-06-30 11:59"),
    ("01.07.2010;12:00", "2010-07-01 12:00"),
    ("02.07.2010;00:10", "2010-07-01 00:10"),
    ("01.03.2012;05:00", "2012-02-29 05:00"),
    ("31.12.2012;05:00", "2012-12-30 05:00"),
    ("31.12.2012;21:00", "2012-12-31 21:00"),
    ("01.01.2013;05:00", "2012-12-31 05:00"),
]


@pytest.mark.requirement("moments", kind="core")
def test_dates_of_the_moment(almanac):
    """From July 2010 on a date of the notebook is that of the moment, and before that of the evening."""
    files = {"a.log": log(*(f"1;{date};x;HA;9;1" for date, _ in reversed(LINES)))}
    _, listed, nights = almanac.prints("import a.log", "list", "nights", files=files)
    assert [line[:16] for line in listed.splitlines()] == [night for _, night in LINES]
    assert nights.splitlines()[0] == "2010-06-30    4     240s"


@pytest.mark.requirement("take-over-moments", kind="integration")
def test_the_files_of_the_user(almanac):
    """What is in the user's database already is of the right night, and is exported as it was."""
    period = "list --from 2010-06-30 --to 2011-01-01"
    _, listed, _, exported = almanac.prints(take_over(), period, "export out", ["cat", "out/2010.log"])
    assert [line[:29] for line in listed.splitlines()] == [
        "2010-06-30 23:10 T CrB       ",
        "2010-06-30 01:05 R Leo       ",
        "2010-07-03 23:30 SS Cyg      ",
        "2010-07-03 00:45 SS Cyg      ",
        "2010-12-31 23:50 o Cet       ",
        "2010-12-31 00:10 o Cet       ",
    ]
    assert "0306;01.01.2011;00:10;o Cet;M\udcdcL;4,0;1.5;Prosit" in exported


@pytest.mark.requirement("moments", kind="boundary")
def test_only_the_notebook(almanac):
    """Dates of tables are what they were."""
    files = {"a.tsv": table("1|2010-07-01T00:10|x|HA|9|1|", "2|2010-06-01T00:10|x|HA|9|1|")}
    _, listed = almanac.prints("import a.tsv", "list", files=files)
    assert [line[:16] for line in listed.splitlines()] == ["2010-05-31 00:10", "2010-06-30 00:10"]
