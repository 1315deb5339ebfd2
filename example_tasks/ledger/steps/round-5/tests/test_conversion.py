"""`balance --in`: everything in one currency."""

import pytest
from answers import prints
from journals import BOOKS, holding, priced


@pytest.mark.requirement("conversion", kind="core")
def test_one_currency(ledger):
    """Everything in one currency, one line per account, by the latest price."""
    journal = priced("2024-03-01 USD 0.92 EUR", "2024-03-08 USD 0.955 EUR")
    assert ledger("balance travel.journal --in EUR", travel=journal) == prints("""\
    409.43 EUR  Assets:Cash
     25.00 EUR  Assets:Loans
   (25.00 EUR)  Assets:Piggy bank
  (491.00 EUR)  Equity:Opening
     17.57 EUR  Expenses:Food
     64.00 EUR  Expenses:Transport
--------------
      0.00 EUR
""")


@pytest.mark.requirement("rounding", kind="core", retired="round-6")
def test_half_away_from_zero(ledger):
    """A half cent is rounded away from zero."""
    journal = holding("Assets:Cash", "4.69 USD") + "P 2024-01-01 USD 0.5 EUR\n"
    assert ledger("balance travel.journal --in EUR", travel=journal) == prints("""\
      2.35 EUR  Assets:Cash
    (2.35 EUR)  Equity
--------------
      0.00 EUR
""")


@pytest.mark.requirement("conversion", kind="boundary")
def test_total_is_rounded_once(ledger):
    """The total is the exact sum rounded once; an account that rounds to zero is not shown."""
    journal = """\
P 2024-01-01 USD 0.04 EUR
2024-01-01 Crumbs
  Assets:A  0.10 USD
  Assets:B  0.10 USD
  Assets:C  0.40 USD
  Equity
"""
    assert ledger("balance travel.journal Assets --in EUR", travel=journal) == prints("""\
      0.02 EUR  Assets:C
--------------
      0.02 EUR
""")


@pytest.mark.requirement("conversion", kind="integration")
def test_depth_comes_first(ledger):
    """With --depth accounts are put together first and converted then."""
    journal = """\
P 2024-01-01 USD 0.04 EUR
2024-01-01 Crumbs
  Assets:A  0.10 USD
  Assets:B  0.10 USD
  Assets:B  1.00
  Equity
"""
    assert ledger("balance travel.journal Assets --in EUR --depth 1", travel=journal) == prints("""\
      1.01 EUR  Assets
--------------
      1.01 EUR
""")


@pytest.mark.requirement("usage", kind="error", retired="converted-register")
def test_wrong_call(ledger):
    """--in is for balance only."""
    exit_code, stdout, stderr = ledger("register books.journal --in EUR", books=BOOKS)
    assert (exit_code, stdout) == (2, "")
    assert "usage:" in stderr
