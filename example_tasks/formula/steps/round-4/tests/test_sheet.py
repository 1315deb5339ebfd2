"""Sheets: cells and definitions."""

from random import Random

import pytest
from answers import USAGE, prints

SCREWS = """\
# Screws
gross = with_tax(net)
net = 12.5 * packs
def with_tax(price) = price * (1 + rate)
rate = 0.19
"""


@pytest.mark.requirement("sheet", kind="core")
def test_sheet(formula, inside):
    """Cells are printed in the sheet's order, whatever order they need one another in."""
    assert formula("sheet", "prices.sheet", "packs=2", prices_sheet=SCREWS) == prints(
        "gross = 29.75", "net = 25", "rate = 0.19"
    )
    assert inside("sheet", "prices.sheet", "packs=-3") == prints("gross = -44.625", "net = -37.5", "rate = 0.19")


@pytest.mark.requirement("sheet", kind="boundary")
def test_lines(inside):
    """Blank lines and comments are none of the sheet, blanks do not matter, and the last line may be without LF."""
    text = "\n \t\n  # x = 1 / 0 $\na=1\n\t b  =  a+1\n#\n  def  f ( )=b\nc = f ( )"
    nothing = "# nothing\n\ndef f() = 1\n"
    answers = inside.each("sheet a.sheet", "sheet b.sheet", a_sheet=text, b_sheet=nothing)
    assert answers == [prints("a = 1", "b = 2", "c = 2"), prints()]


@pytest.mark.requirement("order-of-names", kind="core")
def test_the_command_line_goes_before_cells(inside):
    """A number of the command line takes the place of a cell, whose formula is not computed."""
    text = "a = b + 1\nb = 1 / missing\nc = b\n"
    assert inside("sheet", "a.sheet", "b=-2.50", a_sheet=text) == prints("a = -1.5", "b = -2.5", "c = -2.5")


@pytest.mark.requirement("order-of-names", kind="boundary")
def test_parameters_go_before_all(inside):
    """A parameter goes before the command line and cells, in its own definition only."""
    text = "def f(a, b) = g(a) * 10 + b\ndef g(x) = a + x\na = 1\nr = f(5, a + 1)\nx = 100\n"
    assert inside("sheet", "a.sheet", "x=7", a_sheet=text) == prints("a = 1", "r = 62", "x = 7")


@pytest.mark.requirement("order-of-names", kind="boundary")
def test_a_cell_called_as_a_definition(inside):
    """A cell and a definition may have the same name, and a cell may be called as a function is."""
    text = "f = f(2)\ndef f(x) = x * MIN\nMIN = 4\ndefault = f\n"
    assert inside("sheet", "a.sheet", a_sheet=text) == prints("f = 8", "MIN = 4", "default = 8")


@pytest.mark.requirement("definitions", kind="core")
def test_definitions(inside):
    """Definitions have up to nine parameters, call one another above and below, and call themselves."""
    text = """\
nine = digits(1, 2, 3, 4, 5, 6, 7, 8, 9)
def digits(a, b, c, d, e, f, g, h, i) = sub(a, b) * 1000 + i * 10 + h + 0 * (c + d + e + f + g)
def sub(left, right) = left - right
def fact(n) = IF(n <= 1, 1, n * fact(n - 1))
big = fact(20)
def even(n) = IF(n = 0, 1, odd(n - 1))
def odd(n) = IF(n = 0, 0, even(n - 1))
parity = even(31) + 2 * odd(31)
def none() = 3
three = none() + none()
"""
    assert inside("sheet", "a.sheet", a_sheet=text) == prints(
        "nine = -902", "big = 2432902008176640000", "parity = 2", "three = 6"
    )


