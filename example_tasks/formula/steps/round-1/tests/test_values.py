"""What formulas are worth."""

import pytest
from answers import USAGE, complains, prints
from model import samples


@pytest.mark.requirement("arithmetic", kind="core")
def test_arithmetic(values):
    """Products go before sums, operators of one kind from left to right, and a sign belongs to what follows it."""
    texts = {
        "1 + 2 * 3": "7",
        "(1 + 2) * 3": "9",
        "10 - 4 - 3": "3",
        "24 / 4 / 2 * 3": "9",
        "2 - -3": "5",
        "--4": "4",
        "-(2 + 3) * 2": "-10",
        "\t7\t": "7",
    }
    assert values(texts) == texts


@pytest.mark.requirement("decimal", kind="core")
def test_decimals(values):
    """Numbers are exact with six places, of any size, and printed without zeros at the end."""
    texts = {
        "0.1 + 0.2": "0.3",
        "1 / 3": "0.333333",
        "-2 / 3": "-0.666667",
        "1.50 * 2.10": "3.15",
        "007.2500": "7.25",
        "123456789012345678901234567890 + 0.000001": "123456789012345678901234567890.000001",
        "0 - 0.000001": "-0.000001",
        "100": "100",
    }
    assert values(texts) == texts


@pytest.mark.requirement("zero", kind="boundary")
def test_no_negative_zero(library):
    """Zero has no sign, however it came about."""
    texts = ["-0", "0 * -5", "-(1 - 1)", "-0.000001 / 3"]
    assert library(*(["evaluate", text] for text in texts)) == ["0"] * len(texts)


@pytest.mark.requirement("halves", kind="boundary", retired="round-6")
def test_halves_go_away_from_zero(values):
    """A half in the seventh place is rounded away from zero, for both signs."""
    texts = {
        "0.000001 / 2": "0.000001",
        "-0.000001 / 2": "-0.000001",
        "0.000005 * 0.5": "0.000003",
        "0.000003 / -2": "-0.000002",
    }
    assert values(texts) == texts


@pytest.mark.requirement("arithmetic", kind="integration")
def test_the_program_does_what_the_library_does(formula):
    """The program prints the value, and for an error the message and nothing else."""
    assert formula("eval", "-2 * (net + 1 / 8)", "net=3") == prints("-6.25")
    assert formula("eval", "-2 * (3 + 1 / 8") == complains(2, "16: unexpected end")


@pytest.mark.requirement("names", kind="core")
def test_names_have_values(inside):
    """Names have the values of the command line, also negative ones, and capitals count."""
    assert inside("eval", "net * rate - Net", "net=12.50", "rate=-0.2", "Net=1") == prints("-3.5")


@pytest.mark.requirement("arithmetic", kind="integration")
def test_random_formulas(library):
    """Three hundred formulas of all operators are worth what they are worth, however they are written."""
    cases = list(samples(1, 300, ["+", "-", "*", "/"]))
    assert library(*(["evaluate", text, values] for text, values, _, _ in cases)) == [value for _, _, value, _ in cases]


@pytest.mark.requirement("usage", kind="error")
def test_usage(formula):
    """A command line that is none is answered with status 1 and the usage."""
    wrong = dict.fromkeys(["", "calc 1", "eval 1 x", "eval x x=.5", "list 1 2"], USAGE)
    assert formula.answers(wrong) == wrong


@pytest.mark.requirement("library", kind="core")
def test_library(library):
    """The library evaluates and lists as the program does, without the line's end of a value."""
    calls = [["evaluate", "a / 4", {"a": "10"}], ["evaluate", "1 + 1"], ["listing", "a"]]
    assert library(*calls) == ["2.5", "2", "0000 LOAD a\n0003 RET\n"]


@pytest.mark.requirement("library", kind="error")
def test_library_throws(library):
    """The library throws errors that have the message and the status."""
    calls = [["evaluate", "1 +"], ["listing", "1 $"], ["evaluate", "a"]]
    assert library(*calls) == [
        "error 2: 4: unexpected end",
        "error 2: 3: bad character '$'",
        "error 3: unknown name 'a'",
    ]
