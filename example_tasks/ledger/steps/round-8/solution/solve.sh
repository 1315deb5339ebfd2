#!/bin/bash
# Assertions with what is below, the singular of `check`, and `close`. The wish cannot be had: rounded figures do not add up.
set -euo pipefail
python3 - <<'PY'
from pathlib import Path

path = Path("ledger.py")
text = path.read_text(encoding="utf-8")


def swap(old, new):
    global text
    if text.count(old) != 1:
        raise SystemExit(f"solve.sh: expected exactly once in {path}: {old!r}")
    text = text.replace(old, new)


# The correction.
swap(
    """            balances[posting.account, posting.currency] += posting.cents or 0
            if posting.assertion is None:
""",
    """            for account in with_parents(posting.account):
                balances[account, posting.currency] += posting.cents or 0
            if posting.assertion is None:
""",
)
swap(
    """def failed_assertions(""",
    """def with_parents(account: str) -> Iterator[str]:
    parts = account.split(":")
    for depth in range(1, len(parts) + 1):
        yield ":".join(parts[:depth])


def failed_assertions(""",
)

# check
swap(
    """    print(f"ok: {len(journal.transactions)} transactions")
""",
    """    number = len(journal.transactions)
    print(f"ok: {number} transaction" if number == 1 else f"ok: {number} transactions")
""",
)

# close
swap(
    """COMMANDS = {"balance": print_balance, "check": print_check, "register": print_register}
""",
    """def is_carried_over(account: str) -> bool:
    return account != OPENING and not any(covers(each, account) for each in ("Expenses", "Income"))


def print_close(journal: Journal, options: argparse.Namespace) -> None:
    balances: dict[tuple[str, str], int] = defaultdict(int)
    for _, posting in select(journal, options):
        if is_carried_over(posting.account):
            balances[posting.account, posting.currency] += posting.cents or 0
    left = [(account, show(cents, currency)) for (account, currency), cents in sorted(balances.items()) if cents]
    if left:
        print(f"{options.end + timedelta(days=1)} Opening balances")
        for account, amount in left:
            print(f"    {account}  {amount}")
        print(f"    {OPENING}")


COMMANDS = {"balance": print_balance, "check": print_check, "close": print_close, "register": print_register}
""",
)
swap(
    """        parser.error("check takes nothing but FILE")
""",
    """        parser.error("check takes nothing but FILE")
    if options.command == "close" and (options.account or options.begin or not options.end):
        parser.error("close takes FILE and --end")
""",
)
swap("ASSERTION = ", "OPENING = \"Equity:Opening\"\nASSERTION = ")
swap("from datetime import date\n", "from datetime import date, timedelta\n")
path.write_text(text, encoding="utf-8")
PY