@pytest.mark.requirement("once", kind="boundary")
def test_a_cell_is_computed_once(inside):
    """Cells that need the one before twice are computed once each, or this would not end."""
    text = "c0 = 1\n" + "".join(f"c{n} = c{n - 1} + c{n - 1}\n" for n in range(1, 61))
    status, output, errors = inside("sheet", "a.sheet", a_sheet=text)
    assert (status, output.splitlines()[-1], errors) == (0, f"c60 = {2**60}", "")


@pytest.mark.requirement("depth", kind="boundary")
def test_ten_thousand_cells(inside):
    """Each of ten thousand cells may need the one behind it."""
    text = "".join(f"c{n} = c{n + 1} + 1\n" for n in range(9999)) + "c9999 = 1\n"
    status, output, errors = inside("sheet", "a.sheet", a_sheet=text)
    assert (status, output[:11], output[-10:], errors) == (0, "c0 = 10000\n", "c9999 = 1\n", "")


@pytest.mark.requirement("depth", kind="boundary")
def test_five_thousand_calls(inside):
    """Definitions may call one another five thousand deep."""
    text = "def sum(n) = IF(n = 0, 0, n + sum(n - 1))\na = sum(4999)\n"
    assert inside("sheet", "a.sheet", a_sheet=text) == prints("a = 12497500")


@pytest.mark.requirement("sheet", kind="integration")
def test_order_of_lines_does_not_matter(said):
    """However the lines of a sheet are shuffled, its cells have the same values."""
    lines = [
        "a = 2",
        "b = a * 3",
        "c = f(b) - a",
        "def f(x) = x + g(x, a)",
        "def g(x, y) = x * y + b",
        "d = IF(c > a, c, a)",
    ]
    values = {"a": "2", "b": "6", "c": "22", "d": "22"}
    random = Random(11)
    expected = {}
    for _ in range(40):
        random.shuffle(lines)
        cells = [line[0] for line in lines if line[1] == " "]
        expected["\n".join(lines)] = "\n".join(f"{cell} = {values[cell]}" for cell in cells)
    assert said("sheet", {text: text for text in expected}) == expected


@pytest.mark.requirement("sheet", kind="error")
def test_no_sheet(formula):
    """A sheet that cannot be read, or is not named, is a wrong command line."""
    wrong = dict.fromkeys(["sheet gone.sheet", "list --sheet gone.sheet", "sheet", "sheet a.sheet packs"], USAGE)
    assert formula.answers(wrong, a_sheet=SCREWS) == wrong


@pytest.mark.requirement("sheet-listing", kind="core")
def test_listing(formula):
    """The listing has a line before each cell and definition, and offsets that begin anew."""
    text = SCREWS + "def all() = with_tax(net + gross)\n"
    listed = {
        "list --sheet prices.sheet": prints(
            "cell gross:",
            "0000 LOAD net",
            "0003 INVOKE with_tax 1",
            "0007 RET",
            "cell net:",
            "0000 PUSH 12.5",
            "0003 LOAD packs",
            "0006 MUL",
            "0007 RET",
            "def with_tax(price):",
            "0000 ARG price",
            "0002 PUSH 1",
            "0005 LOAD rate",
            "0008 ADD",
            "0009 MUL",
            "0010 RET",
            "cell rate:",
            "0000 PUSH 0.19",
            "0003 RET",
            "def all():",
            "0000 LOAD net",
            "0003 LOAD gross",
            "0006 ADD",
            "0007 INVOKE with_tax 1",
            "0011 RET",
        )
    }
    assert formula.answers(listed, prices_sheet=text) == listed


@pytest.mark.requirement("sheet-listing", kind="boundary")
def test_listing_of_parameters(formula):
    """Parameters are separated by a comma and a blank, and are no names that are loaded."""
    listed = {
        "list --sheet a.sheet": prints(
            "def f(a, b):", "0000 ARG b", "0002 ARG a", "0004 LOAD c", "0007 DIV", "0008 SUB", "0009 RET"
        )
    }
    assert formula.answers(listed, a_sheet="def f(a,b) = b - a / c\n") == listed
