"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 8
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a module is another one.
NEVER_RETIRES = [
    # A tab is one column.
    (4, "assembler.py", 'column // 8 * 8 + 8 if character == "\\t" else column + 1', "column + 1"),
    # Quotients are cut off towards 0.
    (4, "machine.py", "rules < 4", "rules < 9"),
    # What does not fit keeps its lower 16 bits.
    (5, "machine.py", "rules < 5", "rules < 9"),
    # A fault ends with its address.
    (6, "codes.py", 'return f", {name}:{line}"', 'return ""'),
    # Stitches cost nothing.
    (
        7,
        "machine.py",
        '                check(value <= self.budget, "budget")\n                self.budget -= value\n',
        "                pass\n",
    ),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (2, "machine.py", "registers[register] < value", "registers[register] <= value"),  # compare
    (3, "machine.py", "value <= self.program.width - len(self.row)", "value <= self.program.width"),  # faults
    (4, "deck.py", "sealed(content[:-4]) == content", "len(content) > 4"),  # checksum
    (5, "assembler.py", "os.O_NOFOLLOW | ", ""),  # include-links
    (6, "codes.py", "DEEPEST_REPEAT = 8", "DEEPEST_REPEAT = 9"),  # repeat-errors
    (7, "codes.py", "33 <= byte <= 126", "32 <= byte <= 126"),  # fault-lines
    (8, "deck.py", "EDITION, program.rules, program.width", "EDITION, EDITION, program.width"),  # upgrade
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
    for change in NEVER_RETIRES if options.control == "never-retires" else REGRESSES:
        swap(options.directory, *change)


def swap(task: Path, number: int, name: str, old: str, new: str) -> None:
    """Change a module as rounds from this number on leave it."""
    text = ""
    for each in range(1, ROUNDS + 1):
        module = task / f"steps/round-{each}/solution/knit/{name}"
        if module.exists():
            text = module.read_text()
        if each == number or (each > number and module.exists()):
            if old not in text:
                raise SystemExit(f"make.py: not in {name} of round-{each}: {old!r}")
            text = text.replace(old, new)
            module.parent.mkdir(parents=True, exist_ok=True)
            module.write_text(text)


if __name__ == "__main__":
    main()
