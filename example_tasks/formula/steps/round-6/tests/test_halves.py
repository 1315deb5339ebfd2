"""A half goes to the even neighbour, but in what was saved before."""

import pytest
from answers import prints
from files import version_1


@pytest.mark.requirement("even-halves", kind="core")
def test_halves_go_to_the_even_neighbour(values):
    """Products, quotients, powers and ROUND take a half to the even neighbour, for both signs."""
    texts = {
        "0.000001 / 2": "0",
        "0.000003 / 2": "0.000002",
        "-0.000001 / 2": "0",
        "-0.000005 / 2": "-0.000002",
        "0.000003 / -2": "-0.000002",
        "0.000005 * 0.5": "0.000002",
        "0.000007 * 0.5": "0.000004",
        "0.5 ^ 7": "0.007812",
        "ROUND(2.5, 0)": "2",
        "ROUND(-3.5, 0)": "-4",
        "ROUND(0.125, 2)": "0.12",
        "ROUND(0.000015, 5)": "0.00002",
    }
    assert values(texts) == texts


@pytest.mark.requirement("even-halves", kind="boundary")
def test_what_is_no_half(values):
    """What is a little more or less than a half is rounded as it was."""
    texts = {
        "ROUND(2.500001, 0)": "3",
        "ROUND(2.499999, 0)": "2",
        "0.000001 * 0.500001": "0.000001",
    }
    assert values(texts) == texts


@pytest.mark.requirement("even-halves", kind="boundary")
def test_halves_in_formats(inside):
    """Formats take a half to the even neighbour, also behind a percent sign's hundred."""
    text = "a [0] = 2.5\nb [0.0] = -0.35\nc [0.0%] = 0.1925\nd [#,##0] = 1234569 / 2\n"
    assert inside("sheet", "a.sheet", a_sheet=text) == prints("a = 2", "b = -0.4", "c = 19.2%", "d = 617,284")


@pytest.mark.requirement("promise", kind="boundary")
def test_the_same_formula_before_and_after(inside, built):
    """A formula that was saved before the correction rounds as it did, and one that is saved now as it does."""
    instructions = "LOAD 0; PUSH 0; DIV; PUSH 1; CALL ROUND 2; RET"
    built("ROUND(x / 2, 0)")
    lines = [f"run {name} x={given}" for name in ("old.f", "made.f") for given in (5, -5, 7)]
    answers = inside.each(*lines, old_f=version_1("2 0", "x", instructions))
    assert answers == [prints(value) for value in ("3", "-3", "4", "2", "-2", "4")]
