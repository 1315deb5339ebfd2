"""Powers as in mathematics."""

import pytest
from answers import complains, prints
from files import version_1
from model import samples


@pytest.mark.requirement("power-order", kind="core")
def test_powers_bind_tighter_than_signs(values):
    """A power goes before the sign in front of it, and from right to left."""
    texts = {
        "-2 ^ 2": "-4",
        "2 ^ 3 ^ 2": "512",
        "--2 ^ 2": "4",
        "(-2) ^ 2": "4",
        "0 - 2 ^ 2 * 3": "-12",
        "2 * -3 ^ 2": "-18",
        "2 ^ --3": "8",
        "2 ^ -0 * 3": "3",
        "-ABS(-3) ^ 2": "-9",
    }
    assert values(texts) == texts


@pytest.mark.requirement("power-order", kind="integration")
def test_random_powers(library):
    """Two hundred formulas with powers have values and listings of the new order."""
    cases = list(samples(4, 200, ["+", "*", "^", "^", ">="], tight_power=True))
    calls = [call for text, values, _, _ in cases for call in (["evaluate", text, values], ["listing", text])]
    assert library(*calls) == [each for _, _, value, listing in cases for each in (value, listing)]


@pytest.mark.requirement("power-order", kind="boundary")
def test_listing_of_a_sign(inside):
    """The sign comes behind the power, and that of an exponent before it."""
    assert inside.each("list '-x ^ -2'", "list '2 ^ * 3'") == [
        prints("0000 LOAD x", "0003 PUSH 2", "0006 NEG", "0007 POW", "0008 NEG", "0009 RET"),
        complains(2, "5: unexpected '*'"),
    ]


@pytest.mark.requirement("promise", kind="boundary")
def test_saved_powers_keep_their_order(inside):
    """A formula that was saved before is run as it was compiled then."""
    content = version_1("2 3", "", "PUSH 0; NEG; PUSH 0; POW; PUSH 1; POW; RET")
    assert inside("run", "old.f", old_f=content) == prints("64")


@pytest.mark.requirement("power-order", kind="boundary")
def test_powers_in_sheets(inside):
    """Sheets have the same grammar."""
    assert inside("sheet", "a.sheet", a_sheet="def f(x) = -x ^ 2 ^ 0\na = f(3)\n") == prints("a = -3")
