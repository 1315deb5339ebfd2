"""Formats of cells."""

import pytest
from answers import complains, prints


def sheet(*cells):
    return "".join(f"{cell}\n" for cell in cells)


@pytest.mark.requirement("format", kind="core")
def test_formats(inside):
    """A value has the places of its format, rounded, with commas and a percent sign where asked."""
    text = sheet(
        "total [#,##0.00] = 1234567.891",
        "share [0.0%] = 0.1925 + 0.0001",
        "a [0] = 7.4",
        "b [0.000000] = 1 / 3",
        "c [#,##0] = 999.6",
        "d [#,##0] = 999",
        "e [0.00] = 1000000",
        "f [#,##0.0%] = 123.4567",
        "g [0%] = -0.25",
        "h [#,##0.00] = -123456.005 - 0.001",
        "i [0.0]=5",
    )
    assert inside("sheet", "a.sheet", a_sheet=text) == prints(
        "total = 1,234,567.89",
        "share = 19.3%",
        "a = 7",
        "b = 0.333333",
        "c = 1,000",
        "d = 999",
        "e = 1000000.00",
        "f = 12,345.7%",
        "g = -25%",
        "h = -123,456.01",
        "i = 5.0",
    )


@pytest.mark.requirement("format-halves", kind="boundary", retired="round-6")
def test_halves_in_formats(inside):
    """A half goes away from zero in a format, too."""
    text = sheet("a [0] = 2.5", "b [0.0] = -0.25", "c [0.0%] = 0.1925", "half [0] = 1234567 / 2")
    assert inside("sheet", "a.sheet", a_sheet=text) == prints("a = 3", "b = -0.3", "c = 19.3%", "half = 617284")


@pytest.mark.requirement("format-minus", kind="boundary", retired="round-7")
def test_minus_before_zeros(inside):
    """A negative value has its minus sign, also before zeros."""
    assert inside("sheet", "a.sheet", a_sheet="loss [0.00] = 0 - 0.001\nb [0%] = -0.001\n") == prints(
        "loss = -0.00", "b = -0%"
    )


@pytest.mark.requirement("format", kind="boundary")
def test_only_what_is_printed_is_rounded(inside):
    """Other cells have the value as it is, and a number of the command line has the cell's format."""
    text = sheet("a [0] = 1.4", "b = a * 3", "c [0.00] = gone")
    assert inside("sheet", "a.sheet", "c=-7", a_sheet=text) == prints("a = 1", "b = 4.2", "c = -7.00")


@pytest.mark.requirement("format", kind="error")
def test_bad_formats(inside, said):
    """What is no format is reported at its bracket, as it stands there, and a bracket that is not closed as the end."""
    expected = {
        "a [0.] = 1": "1:3: bad format '0.'",
        "a[] = 1": "1:2: bad format ''",
        "  a  [ 0 ] = 1": "1:6: bad format ' 0 '",
        "a [0.0000000] = 1": "1:3: bad format '0.0000000'",
        "a [#,#0] = 1": "1:3: bad format '#,#0'",
        "a [00] $": "1:3: bad format '00'",
        "a [0%%] = 1": "1:3: bad format '0%%'",
        "a [0 = 1": "1:9: unexpected end",
        "a [0] 1": "1:7: unexpected '1'",
        "a = [0]": "1:5: bad character '['",
        "def f(x) [0] = x": "1:10: bad character '['",
        "a [0] [0] = 1": "1:7: bad character '['",
    }
    answers = said("sheet", {line: f"{line}\n" for line in expected})
    assert answers == {line: f"error 2: {message}" for line, message in expected.items()}
    assert inside("sheet", "a.sheet", a_sheet="a = 1\nb[.0] = 1") == complains(2, "2:2: bad format '.0'")


@pytest.mark.requirement("format-listing", kind="core")
def test_listing_of_formats(formula):
    """The listing has the format behind the cell's name."""
    assert formula("list", "--sheet", "a.sheet", a_sheet="a [#,##0.0%]=b\nb=1") == prints(
        "cell a [#,##0.0%]:", "0000 LOAD b", "0003 RET", "cell b:", "0000 PUSH 1", "0003 RET"
    )
