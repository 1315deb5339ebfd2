"""What is said of sheets that are wrong."""

import pytest
from answers import complains


def refused(sheets, status):
    return {text: f"error {status}: {message}" for text, message in sheets.items()}


def same(sheets):
    """Sheets by themselves."""
    return {text: text for text in sheets}


@pytest.mark.requirement("sheet-syntax", kind="error")
def test_lines_and_columns(inside, said):
    """Errors have the line, and the column from the beginning of the line."""
    sheets = {
        "a = 1\n\n  b = 2 +\n": "3:10: unexpected end",
        "# a\na = $\n": "2:5: bad character '$'",
        "a = 1\n = 2\n": "2:2: unexpected '='",
        "a 1\n": "1:3: unexpected '1'",
        "a\n": "1:2: unexpected end",
        "a = f(1) # no comment\ndef f(x) = x": "1:10: bad character '#'",
        "def = 3\n": "1:5: unexpected '='",
        "def f(a,) = 1\n": "1:9: unexpected ')'",
        "def f(1) = 1\n": "1:7: unexpected '1'",
        "def f = 1\n": "1:7: unexpected '='",
        "a = g(1)\n": "1:5: unknown function 'g'",
        "a = f(1, 2)\ndef f(x) = x\n": "1:5: wrong number of arguments for f",
        "a = 1\nb = 3 + f(1)\ndef f() = a\n": "2:9: wrong number of arguments for f",
    }
    assert said("sheet", same(sheets)) == refused(sheets, 2)
    assert inside("sheet", "a.sheet", a_sheet="a = 1\n b = (") == complains(2, "2:7: unexpected end")


@pytest.mark.requirement("duplicate", kind="error")
def test_duplicates(said):
    """A name that is there already is reported where it is there again."""
    sheets = {
        "a = 1\nb = 2\n  a = 3\n": "3:3: duplicate 'a'",
        "def f() = 1\ndef f(x) = 2\n": "2:5: duplicate 'f'",
        "def f(a, b, a) = 1\n": "1:13: duplicate 'a'",
        "def MIN(a) = a\n": "1:5: duplicate 'MIN'",
        "def IF(a) = a\n": "1:5: duplicate 'IF'",
    }
    assert said("sheet", same(sheets)) == refused(sheets, 2)


@pytest.mark.requirement("sheet-syntax", kind="boundary")
def test_the_first_error(said):
    """Of several errors the first from top to bottom and from left to right is reported, before any value."""
    sheets = {
        "a = 1 / 0\nb = 2 )\nb = 1\n": "2:7: unexpected ')'",
        "a = g(1)\na = 2\n": "1:5: unknown function 'g'",
        "a = 1\na = 2 )\n": "2:1: duplicate 'a'",
        "def f(a, a $\n": "1:10: duplicate 'a'",
    }
    assert said("sheet", same(sheets)) == refused(sheets, 2)


@pytest.mark.requirement("cell-errors", kind="error")
def test_what_cannot_be_computed(inside, said):
    """The cell is named in whose formula, or in whose calls, it happens, and nothing is printed."""
    sheets = {
        "fine = 1\na = 2 * missing\n": "a: unknown name 'missing'",
        "a = b\nb = f(0)\ndef f(x) = x + gone\n": "b: unknown name 'gone'",
        "a = f(1)\ndef f(x) = b * x\nb = c\nc = none\n": "c: unknown name 'none'",
    }
    assert said("sheet", same(sheets)) == refused(sheets, 3)
    assert inside("sheet", "a.sheet", a_sheet="a = 1\nb = 1\nc = d") == complains(3, "c: unknown name 'd'")


@pytest.mark.requirement("circular", kind="error")
def test_circles(said):
    """A cell that is needed while it is computed is circular, also by way of a definition."""
    sheets = {
        "a = a + 1\n": "a: circular",
        "x = 1\na = b\nb = c\nc = b\n": "b: circular",
        "a = f(1)\ndef f(x) = a + x\n": "a: circular",
    }
    assert said("sheet", same(sheets)) == refused(sheets, 3)


@pytest.mark.requirement("circular", kind="boundary")
def test_no_circle_where_it_is_not_needed(inside):
    """Cells that name each other in branches that are not computed, or on the command line, are none."""
    text = "a = IF(way, 1, b)\nb = IF(way, a, 2)\n"
    lines = ["sheet a.sheet way=1", "sheet a.sheet way=0", "sheet b.sheet b=3"]
    answers = inside.each(*lines, a_sheet=text, b_sheet="a = b\nb = a\n")
    assert answers == [(0, f"a = {value}\nb = {value}\n", "") for value in (1, 2, 3)]
