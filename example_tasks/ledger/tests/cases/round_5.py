"""Round 5: --end becomes inclusive; prices and --in."""

from __future__ import annotations

from . import Case
from .journals import BOOKS, holding, priced

CASES = [
    Case(
        id="end-inclusive",
        requirement="end",
        kind="core",
        intent="The day of --end belongs to the time selected.",
        argv=["balance", "b.journal", "Assets", "--end", "2024-01-31"],
        files={"b.journal": BOOKS},
        stdout="""\
       3640.25  Assets:Checking
--------------
       3640.25
""",
    ),
    Case(
        id="a-single-day",
        requirement="end",
        kind="boundary",
        intent="Begin and end on one day select that day.",
        argv=["balance", "b.journal", "Expenses", "--begin", "2024-02-01", "--end", "2024-02-01"],
        files={"b.journal": BOOKS},
        stdout="""\
        700.00  Expenses:Rent
--------------
        700.00
""",
    ),
    Case(
        id="balance-in-currency",
        requirement="conversion",
        kind="core",
        intent="Everything in one currency, one line per account, by the latest price.",
        argv=["balance", "t.journal", "--in", "EUR"],
        files={"t.journal": priced("2024-03-01 USD 0.92 EUR", "2024-03-08 USD 0.905 EUR")},
        stdout="""\
    400.35 EUR  Assets:Cash
     25.00 EUR  Assets:Loans
   (25.00 EUR)  Assets:Piggy bank
  (481.00 EUR)  Equity:Opening
     16.65 EUR  Expenses:Food
     64.00 EUR  Expenses:Transport
--------------
      0.00 EUR
""",
    ),
    Case(
        id="half-away-from-zero",
        requirement="rounding",
        kind="core",
        intent="A half cent is rounded away from zero.",
        argv=["balance", "t.journal", "--in", "EUR"],
        files={"t.journal": holding("Assets:Cash", "4.69 USD") + "P 2024-01-01 USD 0.5 EUR\n"},
        stdout="""\
      2.35 EUR  Assets:Cash
    (2.35 EUR)  Equity
--------------
      0.00 EUR
""",
        retired_in="round-6",
    ),
    Case(
        id="price-of-the-day",
        requirement="prices",
        kind="boundary",
        intent="The latest price on or before --end counts; of two on one day the lower in the file.",
        argv=["balance", "t.journal", "Expenses", "--end", "2024-03-08", "--in", "EUR"],
        files={
            "t.journal": priced(
                "2024-03-09 USD 3 EUR", "2024-03-08 USD 0.5 EUR", "2024-03-08 USD 0.25 EUR", "2024-03-01 USD 2 EUR"
            )
        },
        stdout="""\
      4.60 EUR  Expenses:Food
--------------
      4.60 EUR
""",
    ),
    Case(
        id="total-rounded-once",
        requirement="conversion",
        kind="boundary",
        intent="The total is the exact sum rounded once; an account that rounds to zero is not shown.",
        argv=["balance", "t.journal", "Assets", "--in", "EUR"],
        files={
            "t.journal": "P 2024-01-01 USD 0.04 EUR\n2024-01-01 Crumbs\n"
            "  Assets:A  0.10 USD\n  Assets:B  0.10 USD\n  Assets:C  0.40 USD\n  Equity\n"
        },
        stdout="""\
      0.02 EUR  Assets:C
--------------
      0.02 EUR
""",
    ),
    Case(
        id="depth-before-conversion",
        requirement="conversion",
        kind="integration",
        intent="With --depth accounts are put together first and converted then.",
        argv=["balance", "t.journal", "Assets", "--in", "EUR", "--depth", "1"],
        files={
            "t.journal": "P 2024-01-01 USD 0.04 EUR\n2024-01-01 Crumbs\n"
            "  Assets:A  0.10 USD\n  Assets:B  0.10 USD\n  Assets:B  1.00\n  Equity\n"
        },
        stdout="""\
      1.01 EUR  Assets
--------------
      1.01 EUR
""",
    ),
    Case(
        id="no-inverse-no-chain",
        requirement="prices",
        kind="error",
        intent="Prices are neither turned around nor chained; the first missing currency is named.",
        argv=["balance", "t.journal", "--in", "EUR"],
        files={
            "t.journal": "2024-01-01 Start\n  A  1 USD\n  A  1 GBP\n  A  1 CHF\n  B\n"
            "P 2024-01-01 USD 0.9 EUR\nP 2024-01-01 EUR 0.8 GBP\nP 2024-01-01 CHF 1.1 USD\n"
        },
        status=1,
        stderr="error: t.journal: no price for CHF in EUR\n",
    ),
    Case(
        id="price-of-zero",
        requirement="prices",
        kind="error",
        intent="A price must be greater than zero.",
        argv=["register", "t.journal"],
        files={"t.journal": "P 2024-01-01 USD 0.00 EUR\n"},
        status=1,
        stderr="error: t.journal:1: invalid price\n",
    ),
    Case(
        id="price-ends-transaction",
        requirement="prices",
        kind="error",
        intent="A price line ends the transaction above it.",
        argv=["balance", "t.journal"],
        files={"t.journal": "2024-01-01 Start\n  A  1\n  B\nP 2024-01-01 USD 0.9 EUR\n  C  2\n"},
        status=1,
        stderr="error: t.journal:5: posting outside a transaction\n",
    ),
    Case(
        id="in-with-register",
        requirement="usage",
        kind="error",
        intent="--in is for balance only.",
        argv=["register", "b.journal", "--in", "EUR"],
        files={"b.journal": BOOKS},
        status=2,
        usage=True,
    ),
]
