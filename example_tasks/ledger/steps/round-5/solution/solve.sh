#!/bin/bash
# Makes --end inclusive; adds price lines and --in, with the arithmetic in a module of its own.
set -euo pipefail
cp "$(dirname "$0")/prices.py" prices.py
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
swap("transaction.day < options.end", "transaction.day <= options.end")
swap("leave out what is on or after DATE", "leave out what is after DATE")

# Price lines.
swap(
    """def parse_journal(text: str) -> list[Transaction]:
    transactions: list[Transaction] = []
""",
    """class Journal(NamedTuple):
    \"\"\"All that the file says.\"\"\"

    transactions: list[Transaction]
    prices: list[Price]


def parse_price_line(line: int, text: str) -> Price:
    try:
        return parse_price(text)
    except ValueError:
        raise JournalError(line, "invalid price") from None


def parse_journal(text: str) -> Journal:
    transactions: list[Transaction] = []
    prices: list[Price] = []
""",
)
swap(
    """            current.complete()
        current = parse_header(number, content)
        transactions.append(current)
    if current is not None:
        current.complete()
    return transactions
""",
    """            current.complete()
            current = None
        if content.split()[0] == "P":
            prices.append(parse_price_line(number, content))
            continue
        current = parse_header(number, content)
        transactions.append(current)
    if current is not None:
        current.complete()
    return Journal(transactions, prices)
""",
)
swap(
    """def select(
    transactions: list[Transaction], options: argparse.Namespace
) -> Iterator[tuple[Transaction, Posting]]:
""",
    """def select(journal: Journal, options: argparse.Namespace) -> Iterator[tuple[Transaction, Posting]]:
""",
)
swap("in sorted(transactions, key=", "in sorted(journal.transactions, key=")
swap(
    "def print_register(transactions: list[Transaction], options",
    "def print_register(journal: Journal, options",
)
swap(
    "for transaction, posting in select(transactions, options)",
    "for transaction, posting in select(journal, options)",
)
swap("        transactions = parse_journal(", "        journal = parse_journal(")

# Conversion.
swap(
    """def print_balance(transactions: list[Transaction], options: argparse.Namespace) -> None:
    balances: dict[tuple[str, str], int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    for _, posting in select(transactions, options):
        account = ":".join(posting.account.split(":")[: options.depth])
        balances[account, posting.currency] += posting.cents or 0
        totals[posting.currency] += posting.cents or 0
""",
    """class MissingPrice(Exception):
    \"\"\"A currency is held that cannot be converted.\"\"\"


def print_converted(
    balances: dict[tuple[str, str], int], target: str, rates: dict[str, Fraction]
) -> None:
    missing = sorted({currency for (_, currency), cents in balances.items() if cents and currency not in rates})
    if missing:
        raise MissingPrice(f"no price for {missing[0]} in {target}")
    converted: dict[str, Fraction] = defaultdict(Fraction)
    for (account, currency), cents in balances.items():
        if cents:
            converted[account] += cents * rates[currency]
    for account, exact in sorted(converted.items()):
        cents = round_cents(exact)
        if cents:
            print(f"{show_bracketed(cents, target):>14}  {account}")
    print("-" * 14)
    total = round_cents(sum(converted.values(), Fraction(0)))
    print(f"{show_bracketed(total, target):>14}")


def print_balance(journal: Journal, options: argparse.Namespace) -> None:
    balances: dict[tuple[str, str], int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    for _, posting in select(journal, options):
        account = ":".join(posting.account.split(":")[: options.depth])
        balances[account, posting.currency] += posting.cents or 0
        totals[posting.currency] += posting.cents or 0
    if options.target:
        print_converted(balances, options.target, rates_to(options.target, journal.prices, options.end))
        return
""",
)
swap(
    """

def build_parser(""",
    """

def parse_currency(text: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise ValueError(text)
    return text


def build_parser(""",
)
swap(
    """    return parser
""",
    """    parser.add_argument("--in", metavar="CUR", type=parse_currency, dest="target", help="balance: convert to CUR")
    return parser
""",
)
swap(
    """        parser.error("--depth is for balance only")
""",
    """        parser.error("--depth is for balance only")
    if options.target is not None and options.command != "balance":
        parser.error("--in is for balance only")
""",
)
swap(
    """    COMMANDS[options.command](transactions, options)
    return 0
""",
    """    try:
        COMMANDS[options.command](journal, options)
    except MissingPrice as error:
        print(f"error: {options.file}: {error}", file=sys.stderr)
        return 1
    return 0
""",
)
swap(
    """from datetime import date
""",
    """from datetime import date
from fractions import Fraction
from typing import NamedTuple

from prices import Price, parse_price, rates_to, round_cents
""",
)
path.write_text(text, encoding="utf-8")
PY
