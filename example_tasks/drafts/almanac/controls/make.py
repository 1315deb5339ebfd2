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
    # What is printed has the bytes of the files, and a byte order mark is part of a name.
    (3, "files.py", '    if kind == "tsv":\n        try:\n', '    if kind == "none":\n        try:\n'),
    (3, "files.py", 'removeprefix(MARK if kind == "tsv" else b"")', 'removeprefix(b"")'),
    (3, "commands.py", '"".join(output).encode()', '"".join(output).encode("latin-1", "replace")'),
    # In the notebook every date is that of the evening.
    (4, "files.py", "(date, None) if date < NOTEBOOK_MOMENTS else (None, date)", "(date, None)"),
    # A file takes the place of the one before, whatever it has.
    (5, "commands.py", "if lost and not replace:", "if lost and False:"),
    # Exposures are cut off, and a comma ends them.
    (6, "files.py", "(2 * amount + parts) // (2 * parts)", "amount // parts"),
    # What is of one moment is in the order of the import.
    (7, "database.py", 'GROUP BY name ORDER BY name"', 'GROUP BY name ORDER BY place"'),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (  # import-again
        2,
        "commands.py",
        '        if before == data:\n            output.append(f"{path}: unchanged\\n")\n            continue\n',
        "",
    ),
    (3, "files.py", 'century = "20" if day[4:] < "50" else "19"', 'century = "20"'),  # cards
    (4, "files.py", 'f"{last.note} {text}"', 'f"{last.note}{text}"'),  # object
    (5, "commands.py", "first <= each.night <= last", "first < each.night <= last"),  # period
    (6, "files.py", "self._pass_over(*together)", "self._pass_over(together[0])"),  # leftovers
    (7, "commands.py", "default=0):04}", "default=0)}"),  # add
    (8, "database.py", " if row in there]", "]"),  # prefer-gone
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
    """Change a module as rounds from this number on leave it."""
    text = ""
    for each in range(1, ROUNDS + 1):
        solution = task / f"steps/round-{each}/solution/app/observatory/{name}"
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
