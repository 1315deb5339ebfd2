#!/bin/bash
# Brackets in `balance` and in the journal, and --depth.
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
    """    match = AMOUNT.fullmatch(text)
    if match is None:
        raise JournalError(line, f"invalid amount '{text}'")
    sign, whole, decimals, currency = match.groups()
    cents = int(whole) * 100 + int((decimals or "").ljust(2, "0"))
    return (-cents if sign else cents), currency or ""
""",
    """    bracketed = text.startswith("(") and text.endswith(")")
    match = AMOUNT.fullmatch(text[1:-1] if bracketed else text)
    if match is None or (bracketed and match.group(1)):
        raise JournalError(line, f"invalid amount '{text}'")
    sign, whole, decimals, currency = match.groups()
    cents = int(whole) * 100 + int((decimals or "").ljust(2, "0"))
    return (-cents if sign or bracketed else cents), currency or ""
""",
)
swap(
    """def parse_amount(""",
    """def show_bracketed(cents: int, currency: str = "") -> str:
    return f"({show(-cents, currency)})" if cents < 0 else show(cents, currency)


def parse_amount(""",
)
swap(
    """        balances[posting.account, posting.currency] += posting.cents or 0
""",
    """        account = ":".join(posting.account.split(":")[: options.depth])
        balances[account, posting.currency] += posting.cents or 0
""",
)
swap("print(f\"{show(cents, currency):>14}  {account}\")", "print(f\"{show_bracketed(cents, currency):>14}  {account}\")")
swap("print(f\"{show(cents, currency):>14}\")", "print(f\"{show_bracketed(cents, currency):>14}\")")
swap(
    """

def build_parser(""",
    """

def parse_depth(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text) or int(text) < 1:
        raise ValueError(text)
    return int(text)


def build_parser(""",
)
swap(
    """    return parser
""",
    """    parser.add_argument("--depth", metavar="N", type=parse_depth, help="balance: at most N levels of accounts")
    return parser
""",
)
swap(
    """    options = build_parser().parse_intermixed_args()
""",
    """    parser = build_parser()
    options = parser.parse_intermixed_args()
    if options.depth is not None and options.command != "balance":
        parser.error("--depth is for balance only")
""",
)
path.write_text(text, encoding="utf-8")
PY
