"""Round 3: currencies."""

from __future__ import annotations

from . import Case
from .journals import TRAVEL, holding

CASES = [
    Case(
        id="balance-currencies",
        requirement="currencies",
        kind="core",
        intent="One line per account and currency; negative amounts carry a minus sign.",
        argv=["balance", "t.journal"],
        files={"t.journal": TRAVEL},
        stdout="""\
    236.00 EUR  Assets:Cash
    181.60 USD  Assets:Cash
         25.00  Assets:Loans
        -25.00  Assets:Piggy bank
   -300.00 EUR  Equity:Opening
   -200.00 USD  Equity:Opening
     18.40 USD  Expenses:Food
     64.00 EUR  Expenses:Transport
--------------
          0.00
""",
        retired_in="round-4",
    ),
    Case(
        id="register-currencies",
        requirement="currencies",
        kind="core",
        intent="The running total is that of the line's own currency.",
        argv=["register", "t.journal", "Assets:Cash"],
        files={"t.journal": TRAVEL},
        stdout="""\
2024-03-01  Travel money              Assets:Cash                 300.00 EUR    300.00 EUR
2024-03-01  Travel money              Assets:Cash                 200.00 USD    200.00 USD
2024-03-04  Diner                     Assets:Cash                 -18.40 USD    181.60 USD
2024-03-09  Train to Lyon             Assets:Cash                 -64.00 EUR    236.00 EUR
""",
        retired_in="round-6",
    ),
    Case(
        id="total-per-currency",
        requirement="currencies",
        kind="core",
        intent="The total has a line for each currency, the one without a code first.",
        argv=["balance", "t.journal", "Assets"],
        files={
            "t.journal": "2024-01-01 Start\n  Assets:B  2 USD\n  Assets:B  1 EUR\n"
            "  Assets:A  3 USD\n  Assets:A  4\n  Equity\n"
        },
        stdout="""\
          4.00  Assets:A
      3.00 USD  Assets:A
      1.00 EUR  Assets:B
      2.00 USD  Assets:B
--------------
          4.00
      1.00 EUR
      5.00 USD
""",
    ),
    Case(
        id="rest-of-every-currency",
        requirement="currencies",
        kind="core",
        intent="An amount left out takes the rest of every currency.",
        argv=["balance", "t.journal", "Assets"],
        files={
            "t.journal": "2024-01-01 Start\n  Assets:Cash\n  Equity  -7.50 USD\n  Equity  -0.05\n  Equity  -1 EUR\n"
        },
        stdout="""\
          0.05  Assets:Cash
      1.00 EUR  Assets:Cash
      7.50 USD  Assets:Cash
--------------
          0.05
      1.00 EUR
      7.50 USD
""",
    ),
    Case(
        id="currencies-do-not-mix",
        requirement="currencies",
        kind="error",
        intent="Each currency must balance by itself; every sum that is not zero is named.",
        argv=["balance", "t.journal"],
        files={"t.journal": "2024-01-01 Slip\n  A  -3.00 EUR\n  B  5.00\n  C  2.00 USD\n  D  -2.00 USD\n"},
        status=1,
        stderr="error: t.journal:1: transaction does not balance: off by 5.00, -3.00 EUR\n",
    ),
    Case(
        id="lower-case-currency",
        requirement="currencies",
        kind="error",
        intent="A currency has three capital letters.",
        argv=["balance", "t.journal"],
        files={"t.journal": holding("Assets:Cash", "18.40 usd")},
        status=1,
        stderr="error: t.journal:2: invalid amount '18.40 usd'\n",
    ),
    Case(
        id="wide-amount",
        requirement="currencies",
        kind="boundary",
        intent="An amount wider than its column is not cut.",
        argv=["balance", "t.journal", "Assets"],
        files={"t.journal": holding("Assets:Vault", "12345678901.00 EUR")},
        stdout="""\
12345678901.00 EUR  Assets:Vault
--------------
12345678901.00 EUR
""",
    ),
]
