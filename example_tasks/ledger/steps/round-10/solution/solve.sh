#!/bin/bash
# Includes other files, and leaves out the opening balances of all years but the first.
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


# A line is known by its file, and sorts as it is read.
text = text.replace("line: int", "line: Line")
swap("tuple[int, int, str] | None = None  # line, cents, currency", "tuple[Line, int, str] | None = None")
swap(
    """class JournalError(Exception):
    \"\"\"Something in the journal is wrong, at a line.\"\"\"
""",
    """class Line(NamedTuple):
    \"\"\"Which line it is: of all that are read, and of its file.\"\"\"

    order: int
    file: str
    number: int


class JournalError(Exception):
    \"\"\"Something in the journal is wrong, at a line.\"\"\"
""",
)
swap(
    """print(f"error: {options.file}:{problem.line}: {problem.message}", file=sys.stderr)""",
    """print(f"error: {problem.line.file}:{problem.line.number}: {problem.message}", file=sys.stderr)""",
)

# include
swap(
    """    def read_line(self, number: int, line: str) -> None:
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
""",
    """    def read_file(self, name: str, text: str) -> None:
        self.skipping = False
        for number, content in enumerate(text.split("\\n"), start=1):
            self.lines_read += 1
            self.read_line(Line(self.lines_read, name, number), content)
        self.current = None

    def read_line(self, line: Line, text: str) -> None:
        content = text.strip()
        if not content or content.startswith(";"):
            return
        try:
            if text[0].isspace():
                self.read_posting(line, content)
            else:
                self.read_heading(line, content)
        except JournalError as problem:
            self.problems.append(problem)

    def read_posting(self, line: Line, content: str) -> None:
        if self.skipping:
            return
        if self.current is None:
            raise JournalError(line, "posting outside a transaction")
        try:
            self.current.postings.append(parse_posting(line, content))
        except JournalError:
            self.current.broken = True
            raise

    def read_heading(self, line: Line, content: str) -> None:
        self.current = None
        self.skipping = True
        keyword, *rest = content.split(maxsplit=1)
        if keyword == "P":
            self.journal.prices.append(parse_price_line(line, content))
        elif keyword == "include" and rest:
            self.include(line, rest[0])
        else:
            self.current = parse_header(line, content)
            self.journal.transactions.append(self.current)
        self.skipping = False

    def include(self, line: Line, name: str) -> None:
        path = name if name.startswith("/") else line.file[: line.file.rfind("/") + 1] + name
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise JournalError(line, f"cannot read {path}") from None
        file = os.path.realpath(path)
        if file not in self.known:
            self.known.add(file)
            self.read_file(path, text)
""",
)
swap(
    """        self.skipping = False

    def read_file(""",
    """        self.skipping = False
        self.known: set[str] = set()
        self.lines_read = 0

    def read_file(""",
)
swap(
    """def parse_journal(text: str) -> Journal:
    reader = Reader()
    for number, line in enumerate(text.split("\\n"), start=1):
        reader.read_line(number, line)
    return reader.finish()
""",
    """def read_journal(name: str) -> Journal:
    reader = Reader()
    text = read(name)
    if name != "-":
        reader.known.add(os.path.realpath(name))
    reader.read_file(name, text)
    return reader.finish()
""",
)
swap("        journal = parse_journal(read(options.file))\n", "        journal = read_journal(options.file)\n")

# Opening balances.
swap(
    """        problems = self.problems or failed_assertions(self.journal)
        if problems:
            raise InvalidJournal(problems)
        return self.journal
""",
    """        if self.problems:
            raise InvalidJournal(self.problems)
        journal = self.journal._replace(transactions=without_repetitions(self.journal.transactions))
        problems = failed_assertions(journal)
        if problems:
            raise InvalidJournal(problems)
        return journal


def without_repetitions(transactions: list[Transaction]) -> list[Transaction]:
    \"\"\"Leave out opening balances that repeat what is read of the time before them.\"\"\"
    first = min((transaction.day for transaction in transactions), default=None)
    return [each for each in transactions if each.day == first or each.description != "Opening balances"]
""",
)
swap("import argparse\nimport re\n", "import argparse\nimport os\nimport re\n")
swap("from fractions import Fraction\n", "from fractions import Fraction\nfrom pathlib import Path\n")
path.write_text(text, encoding="utf-8")
PY
