"""Round 4: brackets instead of minus signs in `balance`, brackets in the journal, --depth."""

from __future__ import annotations

from . import Case
from .journals import BOOKS, TRAVEL, holding

CASES = [
    Case(
        id="balance-brackets",
        requirement="brackets",
        kind="core",
        intent="Negative amounts stand in brackets.",
        argv=["balance", "b.journal"],
        files={"b.journal": BOOKS},
        stdout="""\
       2940.25  Assets:Checking
     (1200.00)  Equity:Opening
         42.50  Expenses:Food
         17.25  Expenses:Household
        700.00  Expenses:Rent
     (2500.00)  Income:Salary
--------------
          0.00
""",
    ),
    Case(
        id="totals-in-brackets",
        requirement="brackets",
        kind="core",
        intent="Negative totals stand in brackets, with the currency inside.",
        argv=["balance", "t.journal", "Equity"],
        files={"t.journal": TRAVEL},
        stdout="""\
  (300.00 EUR)  Equity:Opening
  (200.00 USD)  Equity:Opening
--------------
  (300.00 EUR)
  (200.00 USD)
""",
    ),
    Case(
        id="register-keeps-minus",
        requirement="register",
        kind="boundary",
        intent="The register still has minus signs.",
        argv=["register", "b.journal", "Income"],
        files={"b.journal": BOOKS},
        stdout="2024-01-31  Salary                    Income:Salary                 -2500.00      -2500.00\n",
        retired_in="round-6",
    ),
    Case(
        id="brackets-in-journal",
        requirement="bracketed-amounts",
        kind="core",
        intent="Brackets in the journal mean a negative amount, with or without a currency.",
        argv=["balance", "b.journal"],
        files={"b.journal": "2024-01-01 Start\n  A  (12.5)\n  B  (3 EUR)\n  C\n"},
        stdout="""\
       (12.50)  A
    (3.00 EUR)  B
         12.50  C
      3.00 EUR  C
--------------
          0.00
""",
    ),
    Case(
        id="minus-in-brackets",
        requirement="bracketed-amounts",
        kind="error",
        intent="A minus and brackets together are no amount.",
        argv=["balance", "b.journal"],
        files={"b.journal": holding("Assets:Cash", "(-12.50)")},
        status=1,
        stderr="error: b.journal:2: invalid amount '(-12.50)'\n",
    ),
    Case(
        id="currency-behind-brackets",
        requirement="bracketed-amounts",
        kind="error",
        intent="The currency belongs inside the brackets.",
        argv=["register", "b.journal"],
        files={"b.journal": holding("Assets:Cash", "(12.50) EUR")},
        status=1,
        stderr="error: b.journal:2: invalid amount '(12.50) EUR'\n",
    ),
    Case(
        id="depth-one",
        requirement="depth",
        kind="core",
        intent="Deeper accounts are added to their parent; what cancels out is not shown.",
        argv=["balance", "--depth", "1", "t.journal"],
        files={"t.journal": TRAVEL},
        stdout="""\
    236.00 EUR  Assets
    181.60 USD  Assets
  (300.00 EUR)  Equity
  (200.00 USD)  Equity
     64.00 EUR  Expenses
     18.40 USD  Expenses
--------------
          0.00
""",
    ),
    Case(
        id="depth-with-account",
        requirement="depth",
        kind="integration",
        intent="ACCOUNT selects by full names before --depth adds them up; shallower accounts stay as they are.",
        argv=["balance", "b.journal", "Assets:Bank", "--depth", "2"],
        files={
            "b.journal": "2024-01-01 Start\n  Assets:Bank:A  1\n  Assets:Bank:B:C  2\n"
            "  Assets:Bank  4\n  Assets:Cash  8\n  X\n"
        },
        stdout="""\
          7.00  Assets:Bank
--------------
          7.00
""",
    ),
    Case(
        id="depth-zero",
        requirement="usage",
        kind="error",
        intent="A depth below 1 is a wrong call.",
        argv=["balance", "b.journal", "--depth", "0"],
        files={"b.journal": BOOKS},
        status=2,
        usage=True,
    ),
    Case(
        id="depth-with-register",
        requirement="usage",
        kind="error",
        intent="--depth is for balance only.",
        argv=["register", "b.journal", "--depth", "1"],
        files={"b.journal": BOOKS},
        status=2,
        usage=True,
    ),
]
