"""All problems of a journal at once."""

import pytest
from answers import complains


@pytest.mark.requirement("problems", kind="core")
def test_all_problems(ledger):
    """Every problem is reported by line; a transaction with a bad posting is not checked as a whole."""
    journal = """\
  Lost  1.00
  Lost  2.00
2024-01-01 Bad
  Assets:Cash  1,000
  Equity  .5
  Income  1.005
  Income  1.00EUR
2024-01-02 Slip
  A  1.00
  B  -2.00
2024-01-03 Alone
  A  1.00
"""
    assert ledger("balance books.journal", books=journal) == complains("""\
error: books.journal:1: posting outside a transaction
error: books.journal:2: posting outside a transaction
error: books.journal:4: invalid amount '1,000'
error: books.journal:5: invalid amount '.5'
error: books.journal:6: invalid amount '1.005'
error: books.journal:7: invalid amount '1.00EUR'
error: books.journal:8: transaction does not balance: off by -1.00
error: books.journal:11: transaction needs at least two postings
""")


@pytest.mark.requirement("problems", kind="boundary")
def test_one_slip_is_one_problem(ledger):
    """Lines below an invalid header or price are skipped; below a valid price they are outside."""
    journal = """\
2024-02-30 Rent
  A  x
  ; note

  B
P 2024-01-01 USD 1 EUR
  C  1
  D  1
P 2024-01-01 USD EUR
  E  1
2024-03-01 Fine
  A  1
  B
"""
    assert ledger("register books.journal", books=journal) == complains("""\
error: books.journal:1: invalid transaction header
error: books.journal:7: posting outside a transaction
error: books.journal:8: posting outside a transaction
error: books.journal:9: invalid price
""")
