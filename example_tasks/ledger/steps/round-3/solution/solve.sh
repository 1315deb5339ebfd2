#!/bin/bash
# Gives every posting a currency; sums become tables from currency to cents.
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


swap(
    """(-?)([0-9]+)(?:\\.([0-9]{1,2}))?")""",
    """(-?)([0-9]+)(?:\\.([0-9]{1,2}))?(?: ([A-Z]{3}))?")""",
)
swap(
    """    def __init__(self, account: str, cents: int | None) -> None:
        self.account = account
        self.cents = cents
""",
    """    def __init__(self, account: str, cents: int | None, currency: str = "") -> None:
        self.account = account
        self.cents = cents
        self.currency = currency
""",
)
swap(
    """        rest = sum(posting.cents or 0 for posting in self.postings)
        if open_postings:
            open_postings[0].cents = -rest
        elif rest:
            raise JournalError(self.line, f"transaction does not balance: off by {show(rest)}")


def show(cents: int) -> str:
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def parse_amount(line: int, text: str) -> int:
""",
    """        sums: dict[str, int] = defaultdict(int)
        for posting in self.postings:
            sums[posting.currency] += posting.cents or 0
        rest = sorted((currency, cents) for currency, cents in sums.items() if cents)
        if open_postings:
            place = self.postings.index(open_postings[0])
            account = open_postings[0].account
            inferred = [Posting(account, -cents, currency) for currency, cents in rest]
            self.postings[place : place + 1] = inferred or [Posting(account, 0)]
        elif rest:
            off = ", ".join(show(cents, currency) for currency, cents in rest)
            raise JournalError(self.line, f"transaction does not balance: off by {off}")


def show(cents: int, currency: str = "") -> str:
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d} {currency}".rstrip()


def parse_amount(line: int, text: str) -> tuple[int, str]:
""",
)
swap("    sign, whole, decimals = match.groups()", "    sign, whole, decimals, currency = match.groups()")
swap("    return -cents if sign else cents\n", "    return (-cents if sign else cents), currency or \"\"\n")
swap(
    """    return Posting(account, parse_amount(line, amount[0].strip()) if amount else None)
""",
    """    return Posting(account, *parse_amount(line, amount[0].strip())) if amount else Posting(account, None)
""",
)
swap(
    """    balances: dict[str, int] = defaultdict(int)
    for _, posting in select(transactions, options):
        balances[posting.account] += posting.cents or 0
    for account, cents in sorted(balances.items()):
        if cents:
            print(f"{show(cents):>14}  {account}")
    print("-" * 14)
    print(f"{show(sum(balances.values())):>14}")
""",
    """    balances: dict[tuple[str, str], int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    for _, posting in select(transactions, options):
        balances[posting.account, posting.currency] += posting.cents or 0
        totals[posting.currency] += posting.cents or 0
    for (account, currency), cents in sorted(balances.items()):
        if cents:
            print(f"{show(cents, currency):>14}  {account}")
    print("-" * 14)
    for currency, cents in sorted(totals.items()):
        if cents:
            print(f"{show(cents, currency):>14}")
    if not any(totals.values()):
        print(f"{show(0):>14}")
""",
)
swap(
    """    total = 0
    for transaction, posting in select(transactions, options):
        total += posting.cents or 0
""",
    """    totals: dict[str, int] = defaultdict(int)
    for transaction, posting in select(transactions, options):
        totals[posting.currency] += posting.cents or 0
        amount = show(posting.cents or 0, posting.currency)
        total = show(totals[posting.currency], posting.currency)
""",
)
swap("{show(posting.cents or 0):>12}  {show(total):>12}", "{amount:>12}  {total:>12}")
path.write_text(text, encoding="utf-8")
PY
