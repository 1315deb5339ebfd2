"""Single cells."""

import pytest
from answers import complains, is_usage, prints
from files import version_1

PRICES = """\
bad = gone
total [#,##0.00] = net * packs
net = 1250.5
packs = 2
never = f(1)
def f(x) = f(x)
"""


@pytest.mark.requirement("cell", kind="core")
def test_a_cell(formula):
    """Only the value of the cell is printed, in its format, and only what it needs is computed."""
    lines = [f"sheet --cell {cell} prices.sheet" for cell in ("total", "net", "bad")]
    assert formula.each(*lines, prices_sheet=PRICES) == [
        prints("2,501.00"),
        prints("1250.5"),
        complains(3, "bad: unknown name 'gone'"),
    ]


@pytest.mark.requirement("cell", kind="core")
def test_a_cell_of_a_saved_sheet(formula, built):
    """A saved sheet has the option as well."""
    built("--sheet", "prices.sheet", prices_sheet=PRICES)
    assert formula("run", "--cell", "total", "made.f", "packs=-1") == prints("-1,250.50")


@pytest.mark.requirement("cell", kind="boundary")
def test_a_cell_of_the_command_line(formula):
    """A number of the command line takes the cell's place, in its format."""
    lines = ["sheet --cell total prices.sheet total=1000", "sheet --cell bad prices.sheet gone=3"]
    assert formula.each(*lines, prices_sheet=PRICES) == [prints("1,000.00"), prints("3")]


@pytest.mark.requirement("cell-steps", kind="boundary")
def test_steps_of_a_cell(formula):
    """Only the steps of what the cell needs count, and the options come in any order."""
    # total: LOAD LOAD MUL RET; net: PUSH RET; packs: PUSH RET.
    options = ["--cell total --steps 8", "--steps 7 --cell total", "--cell never"]
    assert formula.each(*(f"sheet {each} a.sheet" for each in options), a_sheet=PRICES) == [
        prints("2,501.00"),
        complains(5, "step limit 7"),
        complains(5, "step limit 100000"),
    ]


@pytest.mark.requirement("cell", kind="error")
def test_no_such_cell(formula):
    """A definition, a name of the command line and a formula are no cells."""
    content = version_1("", "x", "LOAD 0; RET")
    lines = ["sheet --cell f a.sheet", "sheet --cell gone a.sheet gone=1", "run --cell x old.f x=1"]
    answers = formula.each(*lines, a_sheet=PRICES, old_f=content)
    assert answers == [complains(3, f"no cell '{name}'") for name in ("f", "gone", "x")]


@pytest.mark.requirement("cell", kind="error")
def test_bad_options(formula):
    """What is no NAME is a wrong command line, and so is an option without what it is for."""
    words = ["--cell 2x a.sheet", "--cell a=1 a.sheet", "--cell total", "a.sheet --cell total", "--cell"]
    answers = formula.each(*(f"sheet {each}" for each in words), a_sheet=PRICES)
    assert [is_usage(answer) for answer in answers] == [True] * 5


@pytest.mark.requirement("cell", kind="boundary")
def test_an_error_value_of_a_cell(formula):
    """The value may be an error value."""
    assert formula("sheet", "--cell", "b", "a.sheet", a_sheet="a = 1 / 0\nb [0.0] = a\n") == prints("#DIV0 1:7")
