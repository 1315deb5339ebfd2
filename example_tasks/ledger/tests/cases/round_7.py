"""Round 7: all problems at once, balance assertions, `check`."""

from __future__ import annotations

from . import Case
from .journals import BOOKS

# The later date stands first, so that both assertions fail only if dates decide the order.
ASSERTED = """\
2024-02-01 Second
    Assets:Cash      5.00 = {second}
    Equity
2024-01-01 First
    Assets:Cash     10.00  =  {first}
    Assets:Cash:Box  1.00
    Assets:Cash      3.00 EUR = 3 EUR
    Equity
"""

CASES = [
    Case(
        id="all-problems",
        requirement="problems",
        kind="core",
        intent="Every problem is reported by line; a transaction with a bad posting is not checked as a whole.",
        argv=["balance", "b.journal"],
        files={
            "b.journal": "  Lost  1.00\n  Lost  2.00\n2024-01-01 Bad\n  Assets:Cash  1,000\n  Equity  .5\n"
            "2024-01-02 Slip\n  A  1.00\n  B  -2.00\n2024-01-03 Alone\n  A  1.00\n"
        },
        status=1,
        stderr="""\
error: b.journal:1: posting outside a transaction
error: b.journal:2: posting outside a transaction
error: b.journal:4: invalid amount '1,000'
error: b.journal:5: invalid amount '.5'
error: b.journal:6: transaction does not balance: off by -1.00
error: b.journal:9: transaction needs at least two postings
""",
    ),
    Case(
        id="no-follow-up-problems",
        requirement="problems",
        kind="boundary",
        intent="Lines below an invalid header or price are skipped; below a valid price they are outside.",
        argv=["register", "b.journal"],
        files={
            "b.journal": "2024-02-30 Rent\n  A  x\n  ; note\n\n  B\nP 2024-01-01 USD 1 EUR\n  C  1\n  D  1\n"
            "P 2024-01-01 USD EUR\n  E  1\n2024-03-01 Fine\n  A  1\n  B\n"
        },
        status=1,
        stderr="""\
error: b.journal:1: invalid transaction header
error: b.journal:7: posting outside a transaction
error: b.journal:8: posting outside a transaction
error: b.journal:9: invalid price
""",
    ),
    Case(
        id="check-ok",
        requirement="check",
        kind="core",
        intent="A journal in order is confirmed with the number of its transactions.",
        argv=["check", "b.journal"],
        files={"b.journal": BOOKS},
        stdout="ok: 4 transactions\n",
    ),
    Case(
        id="check-one",
        requirement="check",
        kind="boundary",
        intent="The wording is the same for a single transaction, read from standard input.",
        argv=["check", "-"],
        stdin="2024-01-01 One\n  A  1\n  B\n",
        stdout="ok: 1 transactions\n",
    ),
    Case(
        id="check-takes-file-only",
        requirement="usage",
        kind="error",
        intent="An option with check is a wrong call.",
        argv=["check", "b.journal", "--begin", "2024-01-01"],
        files={"b.journal": BOOKS},
        status=2,
        usage=True,
    ),
    Case(
        id="assertions-hold",
        requirement="assertions",
        kind="core",
        intent="Assertions follow the dates, take the very account and the asserted currency only.",
        argv=["check", "b.journal"],
        files={"b.journal": ASSERTED.format(first="10.00", second="15")},
        stdout="ok: 2 transactions\n",
    ),
    Case(
        id="assertions-fail",
        requirement="assertions",
        kind="core",
        intent="Every assertion that fails is reported, by line, with minus signs.",
        argv=["check", "b.journal"],
        files={"b.journal": ASSERTED.format(first="(10.00)", second="15.01")},
        status=1,
        stderr="""\
error: b.journal:2: balance of Assets:Cash is 15.00, not 15.01
error: b.journal:5: balance of Assets:Cash is 10.00, not -10.00
""",
    ),
    Case(
        id="assertions-come-last",
        requirement="assertions",
        kind="boundary",
        intent="Assertions are not looked at while there are other problems.",
        argv=["balance", "b.journal"],
        files={"b.journal": ASSERTED.format(first="99", second="99") + "2024-03-01\n"},
        status=1,
        stderr="error: b.journal:9: invalid transaction header\n",
    ),
    Case(
        id="assertion-without-amount",
        requirement="assertions",
        kind="error",
        intent="An assertion needs an amount in front of it, and an amount behind the sign.",
        argv=["check", "b.journal"],
        files={"b.journal": "2024-01-01 Start\n  A  = 50.00\n  B  1 = x\n  C\n"},
        status=1,
        stderr="error: b.journal:2: invalid amount '= 50.00'\nerror: b.journal:3: invalid amount '1 = x'\n",
    ),
    Case(
        id="assertions-in-reports",
        requirement="assertions",
        kind="integration",
        intent="Reports read asserted journals; the time selected does not change what an assertion sees.",
        argv=["balance", "b.journal", "Assets", "--begin", "2024-02-01"],
        files={"b.journal": ASSERTED.format(first="10.00", second="15.00")},
        stdout="""\
          5.00  Assets:Cash
--------------
          5.00
""",
    ),
]
