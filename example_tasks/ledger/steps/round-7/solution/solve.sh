#!/bin/bash
# Collects problems instead of stopping at the first; adds assertions and `check`.
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


# All problems at once: the reader notes them, and checks whole transactions when it has read everything.
swap(
    """

class Posting:
""",
    """

class InvalidJournal(Exception):
    \"\"\"All that is wrong in the journal, by line.\"\"\"

    def __init__(self, problems: list[JournalError]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = sorted(problems, key=lambda problem: problem.line)


class Posting:
""",
)
swap(
    """        self.postings: list[Posting] = []
""",
    """        self.postings: list[Posting] = []
        self.broken = False
""",
)
start = text.index("def parse_journal(")
end = text.index("def covers(")
text = (
    text[:start]
    + '''class Reader:
    """Reads a journal line by line and notes what is wrong with it."""

    def __init__(self) -> None:
        self.journal = Journal([], [])
        self.problems: list[JournalError] = []
        self.current: Transaction | None = None
        self.skipping = False

    def read_line(self, number: int, line: str) -> None:
        content = line.strip()
        if not content or content.startswith(";"):
            return
        try:
            if line[0].isspace():
                self.read_posting(number, content)
            else:
                self.read_heading(number, content)
        except JournalError as problem:
            self.problems.append(problem)

    def read_posting(self, number: int, content: str) -> None:
        if self.skipping:
            return
        if self.current is None:
            raise JournalError(number, "posting outside a transaction")
        try:
            self.current.postings.append(parse_posting(number, content))
        except JournalError:
            self.current.broken = True
            raise

    def read_heading(self, number: int, content: str) -> None:
        self.current = None
        self.skipping = True
        if content.split()[0] == "P":
            self.journal.prices.append(parse_price_line(number, content))
        else:
            self.current = parse_header(number, content)
            self.journal.transactions.append(self.current)
        self.skipping = False

    def finish(self) -> Journal:
        for transaction in self.journal.transactions:
            if not transaction.broken:
                try:
                    transaction.complete()
                except JournalError as problem:
                    self.problems.append(problem)
        problems = self.problems or failed_assertions(self.journal)
        if problems:
            raise InvalidJournal(problems)
        return self.journal


def failed_assertions(journal: Journal) -> list[JournalError]:
    problems = []
    balances: dict[tuple[str, str], int] = defaultdict(int)
    for transaction in sorted(journal.transactions, key=lambda transaction: transaction.day):
        for posting in transaction.postings:
            balances[posting.account, posting.currency] += posting.cents or 0
            if posting.assertion is None:
                continue
            line, cents, currency = posting.assertion
            actual = balances[posting.account, currency]
            if actual != cents:
                found, wanted = show(actual, currency), show(cents, currency)
                problems.append(JournalError(line, f"balance of {posting.account} is {found}, not {wanted}"))
    return problems


def parse_journal(text: str) -> Journal:
    reader = Reader()
    for number, line in enumerate(text.split("\\n"), start=1):
        reader.read_line(number, line)
    return reader.finish()


'''
    + text[end:]
)
swap(
    """    except JournalError as error:
        print(f"error: {options.file}:{error.line}: {error.message}", file=sys.stderr)
        return 1
""",
    """    except InvalidJournal as error:
        for problem in error.problems:
            print(f"error: {options.file}:{problem.line}: {problem.message}", file=sys.stderr)
        return 1
""",
)

# Assertions.
swap(
    """        self.currency = currency
""",
    """        self.currency = currency
        self.assertion: tuple[int, int, str] | None = None  # line, cents, currency
""",
)
start = text.index("def parse_posting(")
end = text.index("class Journal(")
text = (
    text[:start]
    + '''def parse_posting(line: int, text: str) -> Posting:
    account, *rest = SEPARATOR.split(text, maxsplit=1)
    if not rest:
        return Posting(account, None)
    stated = rest[0].strip()
    amount, *asserted = ASSERTION.split(stated, maxsplit=1)
    try:
        posting = Posting(account, *parse_amount(line, amount))
        if asserted:
            posting.assertion = (line, *parse_amount(line, asserted[0]))
    except JournalError:
        raise JournalError(line, f"invalid amount '{stated}'") from None
    return posting


'''
    + text[end:]
)
swap(
    """SEPARATOR = """,
    """ASSERTION = re.compile(r"\\s+=\\s+")
SEPARATOR = """,
)

# check
swap(
    """COMMANDS = {"balance": print_balance, "register": print_register}
""",
    """def print_check(journal: Journal, options: argparse.Namespace) -> None:
    print(f"ok: {len(journal.transactions)} transactions")


COMMANDS = {"balance": print_balance, "check": print_check, "register": print_register}
""",
)
swap(
    """        parser.error("--in is for balance only")
""",
    """        parser.error("--in is for balance only")
    if options.command == "check" and (options.account or options.begin or options.end):
        parser.error("check takes nothing but FILE")
""",
)
path.write_text(text, encoding="utf-8")
PY
