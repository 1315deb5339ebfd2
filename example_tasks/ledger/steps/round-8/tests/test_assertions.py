"""Balance assertions: what an account and all those below it hold after a posting."""

import pytest
from answers import complains, prints

# The later date stands first: what is asserted holds only if dates decide the order.
POT = """\
2024-02-01 Second
    Assets:Checking              5.00 = {second}
    Equity
2024-01-01 First
    Assets:Checking:Holiday pot  1.00 = 1
    Assets:Checking             10.00  =  {first}
    Assets:Checkings            99.00
    Assets:Checking:Holiday pot  3.00 EUR = 3 EUR
    Equity
"""


@pytest.mark.requirement("assertions", kind="core")
def test_they_hold_with_what_is_below(ledger):
    """What is below the account counts, what only begins like it does not, and each currency is by itself."""
    journal = POT.format(first="11.00", second="16")
    assert ledger("check books.journal", books=journal) == prints("ok: 2 transactions\n")


@pytest.mark.requirement("assertions", kind="core")
def test_they_fail_without_what_is_below(ledger):
    """What the account holds by itself is not what is asserted; every one that fails is reported, by line."""
    journal = POT.format(first="(10.00)", second="15.00")
    assert ledger("check books.journal", books=journal) == complains("""\
error: books.journal:2: balance of Assets:Checking is 16.00, not 15.00
error: books.journal:6: balance of Assets:Checking is 11.00, not -10.00
""")


@pytest.mark.requirement("assertions", kind="boundary")
def test_a_parent_without_postings_of_its_own(ledger):
    """Levels that nothing was posted to hold what is below them, at any depth; those beside it do not count."""
    journal = """\
2024-01-01 Deep
    A:B:C:D   2.00 = 2
    A:B:C     0.00 = 2
    A:X       5.00
    A:B       0.00 = 2.00
    A         0.00 = (-1)
    Equity
"""
    assert ledger("check books.journal", books=journal) == complains(
        "error: books.journal:6: invalid amount '0.00 = (-1)'\n"
    )
    assert ledger("check books.journal", books=journal.replace("(-1)", "7")) == prints("ok: 1 transaction\n")


@pytest.mark.requirement("assertions", kind="boundary")
def test_only_what_stands_above(ledger):
    """What is posted below the assertion, or on a later day, does not count yet, and no other currency does."""
    journal = """\
2024-01-01 Start
    Assets:Cash      1.00 = 1.00
    Assets:Cash:Box  4.00
    Assets:Cash      0.00 = 5.00
    Equity
2024-01-01 The same day
    Assets:Cash:Box  2.00 = 6.00
    Equity          -2.00 = -7.00
    Equity           0.00 EUR = -7.00
"""
    assert ledger("check books.journal", books=journal) == prints("ok: 2 transactions\n")


@pytest.mark.requirement("assertions", kind="integration")
@pytest.mark.parametrize("options", ["--begin 2024-02-01", "--end 2024-01-01", "--depth 1"])
def test_reports(ledger, options):
    """Reports read asserted journals; what they select changes nothing about what an assertion sees."""
    good, bad = POT.format(first="11.00", second="16.00"), POT.format(first="11.00", second="15.00")
    assert ledger(f"balance books.journal Assets {options}", books=good)[0] == 0
    assert ledger(f"balance books.journal Assets {options}", books=bad) == complains(
        "error: books.journal:2: balance of Assets:Checking is 16.00, not 15.00\n"
    )


@pytest.mark.requirement("assertions", kind="error")
def test_two_assertions(ledger):
    """What stands behind the first sign is one amount, or none."""
    journal = "2024-01-01 Start\n  A  1.00 = 1.00 = 1.00\n  B\n"
    assert ledger("check books.journal", books=journal) == complains(
        "error: books.journal:2: invalid amount '1.00 = 1.00 = 1.00'\n"
    )


@pytest.mark.requirement("balance", kind="boundary")
def test_postings_of_nothing(ledger):
    """A posting of 0.00 that only asserts adds nothing to what balance shows, nor to its total."""
    journal = """\
2024-01-01 Start
    Assets:Cash      7.00
    Assets:Cash      0.00 = 7.00
    Assets:Box       0.00 = 0
    Equity
"""
    assert ledger("balance books.journal Assets", books=journal) == prints("""\
          7.00  Assets:Cash
--------------
          7.00
""")
