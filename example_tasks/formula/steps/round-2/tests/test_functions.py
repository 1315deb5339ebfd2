"""Functions, and IF."""

import pytest
from answers import complains, prints


@pytest.mark.requirement("functions", kind="core")
def test_functions(values):
    """MIN and MAX have up to nine arguments, ABS has one, and arguments are formulas."""
    texts = {
        "MIN(3, -1, 2)": "-1",
        "MAX(3, -1, 2 + 2)": "4",
        "MIN(9, 8, 7, 6, 5, 4, 3, 2, 1)": "1",
        "MAX(5)": "5",
        "ABS(-2.5) + ABS(2)": "4.5",
        "ABS(1 < 2)": "1",
        "MIN(MAX(1, 2), ABS(-3))": "2",
    }
    assert values(texts) == texts


@pytest.mark.requirement("functions", kind="boundary")
def test_function_names_as_values(inside):
    """Without a parenthesis behind it, the name of a function is a value's."""
    assert inside("eval", "MIN + IF (1, ABS, 2)", "MIN=3", "ABS=4") == prints("7")


@pytest.mark.requirement("round", kind="core")
def test_round(values):
    """ROUND rounds to so many places, up to all six."""
    texts = {"ROUND(2.346, 2)": "2.35", "ROUND(-2.346, 1)": "-2.3", "ROUND(7.6, 0)": "8", "ROUND(1/3, 6)": "0.333333"}
    assert values(texts) == texts


@pytest.mark.requirement("round-halves", kind="boundary", retired="round-6")
def test_round_halves_away_from_zero(values):
    """ROUND takes a half away from zero, too."""
    texts = {"ROUND(2.5, 0)": "3", "ROUND(-2.5, 0)": "-3", "ROUND(0.125, 2)": "0.13"}
    assert values(texts) == texts


@pytest.mark.requirement("digits", kind="error", retired="round-8")
def test_bad_digits(inside, values):
    """Places that are not a whole number from 0 to 6 end with status 3."""
    assert inside("eval", "ROUND(1, 7)") == complains(3, "bad digits")
    assert set(values(["ROUND(1, -1)", "ROUND(1, 0.5)", "ROUND(1, 6.000001)"]).values()) == {"error 3: bad digits"}


@pytest.mark.requirement("if", kind="core")
def test_if_computes_one_branch(values):
    """IF has the second argument for all but 0, and does not compute the other."""
    texts = {
        "IF(2 > 1, 10, missing)": "10",
        "IF(0, missing, 20)": "20",
        "IF(-0.5, 1, 2)": "1",
        "IF(0, 1, IF(1, IF(0, 2, 3), 4)) + 1": "4",
    }
    assert values(texts) == texts


@pytest.mark.requirement("functions", kind="error")
def test_bad_calls(values):
    """Functions that do not exist and wrong numbers of arguments are reported at the name."""
    texts = {
        "1 + FOO(2)": "error 2: 5: unknown function 'FOO'",
        "min(1)": "error 2: 1: unknown function 'min'",
        "toString(1)": "error 2: 1: unknown function 'toString'",
        "2 * ABS(1, 2)": "error 2: 5: wrong number of arguments for ABS",
        "MIN()": "error 2: 1: wrong number of arguments for MIN",
        "MAX()": "error 2: 1: wrong number of arguments for MAX",
        "MAX(1,2,3,4,5,6,7,8,9,10)": "error 2: 1: wrong number of arguments for MAX",
        "IF(1, 2)": "error 2: 1: wrong number of arguments for IF",
        "MIN(1,)": "error 2: 7: unexpected ')'",
        "MIN(1 2)": "error 2: 7: unexpected '2'",
    }
    assert values(texts) == texts


@pytest.mark.requirement("functions", kind="boundary")
def test_what_is_noticed_first(values):
    """A name is noticed at its opening parenthesis, a number of arguments at the closing one."""
    texts = {
        "FOO($)": "error 2: 1: unknown function 'FOO'",
        "ABS(1, 2, $)": "error 2: 11: bad character '$'",
        "ABS(1, 2": "error 2: 9: unexpected end",
        "ABS(1, 2) $": "error 2: 1: wrong number of arguments for ABS",
    }
    assert values(texts) == texts


@pytest.mark.requirement("if-listing", kind="core", retired="round-8")
def test_listing_of_if(inside):
    """IF becomes jumps to offsets, also within another IF."""
    assert inside("list", "IF(a, IF(b <> 0, 1, 2), ROUND(c, 2)) ^ 2") == prints(
        "0000 LOAD a",
        "0003 JZ 0028",
        "0006 LOAD b",
        "0009 PUSH 0",
        "0012 NE",
        "0013 JZ 0022",
        "0016 PUSH 1",
        "0019 JMP 0025",
        "0022 PUSH 2",
        "0025 JMP 0037",
        "0028 LOAD c",
        "0031 PUSH 2",
        "0034 CALL ROUND 2",
        "0037 PUSH 2",
        "0040 POW",
        "0041 RET",
    )


@pytest.mark.requirement("call-listing", kind="core")
def test_listing_of_calls(inside):
    """A call has its number of arguments, a comparison and a power are one byte each."""
    assert inside("list", "MAX(1, x, 2) >= ABS(x ^ 2)") == prints(
        "0000 PUSH 1",
        "0003 LOAD x",
        "0006 PUSH 2",
        "0009 CALL MAX 3",
        "0012 LOAD x",
        "0015 PUSH 2",
        "0018 POW",
        "0019 CALL ABS 1",
        "0022 GE",
        "0023 RET",
    )
