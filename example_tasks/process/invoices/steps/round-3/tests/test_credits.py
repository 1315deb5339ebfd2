"""Half cents, and what comes back."""

from decimal import Decimal

import pytest
from papers import HARBOUR, bars, invoice


@pytest.mark.requirement("half-cents", kind="core")
def test_half_a_cent(invoices):
    """Half a cent is rounded away from zero."""
    bought, returned = invoice("1 x 1.50 mop"), invoice("-1 x 1.50 mop")
    assert invoices("total", bought, returned)[1] == ["Pier 1: 1.79", "Pier 1: -1.79"]


@pytest.mark.requirement("credits", kind="core")
def test_credit_in_full(invoices):
    """What comes back has no discount, and counts neither for nor against one."""
    mixed = invoice("10 x 1.00 hook", "-5 x 1.00 hook", customer="Harbour Ltd")
    returned = invoice("-20 x 1.00 hook", customer="Harbour Ltd", number=2)
    assert invoices("total", mixed, returned)[1] == ["Harbour Ltd 1: 5.36", "Harbour Ltd 2: -23.80"]


@pytest.mark.requirement("credits", kind="boundary")
def test_no_bar(invoices):
    """A total of zero or less has no bar, whatever the others are."""
    returned = invoice("-1 x 10.00 mop")
    assert bars(invoices("chart", HARBOUR, returned)) == [(40, Decimal("104.72")), (0, Decimal("-11.9"))]
    assert bars(invoices("chart", returned)) == [(0, Decimal("-11.9"))]
