"""`include`: one journal of several files."""

import pytest
from answers import complains, prints
from journals import BOOKS

RENT = "2024-02-01 Rent\n    Expenses:Rent    700.00\n    Assets:Checking\n"


@pytest.mark.requirement("include", kind="core")
def test_as_if_its_lines_stood_there(ledger):
    """Transactions and prices of included files count, also of those that included files include."""
    files = {
        "all": "include 2024.journal\ninclude a year/prices of it.journal  \n",
        "2024": "2024-02-02 Trip\n    Expenses:Trip  10.00 USD\n    Assets:Cash\n",
        "a year/prices of it": "include more.journal\nP 2024-01-01 USD 0.5 EUR\n",
        "a year/more": "2024-02-03 Trip\n    Expenses:Trip  1.00 EUR\n    Assets:Cash\n",
    }
    assert ledger("balance all.journal Expenses --in EUR", **files) == prints("""\
      6.00 EUR  Expenses:Trip
--------------
      6.00 EUR
""")
    assert ledger("check all.journal", **files) == prints("ok: 2 transactions\n")


@pytest.mark.requirement("include", kind="core")
def test_once(ledger):
    """A file counts once, where it is met first, however its name is written; files may include each other."""
    files = {
        "books/all": "include 2024.journal\ninclude ./2024.journal\ninclude ../books/rent.journal\n",
        "books/2024": "include rent.journal\ninclude all.journal\n2024-02-01 Lunch\n  Expenses:Food  8\n  Cash\n",
        "books/rent": RENT + "include ../books/all.journal\ninclude rent.journal\n",
    }
    assert ledger("register books/all.journal Expenses", **files) == prints("""\
2024-02-01  Rent                      Expenses:Rent                   700.00                      700.00
2024-02-01  Lunch                     Expenses:Food                     8.00                      708.00
""")
    assert ledger("check ./books/rent.journal", **files) == prints("ok: 2 transactions\n")


@pytest.mark.requirement("include", kind="boundary")
def test_order(ledger):
    """What is included stands in the place of the line: for postings of one day, assertions and prices of one day."""
    journal = """\
2024-03-01 First
  Assets:Cash  1.00 = 1.00
  Income
P 2024-01-01 USD 2 EUR
include second.journal
2024-03-01 Third
  Assets:Cash  4.00 = 7.00
  Income
"""
    second = "2024-03-01 Second\n  Assets:Cash  2.00 = 3.00\n  Income  \nP 2024-01-01 USD 3 EUR\n"
    more = "2024-02-01 Dollars\n  Assets:Dollars  1.00 USD\n  Income\n"
    assert ledger("register all.journal Assets:Cash", all=journal, second=second) == prints("""\
2024-03-01  First                     Assets:Cash                       1.00                        1.00
2024-03-01  Second                    Assets:Cash                       2.00                        3.00
2024-03-01  Third                     Assets:Cash                       4.00                        7.00
""")
    for journals, worth in (
        ({"all": more + journal, "second": second}, "3.00 EUR"),
        ({"all": more + journal + "P 2024-01-01 USD 5 EUR\n", "second": second}, "5.00 EUR"),
    ):
        assert ledger("balance all.journal Assets:Dollars --in EUR", **journals) == prints(
            f"{worth:>14}  Assets:Dollars\n--------------\n{worth:>14}\n"
        )


