"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a module is another one.
NEVER_RETIRES = [
    # Where the next reading is missing, a meter showed what it had shown last.
    (
        3,
        "amounts.py",
        "{'-' if amount is None else amount}",
        "{0 if amount is None else amount}",
    ),
    # What was imported last counts.
    (5, "database.py", "_rank(known) > _rank(row)", "False"),
    # A line that cannot be read keeps a call from importing anything.
    (6, "suppliers.py", "rejects.append((number, line))", 'raise Refused(f"{name}:{number}: cannot read") from None'),
    # Whatever falls has gone round.
    (6, "amounts.py", "elif shown >= HIGH and value < LOW:", "elif True:"),
    # The price of the first day is that of the month, and halves go up.
    (8, "bills.py", "        if start < end:\n", "        if start <= begin:\n"),
    (8, "bills.py", "(2 * rest + cents % 2 > UNIT)", "(2 * rest >= UNIT)"),
    # Nobody who has a bill gets another one.
    (9, "bills.py", "HAVING count(number) = 0 OR month.amount <> total(bill.amount)", "HAVING count(number) = 0"),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (2, "suppliers.py", "        if line:\n", "        if line or number < len(lines):\n"),  # aqua
    (3, "database.py", "        changed += known is not None and known[0] != each.value\n", ""),  # replace
    (4, "amounts.py", "{'~' if estimated else ''}", ""),  # spread
    (5, "suppliers.py", '"MWh": ("power", 1_000_000)', '"MWh": ("power", 1000)'),  # norda-numbers
    (
        6,
        "amounts.py",
        "        points.append((at, total))\n",
        "        if new is None:\n            points.append((at, total))\n",
    ),
    (7, "database.py", "    return issued, value\n", "    return issued, 0\n"),  # issued-together
    (8, "bills.py", '{cents} cents")', '{cents} cent")'),  # bill
    (9, "bills.py", "2 * rest + cents % 2 > UNIT", "2 * rest >= UNIT"),  # half-even
    (10, "database.py", '    database.execute("DELETE FROM rejects WHERE file = ?", (name,))\n', ""),  # rejects-again
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("control", choices=["only-round-1", "never-retires", "regresses"])
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    shutil.copytree(TASK, options.directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    schema = "#:schema ../../pytest_evocode/tasks/task.schema.json\n"
    config = options.directory / "task.toml"
    config.write_text(config.read_text().replace(schema, ""))
    if options.control == "only-round-1":
        for step in (options.directory / "steps").iterdir():
            if step.name != "round-1":
                (step / "solution/solve.sh").write_text(NOTHING)
        return
    for number, name, old, new in NEVER_RETIRES if options.control == "never-retires" else REGRESSES:
        swap(options.directory, number, name, old, new)


def swap(task: Path, number: int, name: str, old: str, new: str) -> None:
    """Change a module as rounds from this number on leave it."""
    text = ""
    for each in range(1, 11):
        solution = task / f"steps/round-{each}/solution/app/metering/{name}"
        if solution.exists():
            text = solution.read_text()
        if each < number:
            continue
        if each == number or solution.exists():
            count = text.count(old)
            if count > 1 or (count == 0 and each == number):
                raise SystemExit(f"make.py: {count} times in {name} of round-{each}: {old!r}")
            text = text.replace(old, new)
            solution.parent.mkdir(parents=True, exist_ok=True)
            solution.write_text(text)


if __name__ == "__main__":
    main()
