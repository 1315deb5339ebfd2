#!/bin/bash
# Adds the register and the two date options to what round 1 left.
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
    """def print_balance(transactions: list[Transaction], options: argparse.Namespace) -> None:
    balances: dict[str, int] = defaultdict(int)
    for transaction in transactions:
        for posting in transaction.postings:
            if covers(options.account, posting.account):
                balances[posting.account] += posting.cents or 0
""",
    """def in_time(transaction: Transaction, options: argparse.Namespace) -> bool:
    after_begin = options.begin is None or transaction.day >= options.begin
    return after_begin and (options.end is None or transaction.day < options.end)


def select(
    transactions: list[Transaction], options: argparse.Namespace
) -> Iterator[tuple[Transaction, Posting]]:
    \"\"\"Yield the postings the options ask for, by date.\"\"\"
    for transaction in sorted(transactions, key=lambda transaction: transaction.day):
        if in_time(transaction, options):
            for posting in transaction.postings:
                if covers(options.account, posting.account):
                    yield transaction, posting


def print_balance(transactions: list[Transaction], options: argparse.Namespace) -> None:
    balances: dict[str, int] = defaultdict(int)
    for _, posting in select(transactions, options):
        balances[posting.account] += posting.cents or 0
""",
)
swap(
    """COMMANDS = {"balance": print_balance}
""",
    """def print_register(transactions: list[Transaction], options: argparse.Namespace) -> None:
    total = 0
    for transaction, posting in select(transactions, options):
        total += posting.cents or 0
        description = f"{transaction.description[:24]:<24}"
        account = f"{posting.account[:24]:<24}"
        print(f"{transaction.day}  {description}  {account}  {show(posting.cents or 0):>12}  {show(total):>12}")


COMMANDS = {"balance": print_balance, "register": print_register}


def parse_day(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(text)
    return date.fromisoformat(text)
""",
)
swap(
    """    return parser
""",
    """    parser.add_argument("--begin", metavar="DATE", type=parse_day, help="leave out what is before DATE")
    parser.add_argument("--end", metavar="DATE", type=parse_day, help="leave out what is on or after DATE")
    return parser
""",
)
swap("from datetime import date\n", "from collections.abc import Iterator\nfrom datetime import date\n")
path.write_text(text, encoding="utf-8")
PY
