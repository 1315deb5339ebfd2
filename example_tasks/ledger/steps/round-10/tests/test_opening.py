"""Opening balances, which count only where nothing comes before them."""

import random

import pytest
from answers import complains, prints
from journals import BOOKS

NEXT = """\
2024-03-01 Opening balances
    Assets:Checking  2940.25 = 2940.25
    Equity:Opening
2024-03-02 Cinema
    Expenses:Fun     40.25
    Assets:Checking  -40.25 = 2900.00
"""


@pytest.mark.requirement("opening", kind="core")
def test_nothing_is_there_twice(ledger):
    """With the year before, the opening balances do not count; alone they do, and in both an account holds the same."""
    answer = prints("""\
       2900.00  Assets:Checking
--------------
       2900.00
""")
    files = {"all": "include next.journal\ninclude books.journal\n", "next": NEXT, "books": BOOKS}
    assert ledger("balance all.journal Assets", **files) == answer
    assert ledger("check all.journal", **files) == prints("ok: 5 transactions\n")
    assert ledger("balance next.journal Assets", **files) == answer
    assert ledger("check next.journal", **files) == prints("ok: 2 transactions\n")


@pytest.mark.requirement("opening", kind="boundary")
def test_what_is_selected_makes_no_difference(ledger):
    """Opening balances that do not count are not shown, also where what was before them is not selected."""
    assert ledger("register - --begin 2024-03-01", stdin=BOOKS + NEXT) == prints("""\
2024-03-02  Cinema                    Expenses:Fun                     40.25                       40.25
2024-03-02  Cinema                    Assets:Checking                                40.25          0.00
""")
    assert ledger("balance - Equity:Opening --begin 2024-01-02", stdin=NEXT + BOOKS) == prints(
        "--------------\n          0.00\n"
    )


@pytest.mark.requirement("opening", kind="boundary")
def test_which_count(ledger):
    """Those of the first day count, whatever stands above them; other descriptions always do."""
    journal = """\
2024-01-02 Opening balances 2024
  Assets:A   1.00
  Equity
2024-01-02 Opening balances
  Assets:B   2.00
  Equity
2024-01-01 Something
  Assets:C   4.00
  Equity
2024-01-01   Opening balances
  Assets:D   8.00
  Equity
2024-01-01 Opening balances
  Assets:E  16.00
  Equity
2024-01-02 opening balances
  Assets:F  32.00
  Equity
"""
    assert ledger("balance books.journal Equity", books=journal) == prints("""\
       (61.00)  Equity
--------------
       (61.00)
""")
    assert ledger("check books.journal", books=journal) == prints("ok: 5 transactions\n")
    later = journal.replace("2024-01-01 Something", "2024-01-02 Something")
    later = later.replace("2024-01-01 ", "2024-01-02 ")
    assert ledger("check books.journal", books=later) == prints("ok: 6 transactions\n")


@pytest.mark.requirement("opening", kind="boundary")
def test_years_of_opening_balances(ledger):
    """Opening balances come before others too, and it does not matter which file is read first."""
    opening = "{0}-01-01 Opening balances\n  Assets:Cash  {0}\n  Equity\n"
    files = {f"{year}": opening.format(year) for year in (2024, 2025, 2026)}
    everything = "include 2026.journal\ninclude 2025.journal\ninclude 2024.journal\n"
    assert ledger("balance all.journal Assets", all=everything, **files) == prints("""\
       2024.00  Assets:Cash
--------------
       2024.00
""")


@pytest.mark.requirement("opening", kind="error")
def test_problems_are_reported(ledger):
    """Opening balances that do not count are read all the same; only what they assert is not looked at."""
    wrong = NEXT.replace("= 2940.25", "= 1.00")
    assert ledger("check -", stdin=BOOKS + wrong) == prints("ok: 5 transactions\n")
    assert ledger("check -", stdin=wrong) == complains("error: -:2: balance of Assets:Checking is 2940.25, not 1.00\n")
    unbalanced = NEXT.replace("Equity:Opening", "Equity:Opening  1.00")
    assert ledger("check -", stdin=BOOKS + unbalanced) == complains(
        "error: -:17: transaction does not balance: off by 2941.25\n"
    )


def year_of_books(chance, year):
    """Transactions of a year, out of order, on few accounts and in two currencies."""
    accounts = ["Assets:Cash", "Assets:Bank", "Assets:Bank:Pot", "Liabilities:Card", "Other", "Expenses:Food", "Income"]
    text = ""
    for number in range(12):
        text += f"{year}-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d} Number {number}\n"
        for account in chance.sample(accounts, 2):
            amount = f"{chance.randrange(1, 100000) / 100:.2f}{chance.choice(['', ' EUR'])}"
            text += f"  {account}  {chance.choice([amount, f'({amount})'])}\n"
        text += f"  {chance.choice(accounts)}\n"
    return text


@pytest.mark.requirement("opening", kind="integration")
def test_any_years(ledger):
    """Closed year after year, accounts hold the same in the file of a year and in that of all, and close the same."""
    chance = random.Random(1)
    files = {"2023": year_of_books(chance, 2023)}
    for year in (2024, 2025):
        status, opening, _ = ledger(f"close {year - 1}.journal --end {year - 1}-12-31", **files)
        assert (status, opening[:27]) == (0, f"{year}-01-01 Opening balances")
        files[f"{year}"] = opening + year_of_books(chance, year)
    years = ["2023", "2024", "2025", "2025"]
    chance.shuffle(years)
    files["all"] = "".join(f"include {year}.journal\n" for year in years)
    assert ledger("check all.journal", **files) == prints("ok: 36 transactions\n")
    for year in (2024, 2025):
        end = f"--end {year}-{chance.randrange(1, 12):02d}-15"
        account = chance.choice(["Assets", "Liabilities", "Other"])
        assert ledger(f"balance all.journal {account} {end}", **files) == ledger(
            f"balance {year}.journal {account} {end}", **files
        )
        assert ledger(f"close all.journal {end}", **files) == ledger(f"close {year}.journal {end}", **files)
