"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
NOTHING = "#!/bin/bash\nexit 0\n"
SWAP = """
python3 - <<'PY'
from pathlib import Path

path, old, new = Path({name!r}), {old!r}, {new!r}
text = path.read_text(encoding="utf-8")
if text.count(old) != 1:
    raise SystemExit(f"control: expected exactly once in {{path}}: {{old!r}}")
path.write_text(text.replace(old, new), encoding="utf-8")
PY
"""

# What is changed behind the solution of which round, and stays so.
NEVER_RETIRES = [
    # Minus signs in balance.
    (
        4,
        "ledger.py",
        'return f"({show(-cents, currency)})" if cents < 0 else show(cents, currency)',
        "return show(cents, currency)",
    ),
    # --end is exclusive.
    (5, "ledger.py", "transaction.day <= options.end", "transaction.day < options.end"),
    # Halves are rounded away from zero.
    (6, "prices.py", "return round(cents)", "return int(abs(cents) + Fraction(1, 2)) * (-1 if cents < 0 else 1)"),
    # Only the first problem is reported.
    (7, "ledger.py", "for problem in error.problems:", "for problem in error.problems[:1]:"),
    # Assertions of the very account.
    (8, "ledger.py", "for account in with_parents(posting.account):", "for account in [posting.account]:"),
]
# Each round breaks one requirement of an earlier one.
REGRESSES = [
    (2, "ledger.py", 'account.startswith(selected + ":")', "account.startswith(selected)"),  # account-filter
    (3, "ledger.py", "transaction.day >= options.begin", "transaction.day > options.begin"),  # begin
    (4, "ledger.py", 'off = ", ".join(', 'off = "; ".join('),  # currencies
    (5, "ledger.py", "[: options.depth]", "[: (options.depth or 98) + 1]"),  # depth
    (6, "prices.py", "price.day <= end", "price.day < end"),  # prices
    (7, "prices.py", "return round(cents)", "return int(cents)"),  # rounding
    (8, "ledger.py", "self.current.broken = True", "pass"),  # problems
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("control", choices=["only-round-1", "never-retires", "regresses"])
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    shutil.copytree(TASK, options.directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = options.directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    steps = options.directory / "steps"
    if options.control == "only-round-1":
        for script in steps.glob("*/solution/solve.sh"):
            if script.parts[-3] != "round-1":
                script.write_text(NOTHING)
        return
    for number, name, old, new in NEVER_RETIRES if options.control == "never-retires" else REGRESSES:
        script = steps / f"round-{number}/solution/solve.sh"
        script.write_text(script.read_text() + SWAP.format(name=name, old=old, new=new))


if __name__ == "__main__":
    main()
