#!/bin/bash
# Prices in both directions and over other currencies, all that are missing, and `register --in`.
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


# All that are missing.
swap(
    """class MissingPrice(Exception):
    \"\"\"A currency is held that cannot be converted.\"\"\"
""",
    """class MissingPrices(Exception):
    \"\"\"Currencies that cannot be converted.\"\"\"

    def __init__(self, currencies: set[str], target: str) -> None:
        super().__init__(f"{len(currencies)} prices are missing")
        self.messages = [f"no price for {currency} in {target}" for currency in sorted(currencies)]
""",
)
swap(
    """    missing = sorted({currency for (_, currency), cents in balances.items() if cents and currency not in rates})
    if missing:
        raise MissingPrice(f"no price for {missing[0]} in {target}")
""",
    """    missing = {currency for (_, currency), cents in balances.items() if cents and currency not in rates}
    if missing:
        raise MissingPrices(missing, target)
""",
)
swap(
    """    except MissingPrice as error:
        print(f"error: {options.file}: {error}", file=sys.stderr)
""",
    """    except MissingPrices as error:
        for message in error.messages:
            print(f"error: {options.file}: {message}", file=sys.stderr)
""",
)

# register --in
swap(
    """def print_register(journal: Journal, options: argparse.Namespace) -> None:
    totals: dict[str, int] = defaultdict(int)
    for transaction, posting in select(journal, options):
        totals[posting.currency] += posting.cents or 0
        cents = posting.cents or 0
        amount = show(abs(cents), posting.currency)
        debit, credit = ("", amount) if cents < 0 else (amount, "")
        total = show_bracketed(totals[posting.currency], posting.currency)
        description = f"{transaction.description[:24]:<24}"
        account = f"{posting.account[:24]:<24}"
        print(f"{transaction.day}  {description}  {account}  {debit:>12}  {credit:>12}  {total:>12}")
""",
    """class Entry(NamedTuple):
    \"\"\"A line of the register; its amount is in cents, and not rounded yet.\"\"\"

    transaction: Transaction
    account: str
    exact: Fraction
    currency: str


def convert_entries(entries: list[Entry], target: str, prices: list[Price]) -> list[Entry]:
    days = {entry.transaction.day for entry in entries}
    rates = {day: rates_to(target, prices, day) for day in days}
    converted = []
    missing = set()
    for entry in entries:
        rate = rates[entry.transaction.day].get(entry.currency)
        if entry.exact and rate is None:
            missing.add(entry.currency)
        converted.append(entry._replace(exact=entry.exact * (rate or 0), currency=target))
    if missing:
        raise MissingPrices(missing, target)
    return converted


def print_register(journal: Journal, options: argparse.Namespace) -> None:
    entries = [
        Entry(transaction, posting.account, Fraction(posting.cents or 0), posting.currency)
        for transaction, posting in select(journal, options)
    ]
    if options.target:
        entries = convert_entries(entries, options.target, journal.prices)
    totals: dict[str, Fraction] = defaultdict(Fraction)
    for entry in entries:
        totals[entry.currency] += entry.exact
        cents = round_cents(entry.exact)
        amount = show(abs(cents), entry.currency)
        debit, credit = ("", amount) if cents < 0 else (amount, "")
        total = show_bracketed(round_cents(totals[entry.currency]), entry.currency)
        description = f"{entry.transaction.description[:24]:<24}"
        account = f"{entry.account[:24]:<24}"
        print(f"{entry.transaction.day}  {description}  {account}  {debit:>12}  {credit:>12}  {total:>12}")
""",
)
swap(
    """    if options.target is not None and options.command != "balance":
        parser.error("--in is for balance only")
""",
    """    if options.target is not None and options.command not in ("balance", "register"):
        parser.error("--in is for balance and register only")
""",
)
swap("""help="balance: convert to CUR")""", """help="convert to CUR")""")
path.write_text(text, encoding="utf-8")

# The way of a price.
path = Path("prices.py")
text = path.read_text(encoding="utf-8")
start = text.index("def rates_to(")
end = text.index("def round_cents(")
text = (
    text[:start]
    + '''def rates_to(target: str, prices: Iterable[Price], day: date | None) -> dict[str, Fraction]:
    """The rates into `target` that hold on `day` (None: after all prices), by currency, by the shortest ways."""
    steps: dict[str, dict[str, Fraction]] = defaultdict(dict)
    for price in sorted(prices, key=lambda price: price.day):
        if day is None or price.day <= day:
            steps[price.currency][price.target] = price.rate
            steps[price.target][price.currency] = 1 / price.rate
    rates = {"": Fraction(1), target: Fraction(1)}
    reached = [target]
    while reached:
        further = []
        # Sorted, so that of equally short ways the first in alphabetical order is found.
        for near in sorted(reached):
            for currency in steps[near]:
                if currency not in rates:
                    rates[currency] = steps[currency][near] * rates[near]
                    further.append(currency)
        reached = further
    return rates


'''
    + text[end:]
)
swap("import re\n", "import re\nfrom collections import defaultdict\n")
path.write_text(text, encoding="utf-8")
PY
