"""Comparisons and powers."""

import pytest
from answers import complains, prints
from model import COMPARISONS, samples


@pytest.mark.requirement("comparison", kind="core")
def test_comparisons(library):
    """Each comparison is 1 where it holds and 0 where it does not, for less, equal and greater."""
    calls = [["evaluate", f"{left} {mark} 2.5"] for mark in COMPARISONS for left in ("2", "2.50", "3")]
    assert "".join(library(*calls)) == "010101" + "100" + "110" + "001" + "011"


@pytest.mark.requirement("comparison", kind="boundary")
def test_comparisons_come_last(inside):
    """A comparison has sums on both sides."""
    assert inside("eval", "1 + 2 * 2 >= -5 + 10 - 1") == prints("1")


@pytest.mark.requirement("comparison", kind="error")
def test_comparisons_do_not_chain(values):
    """There is one comparison in a formula that has no parentheses, and its sign is one token."""
    texts = {
        "1 < 2 < 3": "error 2: 7: unexpected '<'",
        "1 < = 2": "error 2: 5: unexpected '='",
        "1 =< 2": "error 2: 4: unexpected '<'",
    }
    assert values(texts) == texts


@pytest.mark.requirement("power-order", kind="core", retired="round-5")
def test_power_as_in_spreadsheets(values):
    """A minus sign binds tighter than a power, and powers go from left to right."""
    texts = {
        "-2 ^ 2": "4",
        "2 ^ 3 ^ 2": "64",
        "0 - 2 ^ 2 * 3": "-12",
        "-3 ^ 2 ^ 2": "81",
    }
    assert values(texts) == texts


@pytest.mark.requirement("power-order", kind="integration", retired="round-5")
def test_random_powers_as_in_spreadsheets(library):
    """Two hundred formulas with powers have values and listings of the spreadsheet's order."""
    cases = list(samples(3, 200, ["+", "*", "^", "^", "<"]))
    calls = [call for text, values, _, _ in cases for call in (["evaluate", text, values], ["listing", text])]
    assert library(*calls) == [each for _, _, value, listing in cases for each in (value, listing)]


@pytest.mark.requirement("power", kind="core")
def test_powers(values):
    """A power binds tighter than a product, and is exact up to the one rounding at its end."""
    texts = {
        "2 ^ 10": "1024",
        "1.1 ^ 3": "1.331",
        "0 ^ 0": "1",
        "(-1.5) ^ 3": "-3.375",
        "3 * 2 ^ 2": "12",
        "1.01 ^ 100": "2.704814",
        "0.001 ^ 3 * 1000": "0",
    }
    assert values(texts) == texts


@pytest.mark.requirement("exponent", kind="error", retired="round-8")
def test_bad_exponents(inside, values):
    """An exponent that is not a whole number from 0 to 100 ends with status 3."""
    assert inside("eval", "2 ^ 0.5") == complains(3, "bad exponent")
    assert set(values(["2 ^ 101", "2 ^ (0 - 1)", "1 ^ 100.000001"]).values()) == {"error 3: bad exponent"}
