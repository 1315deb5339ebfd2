"""Round 6: halves are rounded to even; the register has a debit and a credit column."""

from __future__ import annotations

from . import Case
from .journals import BOOKS, SHUFFLED, TRAVEL, holding

CASES = [
    Case(
        id="half-to-even",
        requirement="rounding",
        kind="core",
        intent="A half cent is rounded to the even cent, down or up, on both sides of zero.",
        argv=["balance", "t.journal", "--in", "EUR"],
        files={
            "t.journal": "P 2024-01-01 USD 0.5 EUR\n2024-01-01 Halves\n"
            "  A  4.69 USD\n  B  4.71 USD\n  C  -4.69 USD\n  D\n"
        },
        stdout="""\
      2.34 EUR  A
      2.36 EUR  B
    (2.34 EUR)  C
    (2.36 EUR)  D
--------------
      0.00 EUR
""",
    ),
    Case(
        id="half-cent-is-zero",
        requirement="rounding",
        kind="boundary",
        intent="Half a cent rounds to zero, and the account is not shown.",
        argv=["balance", "t.journal", "--in", "EUR"],
        files={"t.journal": "P 2024-01-01 USD 0.5 EUR\n" + holding("Assets:Cash", "0.01 USD")},
        stdout="--------------\n      0.00 EUR\n",
    ),
    Case(
        id="more-than-half",
        requirement="rounding",
        kind="boundary",
        intent="What is a little more than a half is rounded up, exactly.",
        argv=["balance", "t.journal", "Assets", "--in", "EUR"],
        files={"t.journal": "P 2024-01-01 USD 2.34500000000000000001 EUR\n" + holding("Assets:Cash", "1 USD")},
        stdout="""\
      2.35 EUR  Assets:Cash
--------------
      2.35 EUR
""",
    ),
    Case(
        id="debit-credit",
        requirement="register",
        kind="core",
        intent="Positive amounts are debits, negative ones credits without a sign.",
        argv=["register", "b.journal", "Assets"],
        files={"b.journal": BOOKS},
        stdout="""\
2024-01-01  Opening balances          Assets:Checking                1200.00                     1200.00
2024-01-05  Corner shop               Assets:Checking                                59.75       1140.25
2024-01-31  Salary                    Assets:Checking                2500.00                     3640.25
2024-02-01  Rent                      Assets:Checking                               700.00       2940.25
""",
    ),
    Case(
        id="debit-credit-currencies",
        requirement="register",
        kind="core",
        intent="Running totals are per currency, and in brackets when negative.",
        argv=["register", "t.journal", "Equity"],
        files={"t.journal": TRAVEL},
        stdout="""\
2024-03-01  Travel money              Equity:Opening                            300.00 EUR  (300.00 EUR)
2024-03-01  Travel money              Equity:Opening                            200.00 USD  (200.00 USD)
""",
    ),
    Case(
        id="debit-credit-order",
        requirement="register",
        kind="boundary",
        intent="By date, the same day in the order of the file; long texts are cut; a zero is a debit.",
        argv=["register", "b.journal"],
        files={"b.journal": SHUFFLED},
        stdout="""\
2024-05-01  A description of thirty   Expenses:Insurance:House          1.00                        1.00
2024-05-01  A description of thirty   Assets:Cash                                     1.00          0.00
2024-05-03  Third                     Expenses:A                        3.00                        3.00
2024-05-03  Third                     Assets:Cash                                     3.00          0.00
2024-05-03  Fourth                    Expenses:A                        4.00                        4.00
2024-05-03  Fourth                    Expenses:B                                      4.00          0.00
2024-05-03  Fourth                    Assets:Cash                       0.00                        0.00
""",
    ),
    Case(
        id="debit-credit-in-time",
        requirement="register",
        kind="integration",
        intent="The running total starts at zero at --begin, and the day of --end is shown.",
        argv=["register", "b.journal", "Assets", "--begin", "2024-01-05", "--end", "2024-01-31"],
        files={"b.journal": BOOKS},
        stdout="""\
2024-01-05  Corner shop               Assets:Checking                                59.75       (59.75)
2024-01-31  Salary                    Assets:Checking                2500.00                     2440.25
""",
    ),
]
