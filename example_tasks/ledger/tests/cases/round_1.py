"""Round 1: the journal, `balance`, and what is said about a journal that is wrong."""

from __future__ import annotations

from . import Case
from .journals import BOOKS, holding

CASES = [
    Case(
        id="balance-all",
        requirement="balance",
        kind="core",
        intent="All accounts that are not zero, sorted, with a total; negative amounts carry a minus sign.",
        argv=["balance", "b.journal"],
        files={"b.journal": BOOKS},
        stdout="""\
       2940.25  Assets:Checking
      -1200.00  Equity:Opening
         42.50  Expenses:Food
         17.25  Expenses:Household
        700.00  Expenses:Rent
      -2500.00  Income:Salary
--------------
          0.00
""",
        retired_in="round-4",
    ),
    Case(
        id="balance-account",
        requirement="account-filter",
        kind="core",
        intent="ACCOUNT takes the account and what is below it, not a longer name with the same start.",
        argv=["balance", "b.journal", "Assets"],
        files={
            "b.journal": "2024-01-01 Start\n  Assets  1\n  Assets:Cash  2.5\n  AssetsOld  4.00\n  Equity\n",
        },
        stdout="""\
          1.00  Assets
          2.50  Assets:Cash
--------------
          3.50
""",
    ),
    Case(
        id="journal-layout",
        requirement="journal",
        kind="boundary",
        intent="Tabs, blanks in names, comments and blank lines between postings, an amount left out in the middle.",
        argv=["balance", "b.journal", "Assets"],
        files={
            "b.journal": "; top\n\n2024-02-29   Leap day\n\tAssets:Piggy bank\t12.05\n\n  ; between\n"
            " Assets:Cash\n    Equity:Opening     -20.00  \n\n"
            "2024-03-01 Nothing\n  Assets:Zero  5\n  Assets:Zero  -5\n",
        },
        stdout="""\
          7.95  Assets:Cash
         12.05  Assets:Piggy bank
--------------
         20.00
""",
    ),
    Case(
        id="balance-stdin",
        requirement="balance",
        kind="integration",
        intent="FILE - is standard input.",
        argv=["balance", "-", "Expenses"],
        stdin=BOOKS,
        stdout="""\
         42.50  Expenses:Food
         17.25  Expenses:Household
        700.00  Expenses:Rent
--------------
        759.75
""",
    ),
    Case(
        id="balance-empty",
        requirement="balance",
        kind="boundary",
        intent="A journal of comments leaves only the dashes and 0.00.",
        argv=["balance", "b.journal"],
        files={"b.journal": "; nothing yet\n\n"},
        stdout="--------------\n          0.00\n",
    ),
    Case(
        id="first-problem-only",
        requirement="problems",
        kind="error",
        intent="Of several problems only the first is reported.",
        argv=["balance", "b.journal"],
        files={"b.journal": "  Lost  1.00\n2024-01-01 Bad\n  Assets:Cash  1,000\n  Equity\n2024-02-30 Rent\n"},
        status=1,
        stderr="error: b.journal:1: posting outside a transaction\n",
        retired_in="round-7",
    ),
    Case(
        id="bracketed-amount-refused",
        requirement="journal",
        kind="error",
        intent="Brackets are no part of an amount.",
        argv=["balance", "b.journal"],
        files={"b.journal": holding("Assets:Cash", "(5.00)")},
        status=1,
        stderr="error: b.journal:2: invalid amount '(5.00)'\n",
        retired_in="round-4",
    ),
    Case(
        id="thousands-refused",
        requirement="problems",
        kind="error",
        intent="A comma is no part of an amount.",
        argv=["balance", "b.journal"],
        files={"b.journal": holding("Assets:Cash", "1,000")},
        status=1,
        stderr="error: b.journal:2: invalid amount '1,000'\n",
    ),
    Case(
        id="impossible-date",
        requirement="problems",
        kind="error",
        intent="A date that does not exist makes no header.",
        argv=["balance", "b.journal"],
        files={"b.journal": BOOKS + "2024-02-30 Rent\n"},
        status=1,
        stderr="error: b.journal:17: invalid transaction header\n",
    ),
    Case(
        id="unbalanced",
        requirement="problems",
        kind="error",
        intent="A transaction that does not add up to zero is named by its header's line.",
        argv=["balance", "b.journal"],
        files={"b.journal": "\n2024-01-01 Slip\n  Assets:Cash  -5.01\n  Expenses:Food  5.00\n"},
        status=1,
        stderr="error: b.journal:2: transaction does not balance: off by -0.01\n",
    ),
    Case(
        id="two-amounts-missing",
        requirement="problems",
        kind="error",
        intent="Only one amount may be left out.",
        argv=["balance", "b.journal"],
        files={"b.journal": "2024-01-01 Slip\n  Assets:Cash\n  Expenses:Food\n"},
        status=1,
        stderr="error: b.journal:1: more than one posting without an amount\n",
    ),
    Case(
        id="no-such-file",
        requirement="problems",
        kind="error",
        intent="A file that cannot be read is named.",
        argv=["balance", "none.journal"],
        status=1,
        stderr="error: cannot read none.journal\n",
    ),
    Case(
        id="unknown-command",
        requirement="usage",
        kind="error",
        intent="A wrong call is answered with the usage and status 2.",
        argv=["total", "b.journal"],
        files={"b.journal": BOOKS},
        status=2,
        usage=True,
    ),
]
