#!/bin/bash
# Rounds halves to even, and splits the register's amount into debit and credit.
set -euo pipefail
python3 - <<'PY'
from pathlib import Path


def swap(name, old, new):
    path = Path(name)
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"solve.sh: expected exactly once in {name}: {old!r}")
    path.write_text(text.replace(old, new), encoding="utf-8")


swap(
    "prices.py",
    """    \"\"\"Round to a whole cent, halves away from zero.\"\"\"
    rounded = int(abs(cents) + Fraction(1, 2))
    return -rounded if cents < 0 else rounded
""",
    """    \"\"\"Round to a whole cent, halves to the even one.\"\"\"
    return round(cents)
""",
)
swap(
    "ledger.py",
    """        amount = show(posting.cents or 0, posting.currency)
        total = show(totals[posting.currency], posting.currency)
""",
    """        cents = posting.cents or 0
        amount = show(abs(cents), posting.currency)
        debit, credit = ("", amount) if cents < 0 else (amount, "")
        total = show_bracketed(totals[posting.currency], posting.currency)
""",
)
swap("ledger.py", "{amount:>12}  {total:>12}", "{debit:>12}  {credit:>12}  {total:>12}")
PY
