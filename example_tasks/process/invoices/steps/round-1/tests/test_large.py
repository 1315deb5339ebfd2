"""Large totals, and what is not to change."""

import re

import pytest
from papers import TUG, bars, invoice


@pytest.mark.requirement("exact", kind="core")
def test_large_total(invoices):
    """A total of seven digits is right to the cent."""
    assert invoices("total", TUG) == (0, ["Pier 1: 1234567.93"], "")


@pytest.mark.requirement("exact", kind="boundary")
def test_very_large_total(invoices):
    """So is one of fifteen."""
    assert invoices("total", invoice("100 x 1234567890123.45 sea")) == (0, ["Pier 1: 146913578924690.55"], "")


@pytest.mark.requirement("exact", kind="boundary")
def test_labels_have_six_digits(invoices):
    """The label of a large total has its first six digits; bars are as long as ever."""
    assert bars(invoices("chart", TUG)) == [(40, 1234570)]


@pytest.mark.requirement("own-tests", kind="integration")
def test_own_tests_pass(workspace):
    """The project's own tests pass, the user's among them, and in any order."""
    done = workspace.run("python3 -m unittest discover -s tests -t .")
    assert done.exit_code == 0, done.stderr
    assert re.search("Ran [1-9]", done.stderr)
