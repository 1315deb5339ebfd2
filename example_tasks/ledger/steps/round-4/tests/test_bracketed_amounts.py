"""The accountant's notation in the journal."""

import pytest
from answers import complains, prints
from journals import holding


@pytest.mark.requirement("bracketed-amounts", kind="core")
def test_brackets_are_negative(ledger):
    """Brackets in the journal mean a negative amount, with or without a currency."""
    journal = """\
2024-01-01 Start
  A  (12.5)
  B  (3 EUR)
  C
"""
    assert ledger("balance books.journal", books=journal) == prints("""\
       (12.50)  A
    (3.00 EUR)  B
         12.50  C
      3.00 EUR  C
--------------
          0.00
""")


@pytest.mark.requirement("bracketed-amounts", kind="error")
def test_minus_in_brackets(ledger):
    """A minus and brackets together are no amount, and neither are brackets with blanks just inside them."""
    for amount in ("(-12.50)", "-(12.50)", "( 12.50)", "(12.50 EUR )"):
        journal = holding("Assets:Cash", amount)
        assert ledger("balance books.journal", books=journal) == complains(
            f"error: books.journal:2: invalid amount '{amount}'\n"
        )


@pytest.mark.requirement("bracketed-amounts", kind="error")
def test_currency_behind_brackets(ledger):
    """The currency belongs inside the brackets."""
    journal = holding("Assets:Cash", "(12.50) EUR")
    assert ledger("register books.journal", books=journal) == complains(
        "error: books.journal:2: invalid amount '(12.50) EUR'\n"
    )
