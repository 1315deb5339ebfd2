"""Round 2: `register`, --begin and --end."""

from __future__ import annotations

from . import Case
from .journals import BOOKS, SHUFFLED

CASES = [
    Case(
        id="register-account",
        requirement="register",
        kind="core",
        intent="One line per posting with a running total; amounts are signed.",
        argv=["register", "b.journal", "Assets"],
        files={"b.journal": BOOKS},
        stdout="""\
2024-01-01  Opening balances          Assets:Checking                1200.00       1200.00
2024-01-05  Corner shop               Assets:Checking                 -59.75       1140.25
2024-01-31  Salary                    Assets:Checking                2500.00       3640.25
2024-02-01  Rent                      Assets:Checking                -700.00       2940.25
""",
        retired_in="round-6",
    ),
    Case(
        id="register-order",
        requirement="register",
        kind="boundary",
        intent="By date, the same day in the order of the file; long texts are cut; an inferred zero is shown.",
        argv=["register", "b.journal"],
        files={"b.journal": SHUFFLED},
        stdout="""\
2024-05-01  A description of thirty   Expenses:Insurance:House          1.00          1.00
2024-05-01  A description of thirty   Assets:Cash                      -1.00          0.00
2024-05-03  Third                     Expenses:A                        3.00          3.00
2024-05-03  Third                     Assets:Cash                      -3.00          0.00
2024-05-03  Fourth                    Expenses:A                        4.00          4.00
2024-05-03  Fourth                    Expenses:B                       -4.00          0.00
2024-05-03  Fourth                    Assets:Cash                       0.00          0.00
""",
        retired_in="round-6",
    ),
    Case(
        id="register-nothing",
        requirement="register",
        kind="boundary",
        intent="Nothing to show prints nothing.",
        argv=["register", "b.journal", "Asset"],
        files={"b.journal": BOOKS},
    ),
    Case(
        id="begin-inclusive",
        requirement="begin",
        kind="core",
        intent="The day of --begin belongs to the time selected.",
        argv=["balance", "b.journal", "Assets", "--begin", "2024-01-31"],
        files={"b.journal": BOOKS},
        stdout="""\
       1800.00  Assets:Checking
--------------
       1800.00
""",
    ),
    Case(
        id="end-exclusive",
        requirement="end",
        kind="core",
        intent="The day of --end does not belong to the time selected.",
        argv=["balance", "b.journal", "Assets", "--end", "2024-01-31"],
        files={"b.journal": BOOKS},
        stdout="""\
       1140.25  Assets:Checking
--------------
       1140.25
""",
        retired_in="round-5",
    ),
    Case(
        id="options-anywhere",
        requirement="begin",
        kind="integration",
        intent="Options may stand between the other arguments.",
        argv=["balance", "--begin", "2024-01-02", "b.journal", "--end", "2024-01-30", "Expenses"],
        files={"b.journal": BOOKS},
        stdout="""\
         42.50  Expenses:Food
         17.25  Expenses:Household
--------------
         59.75
""",
    ),
    Case(
        id="begin-after-end",
        requirement="begin",
        kind="boundary",
        intent="A begin after the end selects nothing.",
        argv=["balance", "b.journal", "--begin", "2024-03-01", "--end", "2024-01-01"],
        files={"b.journal": BOOKS},
        stdout="--------------\n          0.00\n",
    ),
    Case(
        id="wrong-date-option",
        requirement="usage",
        kind="error",
        intent="A date that does not exist is a wrong call.",
        argv=["register", "b.journal", "--end", "2024-02-30"],
        files={"b.journal": BOOKS},
        status=2,
        usage=True,
    ),
    Case(
        id="problem-outside-time",
        requirement="problems",
        kind="error",
        intent="A problem is reported even outside the selected time.",
        argv=["register", "b.journal", "--end", "2024-01-02"],
        files={"b.journal": BOOKS + "2024-07-01 Alone\n  Assets:Cash  1.00\n"},
        status=1,
        stderr="error: b.journal:17: transaction needs at least two postings\n",
    ),
]