@pytest.mark.requirement("include", kind="boundary")
def test_borders_of_files(ledger):
    """Neither a transaction nor what is skipped goes on over the border of a file; `include` alone is a header."""
    files = {
        "all": BOOKS + "include rest.journal\n  B  1\n  B  1\ninclude\n  C  1\ninclude empty.journal\n  D  1\n",
        "rest": "  ; A note\n  A  1.00\n2024-04-01 Whole\n  Assets:Cash  5.00\n  Income\n",
        "empty": "",
    }
    assert ledger("check all.journal", **files) == complains("""\
error: rest.journal:2: posting outside a transaction
error: all.journal:18: posting outside a transaction
error: all.journal:19: posting outside a transaction
error: all.journal:20: invalid transaction header
error: all.journal:23: posting outside a transaction
""")
    files = {
        "all": "2024-04-01 Alone\n  A  1.00\ninclude bad.journal\n  A  -1.00\nP 1\ninclude bad.journal\n  B  1.00\n",
        "bad": "  A  2.00\n2024-04-31 Never\n  A  1.00\n",
    }
    assert ledger("balance all.journal", **files) == complains("""\
error: all.journal:1: transaction needs at least two postings
error: bad.journal:1: posting outside a transaction
error: bad.journal:2: invalid transaction header
error: all.journal:4: posting outside a transaction
error: all.journal:5: invalid price
error: all.journal:7: posting outside a transaction
""")


@pytest.mark.requirement("include", kind="error")
def test_names_in_problems(ledger):
    """Problems name their file, by the names as they were written, and stand in the order of reading."""
    files = {
        "books/all": "include 2025.journal\ninclude ../prices.journal\n2024-01-01\n",
        "books/2025": "\n2025-01-01 Bad\n  A  1,0\n  B\ninclude old/2024.journal\n2025-01-02\n",
        "books/old/2024": "; Old\n2024-01-01 Slip\n  A  1.00\n  B  -2.00\n",
        "prices": "P 2024-01-01 USD 0 EUR\n",
    }
    problems = """\
error: {0}2025.journal:3: invalid amount '1,0'
error: {0}old/2024.journal:2: transaction does not balance: off by -1.00
error: {0}2025.journal:6: invalid transaction header
error: {0}../prices.journal:1: invalid price
error: {1}:3: invalid transaction header
"""
    for name, directory in (("books/all.journal", "books/"), ("./books/../books/all.journal", "./books/../books/")):
        assert ledger(f"check {name}", **files) == complains(problems.format(directory, name))
    names = ("books/2025.journal:3:", "books/old/2024.journal:2:", "books/2025.journal:6:")
    _, _, stderr = ledger("check -", stdin="include books/2025.journal\n", **files)
    assert [line.split()[1] for line in stderr.splitlines()] == list(names)


@pytest.mark.requirement("include", kind="error")
def test_assertions_that_fail(ledger):
    """Assertions that fail are reported in the order of reading, with their file; a missing price names FILE."""
    files = {
        "all": "include books/2025.journal\ninclude books/2024.journal\n",
        "books/2025": "2025-01-01 In\n  Assets:Cash  2.00 = 9.00\n  Income\n",
        "books/2024": "\n2024-01-01 In\n  Assets:Cash  1.00 = 9.00\n  Assets:Cash  4.00 SEK\n  Income\n",
    }
    assert ledger("close all.journal --end 2024-01-01", **files) == complains("""\
error: books/2025.journal:2: balance of Assets:Cash is 3.00, not 9.00
error: books/2024.journal:3: balance of Assets:Cash is 1.00, not 9.00
""")
    right = {name: text.replace(" = 9.00", "") for name, text in files.items()}
    said = "error: all.journal: no price for SEK in EUR\n"
    assert ledger("register all.journal --in EUR", **right) == complains(said)


@pytest.mark.requirement("include", kind="error")
def test_files_that_cannot_be_read(ledger):
    """A file that cannot be read is a problem of its line; indented lines below it are skipped, the rest is read."""
    files = {
        "books/all": "; Years\ninclude 2023.journal\n  A  1.00\n  B\ninclude 2024.journal\n  A  1.00\n",
        "books/2024": "include ../2022.journal\ninclude /no such/2021.journal\n2024-01-01 Alone\n  A  1.00\n",
    }
    assert ledger("check books/all.journal", **files) == complains("""\
error: books/all.journal:2: cannot read books/2023.journal
error: books/2024.journal:1: cannot read books/../2022.journal
error: books/2024.journal:2: cannot read /no such/2021.journal
error: books/2024.journal:3: transaction needs at least two postings
error: books/all.journal:6: posting outside a transaction
""")
