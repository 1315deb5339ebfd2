"""Balance assertions: what an account holds after a posting."""

import pytest
from answers import complains, prints


def asserted(*, first: str, second: str) -> str:
    """A journal with two assertions. The later date stands first: both fail only if dates decide the order."""
    return f"""\
2024-02-01 Second
    Assets:Cash      5.00 = {second}
    Equity
2024-01-01 First
    Assets:Cash     10.00  =  {first}
    Assets:Cash:Box  1.00
    Assets:Cash      3.00 EUR = 3 EUR
    Equity
"""


@pytest.mark.requirement("assertions", kind="core", retired="round-8")
def test_they_hold(ledger):
    """Assertions follow the dates, take the very account and the asserted currency only."""
    assert ledger("check books.journal", books=asserted(first="10.00", second="15")) == prints("ok: 2 transactions\n")


@pytest.mark.requirement("assertions", kind="core", retired="round-8")
def test_they_fail(ledger):
    """Every assertion that fails is reported, by line, with minus signs."""
    assert ledger("check books.journal", books=asserted(first="(10.00)", second="15.01")) == complains("""\
error: books.journal:2: balance of Assets:Cash is 15.00, not 15.01
error: books.journal:5: balance of Assets:Cash is 10.00, not -10.00
""")


@pytest.mark.requirement("assertions", kind="boundary")
def test_other_problems_come_first(ledger):
    """Assertions are not looked at while there are other problems."""
    journal = asserted(first="99", second="99") + "2024-03-01\n"
    assert ledger("balance books.journal", books=journal) == complains(
        "error: books.journal:9: invalid transaction header\n"
    )


@pytest.mark.requirement("assertions", kind="error")
def test_amount_is_missing(ledger):
    """An assertion needs an amount in front of it, and an amount behind the sign."""
    journal = """\
2024-01-01 Start
  A  = 50.00
  B  1 = x
  C
"""
    assert ledger("check books.journal", books=journal) == complains("""\
error: books.journal:2: invalid amount '= 50.00'
error: books.journal:3: invalid amount '1 = x'
""")


@pytest.mark.requirement("assertions", kind="integration", retired="round-8")
def test_reports(ledger):
    """Reports read asserted journals; the time selected does not change what an assertion sees."""
    journal = asserted(first="10.00", second="15.00")
    assert ledger("balance books.journal Assets --begin 2024-02-01", books=journal) == prints("""\
          5.00  Assets:Cash
--------------
          5.00
""")
