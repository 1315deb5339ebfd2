"""Several invoices in one call."""

from decimal import Decimal

import pytest
from papers import HARBOUR, LIGHTHOUSE, TUG, bars, invoice

TOTALS = ["Harbour Ltd 1: 104.72", "Lighthouse & Sons 1: 109.48", "Pier 1: 1234567.93"]


@pytest.mark.requirement("several", kind="core")
def test_each_as_if_alone(invoices):
    """Three customers whose first invoices are added up in one call."""
    assert invoices("total", HARBOUR, LIGHTHOUSE, TUG) == (0, TOTALS, "")
    assert invoices("total", TUG, LIGHTHOUSE, HARBOUR) == (0, TOTALS[::-1], "")


@pytest.mark.requirement("several", kind="boundary")
def test_same_customer(invoices):
    """Two invoices of one customer have each its own discount, even with one number."""
    few = invoice("9 x 1.00 hook", customer="Harbour Ltd")
    assert invoices("total", HARBOUR, few)[1] == ["Harbour Ltd 1: 104.72", "Harbour Ltd 1: 10.71"]


@pytest.mark.requirement("several", kind="integration")
def test_chart_of_several(invoices):
    """Charts show them as they are, too."""
    half = invoice("1 x 44.00 mop")
    assert bars(invoices("chart", HARBOUR, half)) == [(40, Decimal("104.72")), (20, Decimal("52.36"))]
