"""What is said of formulas that are wrong."""

import pytest
from answers import complains


@pytest.mark.requirement("syntax", kind="error")
def test_unexpected(values):
    """A token that cannot stand where it stands is named with its column, and so is the end."""
    texts = {
        "1 + * 2": "error 2: 5: unexpected '*'",
        "(1 + 2": "error 2: 7: unexpected end",
        "": "error 2: 1: unexpected end",
        "1 +  ": "error 2: 6: unexpected end",
        "1 2": "error 2: 3: unexpected '2'",
        "2x": "error 2: 2: unexpected 'x'",
        "x y_1": "error 2: 3: unexpected 'y_1'",
        "1 + 2)": "error 2: 6: unexpected ')'",
        "()": "error 2: 2: unexpected ')'",
    }
    assert values(texts) == texts


@pytest.mark.requirement("tokens", kind="error")
def test_bad_tokens(values):
    """A number is all of its digits and points, and what begins no token is a bad character."""
    texts = {
        "1 + 1.2.3 * 2": "error 2: 5: bad number '1.2.3'",
        "12.": "error 2: 1: bad number '12.'",
        "1.2345678": "error 2: 1: bad number '1.2345678'",
        "1 + .5": "error 2: 5: bad character '.'",
        "x + _y": "error 2: 5: bad character '_'",
        "3 € 4": "error 2: 3: bad character '€'",
    }
    assert values(texts) == texts


@pytest.mark.requirement("first-error", kind="boundary")
def test_first_error(values):
    """Of several errors the first from left to right is reported, whatever its kind."""
    texts = {
        ") $": "error 2: 1: unexpected ')'",
        "1 $ )": "error 2: 3: bad character '$'",
        "1 + + 1.2.3": "error 2: 5: unexpected '+'",
    }
    assert values(texts) == texts


@pytest.mark.requirement("division", kind="error", retired="round-8")
def test_division_by_zero(inside, values):
    """A division by zero ends with status 3."""
    assert inside("eval", "x + 1 / (2 - 2)", "x=1") == complains(3, "division by zero")
    assert set(values(["1 / 0", "0 / 0", "1 - 2 / -0"]).values()) == {"error 3: division by zero"}


@pytest.mark.requirement("unknown-name", kind="error")
def test_unknown_names(inside):
    """A name without a value ends with status 3; the first that is needed is named, and capitals count."""
    assert inside.each("eval 'a + Rate * c' a=1 rate=2 c=1", "eval 'b + a'") == [
        complains(3, "unknown name 'Rate'"),
        complains(3, "unknown name 'b'"),
    ]


@pytest.mark.requirement("syntax", kind="boundary")
def test_syntax_goes_before_values(inside):
    """What cannot be compiled is not run, whatever its first half would give."""
    assert inside("eval", "unknown + (1") == complains(2, "13: unexpected end")


@pytest.mark.requirement("nesting", kind="boundary")
def test_nesting(library):
    """A formula may be nested a hundred deep, and thousands of characters long."""
    texts = ["(" * 100 + "1" + ")" * 100, "+".join(["1"] * 1900)]
    assert library(*(["evaluate", text] for text in texts)) == ["1", "1900"]
