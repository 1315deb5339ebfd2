"""The report of a year."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from records import Records, in_order, load, table


def rows(*observations):
    """A table of (moment, object, magnitude)."""
    return table(*("|".join(each) for each in observations), columns="ut object mag")


@pytest.mark.requirement("report", kind="core")
def test_year(almanac):
    """Objects in plain character order, with how often they were seen in a year's nights, and what was measured."""
    content = rows(
        ("2012-05-01T20:00", "T CrB", "10.0"),
        ("2012-05-01T20:01", "T CrB", "10.8"),
        ("2012-05-01T20:02", "T CrB", "<12.5"),
        ("2013-01-01T05:00", "T CrB", "10.1"),
        ("2012-01-01T05:00", "T CrB", "1"),
        ("2012-05-01T20:03", "χ Cyg", "9:"),
        ("2012-05-01T20:04", "a long name of a star", "9.9"),
        ("2013-01-01T20:00", "T CrB", "2"),
        ("2012-05-01T20:05", "R Leo", ""),
        ("2012-05-01T20:06", "R Leo", "abc"),
    )
    _, printed, nothing = almanac.prints("import a.tsv", "report 2012", "report 2010", files={"a.tsv": content})
    assert printed == (
        "R Leo: 2 observations\n"
        "T CrB: 4 observations, brightest 10.0, faintest 10.8, mean 10.30\n"
        "a long name of a star: 1 observations, brightest 9.9, faintest 9.9, mean 9.90\n"
        "χ Cyg: 1 observations\n"
    )
    assert nothing == ""


@pytest.mark.requirement("report-numbers", kind="boundary")
def test_numbers(almanac):
    """Less is brighter, also below zero; halves go away from zero; only mere numbers are measured."""
    cases = {
        "a": (["-1.4", "0.0", "9.8", "10.2"], "brightest -1.4, faintest 10.2, mean 4.65"),
        "b": (["1.00", "1.01"], "brightest 1.00, faintest 1.01, mean 1.01"),
        "c": (["-1.00", "-1.01"], "brightest -1.01, faintest -1.00, mean -1.01"),
        "d": (
            ["14.", "+14", "14.0", "13,9", ".5", "1.5.", "5 6", "1e1", "-", "14.x"],
            "brightest 14., faintest 14., mean 14.00",
        ),
        "e": (["1", "1", "2"], "brightest 1, faintest 2, mean 1.33"),
        "f": (["2.675", "2.675"], "brightest 2.675, faintest 2.675, mean 2.68"),
    }
    content = rows(
        *(
            (f"2012-05-01T20:{minute:02}", name, text)
            for name, (texts, _) in cases.items()
            for minute, text in enumerate(texts)
        )
    )
    lines = [f"{name}: {len(texts)} observations, {numbers}" for name, (texts, numbers) in cases.items()]
    assert almanac.prints("import a.tsv", "report 2012", files={"a.tsv": content})[1].splitlines() == lines


@pytest.mark.requirement("report-hidden", kind="integration")
def test_hidden_ones(almanac):
    """Hidden observations are not in the report."""
    files = {
        name: table(f"1|2012-05-01T20:00|x|{magnitude}", columns="id ut object mag")
        for name, magnitude in (("a.tsv", "5"), ("b.tsv", "6"))
    }
    _, _, report = almanac.prints(load(files), "prefer 1 2012-05-01 b.tsv", "report 2012", files=files)
    assert report == "x: 1 observations, brightest 6, faintest 6, mean 6.00\n"


@pytest.mark.requirement("report", kind="integration")
def test_many_observations(almanac):
    """Of many observations the report of a year is what they come to."""
    records = Records(81, wild=True, count=25)
    objects = {}
    for each in in_order(records.seen):
        if each.night.startswith("2012"):
            objects.setdefault(each.name, []).append(each.magnitude)
    expected = []
    for name, magnitudes in sorted(objects.items()):
        measured = [text for text in magnitudes if text and not text.startswith("<")]
        text = f"{name}: {len(magnitudes)} observations"
        if measured:
            mean = (sum(map(Decimal, measured)) / len(measured)).quantize(Decimal("0.01"), ROUND_HALF_UP)
            text += f", brightest {min(measured, key=Decimal)}, faintest {max(measured, key=Decimal)}, mean {mean}"
        expected.append(text)
    assert almanac.prints(load(records.files), "report 2012", files=records.files)[1].splitlines() == expected


@pytest.mark.requirement("report", kind="error")
def test_wrong_calls(almanac):
    """A year has four digits; without a database it is as with the others."""
    files = {"a.tsv": rows(("2012-05-01T20:00", "T CrB", "10.0"))}
    wrong = ["report 12", "report 2012 2013", "report 20x2"]
    missing, _, *calls = almanac.answers("report 2012", "import a.tsv", *wrong, files=files)
    assert missing == (1, "", "error: no almanac.db\n")
    assert [call[:2] for call in calls] == [(2, "")] * 3
