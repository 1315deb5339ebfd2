"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 9
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a file is another one.
NEVER_RETIRES = [
    # Powers are as in the spreadsheet: the sign binds tighter, and powers go from left to right.
    (
        5,
        "lib/parser.js",
        "    if (!this.is('-')) return this.power();\n",
        "    if (!this.is('-')) return this.primary();\n",
    ),
    (5, "lib/parser.js", "let left = this.unary();", "let left = this.power();"),
    (
        5,
        "lib/parser.js",
        "left = this.binary(left, () => this.unary());",
        "left = this.binary(left, () => this.power());",
    ),
    (
        5,
        "lib/parser.js",
        "    const left = this.primary();\n    return this.is('^') ? this.binary(left, () => this.unary()) : left;\n",
        "    let left = this.unary();\n"
        "    while (this.is('^')) left = this.binary(left, () => this.unary());\n"
        "    return left;\n",
    ),
    # Halves go away from zero, and zeros have a minus sign.
    (6, "lib/machine.js", "evenHalves: true", "evenHalves: false"),
    (7, "lib/machine.js", "signedZero: false", "signedZero: true"),
    # A division by zero ends the program.
    (8, "lib/machine.js", "errorValues: true", "errorValues: false"),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (2, "lib/parser.js", "const column = this.at + 1;", "const column = this.at;"),  # syntax
    (3, "lib/machine.js", "return left >= right;", "return left > right;"),  # comparison
    (4, "lib/file.js", "if (reader.at !== body.length) throw new Damaged();", ""),  # damage
    (5, "lib/sheet.js", "/^[ \\t]*(#|$)/", "/^(#|$)/"),  # sheet
    (6, "lib/number.js", "if (format.startsWith('#')) ", ""),  # format
    (7, "lib/machine.js", "1: { evenHalves: false", "1: { evenHalves: true"),  # promise
    (8, "lib/machine.js", "this.steps > this.limit", "this.steps >= this.limit"),  # steps
    (9, "lib/machine.js", "given.find((value) => value instanceof ErrorValue) || ", ""),  # passing-on
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("control", choices=["only-round-1", "never-retires", "regresses"])
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    shutil.copytree(TASK, options.directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = options.directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    if options.control == "only-round-1":
        for step in (options.directory / "steps").iterdir():
            if step.name != "round-1":
                (step / "solution/solve.sh").write_text(NOTHING)
        return
    for number, name, old, new in NEVER_RETIRES if options.control == "never-retires" else REGRESSES:
        swap(options.directory, number, name, old, new)


def swap(task: Path, number: int, name: str, old: str, new: str) -> None:
    """Change a file as rounds from this number on leave it."""
    text = ""
    for each in range(1, ROUNDS + 1):
        path = task / f"steps/round-{each}/solution/files" / name
        has_own = path.exists()
        if has_own:
            text = path.read_text()
        if each < number or not (each == number or has_own):
            continue
        if each == number and old not in text:
            raise SystemExit(f"make.py: not in {name} of round-{each}: {old!r}")
        text = text.replace(old, new)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
