"""Price lines in the journal, and which of them counts."""

import pytest
from answers import complains, prints
from journals import priced


@pytest.mark.requirement("prices", kind="boundary")
def test_price_of_the_day(ledger):
    """The latest price on or before --end counts; of two on one day the lower in the file."""
    journal = priced(
        "2024-03-09 USD 3 EUR", "2024-03-08 USD 0.5 EUR", "2024-03-08 USD 0.25 EUR", "2024-03-01 USD 2 EUR"
    )
    assert ledger("balance travel.journal Expenses --end 2024-03-08 --in EUR", travel=journal) == prints("""\
      4.60 EUR  Expenses:Food
--------------
      4.60 EUR
""")


@pytest.mark.requirement("prices", kind="error", retired="round-9")
def test_no_inverse_and_no_chain(ledger):
    """Prices are neither turned around nor chained; the first missing currency is named."""
    journal = """\
2024-01-01 Start
  A  1 USD
  A  1 GBP
  A  1 CHF
  B
P 2024-01-01 USD 0.9 EUR
P 2024-01-01 EUR 0.8 GBP
P 2024-01-01 CHF 1.1 USD
"""
    assert ledger("balance travel.journal --in EUR", travel=journal) == complains(
        "error: travel.journal: no price for CHF in EUR\n"
    )


@pytest.mark.requirement("prices", kind="error")
def test_price_of_zero(ledger):
    """A price must be greater than zero."""
    journal = "P 2024-01-01 USD 0.00 EUR\n"
    assert ledger("register travel.journal", travel=journal) == complains("error: travel.journal:1: invalid price\n")


@pytest.mark.requirement("prices", kind="error")
def test_price_ends_transaction(ledger):
    """A price line ends the transaction above it."""
    journal = """\
2024-01-01 Start
  A  1
  B
P 2024-01-01 USD 0.9 EUR
  C  2
"""
    assert ledger("balance travel.journal", travel=journal) == complains(
        "error: travel.journal:5: posting outside a transaction\n"
    )
