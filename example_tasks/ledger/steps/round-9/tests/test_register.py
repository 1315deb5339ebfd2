"""`register --in`: what things were worth when they happened."""

import pytest
from answers import complains, prints
from journals import TRAVEL, priced

RATES = ("2024-03-01 EUR 1.6 USD", "2024-03-09 USD 0.5 EUR")


@pytest.mark.requirement("converted-register", kind="core")
def test_price_of_the_day(ledger):
    """Each amount has the price of its own day, turned around where need be, and there is one running total."""
    more = "2024-03-09 Sold\n  Assets:Cash  (100.00 USD)\n  Assets:Cash  7\n  Income\n"
    assert ledger("register books.journal Assets:Cash --in EUR", books=priced(*RATES) + more) == prints("""\
2024-03-01  Travel money              Assets:Cash                 300.00 EUR                  300.00 EUR
2024-03-01  Travel money              Assets:Cash                 125.00 EUR                  425.00 EUR
2024-03-04  Diner                     Assets:Cash                                11.50 EUR    413.50 EUR
2024-03-09  Train to Lyon             Assets:Cash                                64.00 EUR    349.50 EUR
2024-03-09  Sold                      Assets:Cash                                50.00 EUR    299.50 EUR
2024-03-09  Sold                      Assets:Cash                   7.00 EUR                  306.50 EUR
""")


@pytest.mark.requirement("converted-register", kind="boundary")
def test_sums_are_exact(ledger):
    """Amounts and totals are rounded as the bank does, each once; what is rounded to zero is a debit."""
    journal = """\
P 2024-01-01 EUR 6 USD
2024-01-01 Crumbs
  Assets:A      -0.02 USD
  Assets:A      -0.01 USD
  Assets:A      -0.01 USD
  Assets:A       0.10 USD
  Assets:A       0.03 USD
  Assets:A      -0.15 USD
  Assets:A       0.00 SEK
  Equity
"""
    assert ledger("register books.journal Assets --in EUR", books=journal) == prints("""\
2024-01-01  Crumbs                    Assets:A                      0.00 EUR                    0.00 EUR
2024-01-01  Crumbs                    Assets:A                      0.00 EUR                    0.00 EUR
2024-01-01  Crumbs                    Assets:A                      0.00 EUR                  (0.01 EUR)
2024-01-01  Crumbs                    Assets:A                      0.02 EUR                    0.01 EUR
2024-01-01  Crumbs                    Assets:A                      0.00 EUR                    0.02 EUR
2024-01-01  Crumbs                    Assets:A                                    0.02 EUR    (0.01 EUR)
2024-01-01  Crumbs                    Assets:A                      0.00 EUR                  (0.01 EUR)
""")


@pytest.mark.requirement("converted-register", kind="integration")
def test_period(ledger):
    """The running total begins at --begin; --end selects transactions, and earlier days keep their earlier prices."""
    call = "register books.journal --begin 2024-03-04 --in EUR Assets --end 2024-03-09"
    assert ledger(call, books=priced("2024-03-10 USD 9 EUR", *RATES)) == prints("""\
2024-03-04  Diner                     Assets:Cash                                11.50 EUR   (11.50 EUR)
2024-03-09  Train to Lyon             Assets:Cash                                64.00 EUR   (75.50 EUR)
""")


@pytest.mark.requirement("converted-register", kind="error")
def test_missing_prices(ledger):
    """What has no price on its day is named, each currency once; what is not selected needs none."""
    more = "2024-02-01 Early\n  Assets:Cash  5 CHF\n  Assets:Cash  6 CHF\n  Income\nP 2024-03-02 CHF 2 EUR\n"
    journal = priced("2024-03-02 USD 0.5 EUR") + more
    assert ledger("register books.journal --in EUR", books=journal) == complains("""\
error: books.journal: no price for CHF in EUR
error: books.journal: no price for USD in EUR
""")
    assert ledger("register books.journal Expenses:Food --in EUR", books=journal) == prints("""\
2024-03-04  Diner                     Expenses:Food                 9.20 EUR                    9.20 EUR
""")


@pytest.mark.requirement("usage", kind="error")
def test_wrong_calls(ledger):
    """--in is for balance and register, a currency has capital letters, and --depth is for balance only."""
    status, stdout, _ = ledger("register books.journal Expenses:Food --in USD", books=TRAVEL)
    assert (status, stdout.count("\n")) == (0, 1)
    for call in (
        "check books.journal --in EUR",
        "close books.journal --end 2024-03-31 --in EUR",
        "register books.journal --in EUR --depth 1",
        "register books.journal --in eur",
    ):
        exit_code, stdout, stderr = ledger(call, books=TRAVEL)
        assert (exit_code, stdout) == (2, "")
        assert "usage:" in stderr
