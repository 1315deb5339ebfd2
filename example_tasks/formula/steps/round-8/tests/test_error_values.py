"""Errors that are values."""

import pytest
from answers import complains, prints

OFFER = """\
price = cost / share
share = 0
safe = IFERROR(price, -1)
offer [0.00] = price * 1.19
"""


@pytest.mark.requirement("error-values", kind="core")
def test_errors_of_formulas(values):
    """A division by zero, a bad exponent and bad digits are values that have a place."""
    texts = {
        "1 / 0": "#DIV0 1:3",
        "0 / (2 - 2)": "#DIV0 1:3",
        "2 * (3 + 1 / -0)": "#DIV0 1:12",
        "2 ^ 0.5": "#NUM 1:3",
        "2 ^ 101": "#NUM 1:3",
        "1 + 2 ^ -1": "#NUM 1:7",
        "1 + ROUND(1, 7)": "#NUM 1:5",
        "ROUND(2, 0.5)": "#NUM 1:1",
        "ROUND(2, -1)": "#NUM 1:1",
    }
    assert values(texts) == texts


@pytest.mark.requirement("error-values", kind="core")
def test_an_error_is_a_result(formula):
    """The program prints an error value as a result, with status 0."""
    assert formula("eval", "\tx /0", "x=1") == prints("#DIV0 1:4")


@pytest.mark.requirement("passing-on", kind="core")
def test_errors_are_passed_on(values):
    """What has an error among its operands has it as its result, of several the first."""
    texts = {
        "-(1 / 0)": "#DIV0 1:5",
        "1 - 1 / 0": "#DIV0 1:7",
        "1 / 0 < 2": "#DIV0 1:3",
        "2 ^ 0.5 + 1 / 0": "#NUM 1:3",
        "1 / 0 + 2 ^ 0.5": "#DIV0 1:3",
        "1 / 0 / 0": "#DIV0 1:3",
        "(2 ^ 0.5) / 0": "#NUM 1:4",
        "(1 / 0) ^ 0": "#DIV0 1:4",
        "(1 / 0) ^ 0.5": "#DIV0 1:4",
        "ROUND(1 / 0, 9)": "#DIV0 1:9",
        "ROUND(1, 1 / 0)": "#DIV0 1:12",
        "MAX(1, 1 / 0, 2 ^ -1)": "#DIV0 1:10",
        "MIN(2 ^ -1, 1)": "#NUM 1:7",
        "ABS(1 / 0)": "#DIV0 1:7",
        "(1 / 0) * 0": "#DIV0 1:4",
        "1 / 0 = 1 / 0": "#DIV0 1:3",
    }
    assert values(texts) == texts


@pytest.mark.requirement("passing-on", kind="boundary")
def test_errors_and_if(values):
    """A condition that is an error is IF's result, and a branch that is not computed has none."""
    texts = {
        "IF(1 / 0, 1, 2)": "#DIV0 1:6",
        "IF(1 / 0, gone, gone) + 1": "#DIV0 1:6",
        "IF(1, 2, 1 / 0)": "2",
        "IF(0, 2, 1 / 0)": "#DIV0 1:12",
        "IF(IF(1 / 0, 1, 1), 2, 3)": "#DIV0 1:9",
        "10 + IF(1 / 0 = 0, 1, 2) * 2": "#DIV0 1:11",
    }
    assert values(texts) == texts


@pytest.mark.requirement("iferror", kind="core")
def test_iferror(values):
    """IFERROR has its first argument, or the second where that is an error, and computes only what it needs."""
    texts = {
        "IFERROR(1 / 0, 5)": "5",
        "IFERROR(4, gone)": "4",
        "IFERROR(0, 1)": "0",
        "1 + IFERROR(2 ^ -1 * 3, 4) * 2": "9",
        "IFERROR(1 / 0, 2 ^ -1)": "#NUM 1:18",
        "IFERROR(IFERROR(1 / 0, 1 / 0), 7)": "7",
        "IF(IFERROR(1 / 0, 0), 1, 2)": "2",
        "IFERROR(IF(1 / 0, 1, 2), 3)": "3",
    }
    assert values(texts) == texts


