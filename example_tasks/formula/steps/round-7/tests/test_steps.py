"""The limit of steps."""

import pytest
from answers import USAGE, complains, prints
from files import version_1

ENDLESS = "a = f(1)\ndef f(n) = f(n + 1)\n"
SUM = "def sum(n) = IF(n = 0, 0, n + sum(n - 1))\na = sum(deep)\n"


@pytest.mark.requirement("steps", kind="core")
def test_steps_of_a_formula(formula):
    """Every instruction is a step, RET too, and the limit itself is allowed."""
    assert formula("eval", "--steps", "4", "1 + 2") == prints("3")
    limited = {"eval --steps 3 '1 + 2'": complains(5, "step limit 3"), "eval --steps 2 x x=5": prints("5")}
    assert formula.answers(limited) == limited


@pytest.mark.requirement("steps", kind="boundary")
def test_steps_of_a_sheet(formula):
    """The steps of all cells and calls count together, and no cell is printed before the limit."""
    text = "a = 1\nb = f(c) + c\nc = 2\ndef f(x) = -x\nd = 3\n"
    # a: PUSH RET; b: LOAD INVOKE LOAD ADD RET; f: ARG NEG RET; c: PUSH RET, once; d: PUSH RET.
    limited = {
        "sheet --steps 14 a.sheet": prints("a = 1", "b = 0", "c = 2", "d = 3"),
        "sheet --steps 13 a.sheet": complains(5, "step limit 13"),
        "sheet --steps 10 a.sheet c=0 d=0": prints("a = 1", "b = 0", "c = 0", "d = 0"),
        "sheet --steps 9 a.sheet c=0 d=0": complains(5, "step limit 9"),
    }
    assert formula.answers(limited, a_sheet=text) == limited


@pytest.mark.requirement("steps", kind="core")
def test_what_never_ends(inside, built):
    """A hundred thousand steps are the limit that nobody has given."""
    built("--sheet", "a.sheet", a_sheet=ENDLESS)
    assert inside.each("sheet a.sheet", "run made.f") == [complains(5, "step limit 100000")] * 2


@pytest.mark.requirement("steps-depth", kind="boundary")
def test_only_the_steps_are_a_limit(formula):
    """However many steps are allowed, they may go as deep as they like, to the limit or to the value."""
    assert formula("sheet", "--steps", "400000", "a.sheet", a_sheet=ENDLESS) == complains(5, "step limit 400000")
    assert formula("sheet", "--steps", "1000000", "b.sheet", "deep=30000", b_sheet=SUM) == prints("a = 450015000")


@pytest.mark.requirement("steps", kind="core")
def test_steps_of_saved_files(formula):
    """Files of version 1 have the limit, too."""
    content = version_1("1 2", "x", "LOAD 0; JZ 12; PUSH 0; JMP 15; PUSH 1; RET")
    limited = {"run --steps 4 old.f x=0": prints("2"), "run --steps 3 old.f x=0": complains(5, "step limit 3")}
    assert formula.answers(limited, old_f=content) == limited


@pytest.mark.requirement("steps", kind="boundary")
def test_errors_before_the_limit(formula):
    """An error that comes before the limit is that error, and what cannot be compiled has no steps."""
    limited = {
        "eval --steps 1 'gone + 1'": complains(3, "unknown name 'gone'"),
        "eval --steps 1 '1 +'": complains(2, "4: unexpected end"),
    }
    assert formula.answers(limited) == limited


@pytest.mark.requirement("steps", kind="error")
def test_bad_limits(formula):
    """A limit is a whole number from 1 to a million, directly behind the command."""
    words = ["--steps 0 1", "--steps 1000001 1", "--steps 2.5 1", "--steps 5", "1 --steps 5"]
    wrong = dict.fromkeys((f"eval {each}" for each in words), USAGE)
    assert formula.answers(wrong) == wrong
