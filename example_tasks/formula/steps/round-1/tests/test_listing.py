"""The listing of a formula's code."""

import pytest
from answers import prints
from model import samples


@pytest.mark.requirement("listing", kind="core")
def test_listing(formula):
    """The listing has offsets in bytes, operands before operators, and numbers as they are printed."""
    listed = {
        "list '(net + 1.50) * --0.0 / 010'": prints(
            "0000 LOAD net",
            "0003 PUSH 1.5",
            "0006 ADD",
            "0007 PUSH 0",
            "0010 NEG",
            "0011 NEG",
            "0012 MUL",
            "0013 PUSH 10",
            "0016 DIV",
            "0017 RET",
        )
    }
    assert formula.answers(listed) == listed


@pytest.mark.requirement("listing", kind="boundary")
def test_nothing_is_computed_beforehand(inside):
    """Constants are not folded, and names that have no value can be listed."""
    assert inside("list", "2 + 3 - x") == prints(
        "0000 PUSH 2", "0003 PUSH 3", "0006 ADD", "0007 LOAD x", "0010 SUB", "0011 RET"
    )


@pytest.mark.requirement("listing", kind="integration")
def test_random_listings(library):
    """Three hundred formulas have the instructions that their trees ask for."""
    cases = list(samples(2, 300, ["+", "-", "*", "/"]))
    assert library(*(["listing", text] for text, _, _, _ in cases)) == [listing for _, _, _, listing in cases]