@pytest.mark.requirement("iferror", kind="error")
def test_iferror_is_a_function(inside, values):
    """IFERROR has two arguments, and does not hide what ends the program."""
    texts = {
        "IFERROR(1)": "error 2: 1: wrong number of arguments for IFERROR",
        "2 + IFERROR(1, 2, 3)": "error 2: 5: wrong number of arguments for IFERROR",
        "IFERROR(gone, 2)": "error 3: unknown name 'gone'",
    }
    assert values(texts) == texts
    text = "def IFERROR(a, b) = a\n"
    answers = inside.each("sheet a.sheet", "sheet b.sheet", a_sheet=text, b_sheet="a = IFERROR(b, 1)\nb = a\n")
    assert answers == [complains(2, "1:5: duplicate 'IFERROR'"), complains(3, "a: circular")]


@pytest.mark.requirement("error-places", kind="core")
def test_errors_in_sheets(inside):
    """An error has the place where it arose, in whatever cell it is printed, and formats do not matter to it."""
    assert inside.each("sheet offer.sheet cost=3", "sheet offer.sheet cost=3 share=2", offer_sheet=OFFER) == [
        prints("price = #DIV0 1:14", "share = 0", "safe = -1", "offer = #DIV0 1:14"),
        prints("price = 1.5", "share = 2", "safe = 1.5", "offer = 1.78"),
    ]


@pytest.mark.requirement("error-places", kind="boundary")
def test_errors_in_definitions(inside):
    """In a definition the place is that of its line, and a definition gets errors as arguments."""
    text = """\
a = ratio(1, 0)
# A comment

  def ratio(x, y) = x / y
b = second(1 / 0, 2)
def second(x, y) = y
c = IFERROR(square(2 ^ -1), 3)
def square(x) = x * x
d = square(a)
"""
    assert inside("sheet", "a.sheet", a_sheet=text) == prints("a = #DIV0 4:23", "b = 2", "c = 3", "d = #DIV0 4:23")


@pytest.mark.requirement("error-values", kind="boundary")
def test_what_is_no_error(values):
    """Exponents and digits at their limits are none."""
    texts = {"2 ^ 0": "1", "1 ^ 100": "1", "ROUND(1.5, 6)": "1.5", "ROUND(1.4, 0)": "1", "0 / 5": "0"}
    assert values(texts) == texts


@pytest.mark.requirement("if-listing", kind="core")
def test_listing(inside):
    """IF has a JERR to its end behind the condition, and IFERROR a JOK behind its first argument."""
    assert inside("list", "IF(a, IF(b, 1, 2), IFERROR(c ^ 2, 3)) / 2") == prints(
        "0000 LOAD a",
        "0003 JERR 0043",
        "0006 JZ 0030",
        "0009 LOAD b",
        "0012 JERR 0027",
        "0015 JZ 0024",
        "0018 PUSH 1",
        "0021 JMP 0027",
        "0024 PUSH 2",
        "0027 JMP 0043",
        "0030 LOAD c",
        "0033 PUSH 2",
        "0036 POW",
        "0037 JOK 0043",
        "0040 PUSH 3",
        "0043 PUSH 2",
        "0046 DIV",
        "0047 RET",
    )


@pytest.mark.requirement("steps", kind="boundary")
def test_steps_of_jumps(formula):
    """JERR and JOK are steps, and what they leap over is none."""
    limited = {
        "eval --steps 5 'IF(1 / 0, 1, 2)'": prints("#DIV0 1:6"),
        "eval --steps 4 'IF(1 / 0, 1, 2)'": complains(5, "step limit 4"),
        "eval --steps 3 'IFERROR(1, 2)'": prints("1"),
    }
    assert formula.answers(limited) == limited
