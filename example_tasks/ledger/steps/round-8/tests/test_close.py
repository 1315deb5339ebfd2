"""`close`: the transaction that a new file begins with."""

import random

import pytest
from answers import complains, prints
from journals import BOOKS, SHUFFLED, TRAVEL


@pytest.mark.requirement("close", kind="core")
def test_one_account(ledger):
    """What is left on the day of --end is carried over to the day after; income and expenses are not."""
    books = BOOKS + "2024-01-20 Cafe\n    Expenses:Food  4.00\n    Assets:Checking\n"
    assert ledger("close books.journal --end 2024-01-31", books=books) == prints("""\
2024-02-01 Opening balances
    Assets:Checking  3636.25
    Equity:Opening
""")


@pytest.mark.requirement("close", kind="core")
def test_currencies(ledger):
    """A posting for each account and currency, as balance sorts them, with minus signs."""
    journal = TRAVEL + "2024-12-31 Debts\n  Liabilities:Card  (7 USD)\n  Liabilities:Card  -0.5 EUR\n  Expenses:Food\n"
    assert ledger("close - --end 2024-12-31", stdin=journal) == prints("""\
2025-01-01 Opening balances
    Assets:Cash  236.00 EUR
    Assets:Cash  181.60 USD
    Assets:Loans  25.00
    Assets:Piggy bank  -25.00
    Liabilities:Card  -0.50 EUR
    Liabilities:Card  -7.00 USD
    Equity:Opening
""")


@pytest.mark.requirement("close", kind="boundary")
@pytest.mark.parametrize(
    ("end", "date", "amount"),
    [
        ("2024-01-30", "2024-01-31", "1140.25"),
        ("2024-02-28", "2024-02-29", "2940.25"),
        ("2024-01-01", "2024-01-02", "1200.00"),
    ],
)
def test_days(ledger, end, date, amount):
    """The day of --end counts, and days are those of the calendar."""
    lines = f"{date} Opening balances\n    Assets:Checking  {amount}\n    Equity:Opening\n"
    assert ledger(f"close books.journal --end {end}", books=BOOKS) == prints(lines)


@pytest.mark.requirement("close", kind="boundary")
def test_what_is_left_out(ledger):
    """Income, Expenses and Equity:Opening are left out by name, and nothing that is only like them."""
    journal = """\
2024-01-01 All sorts
    Income               1.00
    Income:Salary        1.00
    Expenses             1.00
    Expenses:Food:Out    1.00
    Equity:Opening       1.00
    Incomes              2.00
    ExpensesOld:Food     2.00
    Assets:Expenses      2.00
    Equity               2.00
    Equity:Openings      2.00
    income               2.00
    Assets:Nothing       0.00
    Assets:There
"""
    assert ledger("close books.journal --end 2024-06-30", books=journal) == prints("""\
2024-07-01 Opening balances
    Assets:Expenses  2.00
    Assets:There  -17.00
    Equity  2.00
    Equity:Openings  2.00
    ExpensesOld:Food  2.00
    Incomes  2.00
    income  2.00
    Equity:Opening
""")


@pytest.mark.requirement("close", kind="boundary")
def test_nothing_to_carry_over(ledger):
    """Where all accounts that would be carried over are zero there is no transaction."""
    journal = """\
2024-01-01 In
    Assets:Cash     5.00
    Income
2024-01-02 Out
    Expenses:Food   5.00
    Assets:Cash
2024-01-03 Opened
    Equity:Opening  3.00
    Expenses
"""
    opening = "2024-01-02 Opening balances\n    Assets:Cash  5.00\n    Equity:Opening\n"
    assert ledger("close books.journal --end 2024-01-01", books=journal) == prints(opening)
    assert ledger("close books.journal --end 2023-12-31", books=journal) == prints("")
    assert ledger("close books.journal --end 2024-12-31", books=journal) == prints("")
    assert ledger("close books.journal --end 2024-12-31", books="") == prints("")


@pytest.mark.requirement("close", kind="integration")
def test_new_books(ledger):
    """What is printed is a journal, and in it the accounts hold what they held; closing it again changes nothing."""
    chance = random.Random(8)
    accounts = ["Assets:Cash", "Assets:Piggy bank", "Assets:Cash:Box", "Liabilities:Card", "Equity:Opening", "Other"]
    journal = ""
    for index in range(30):
        journal += f"2024-{1 + index % 12:02d}-{1 + index % 28:02d} Number {index}\n"
        for account in chance.sample(accounts, 3):
            amount = f"{chance.randrange(100000) / 100:.2f}{chance.choice(['', ' EUR', ' USD'])}"
            journal += f"\t{account}\t{chance.choice([amount, '-' + amount, f'({amount})'])}\n"
        journal += f"  {chance.choice(['Expenses:A', 'Income'])}\n"
    status, opening, _ = ledger("close books.journal --end 2024-09-30", books=journal)
    assert status == 0
    assert opening.startswith("2024-10-01 Opening balances\n")
    for account in ("Assets", "Liabilities", "Other"):
        old = ledger(f"balance books.journal {account} --end 2024-09-30", books=journal)
        assert ledger(f"balance books.journal {account}", books=opening) == old
    later = opening.replace("2024-10-01", "2025-01-01")
    assert ledger("close books.journal --end 2024-12-31", books=opening) == prints(later)


@pytest.mark.requirement("close", kind="integration")
def test_order_of_dates(ledger):
    """A journal that is out of order is closed by its dates."""
    assert ledger("close books.journal --end 2024-05-01", books=SHUFFLED) == prints("""\
2024-05-02 Opening balances
    Assets:Cash  -1.00
    Equity:Opening
""")


@pytest.mark.requirement("problems", kind="error")
@pytest.mark.parametrize("where", ["posting", "assertion"])
def test_a_journal_with_problems_is_not_closed(ledger, where):
    """All problems are reported as by every command, those behind --end too, and nothing is printed."""
    if where == "posting":
        more = "2024-03-01 Bad\n    A  1,0\n    B\n2024-03-02 Alone\n    A  1\n"
        said = (
            "error: books.journal:18: invalid amount '1,0'\n"
            "error: books.journal:20: transaction needs at least two postings\n"
        )
    else:
        more = "2024-03-01 Bad\n    Assets:Checking  1.00 = 1.00\n    B\n"
        said = "error: books.journal:18: balance of Assets:Checking is 2941.25, not 1.00\n"
    assert ledger("close books.journal --end 2024-01-31", books=BOOKS + more) == complains(said)


@pytest.mark.requirement("usage", kind="error")
@pytest.mark.parametrize(
    "call",
    [
        "close books.journal",
        "close books.journal Assets --end 2024-01-31",
        "close books.journal --begin 2024-01-01 --end 2024-01-31",
        "close books.journal --depth 1 --end 2024-01-31",
        "close books.journal --end 2024-01-31 --in EUR",
        "close books.journal --end 2024-02-30",
        "close --end 2024-01-31",
    ],
)
def test_wrong_calls(ledger, call):
    """`close` takes FILE and a date, and neither less nor more."""
    exit_code, stdout, stderr = ledger(call, books=BOOKS)
    assert (exit_code, stdout) == (2, "")
    assert "usage:" in stderr
