"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 8
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a program is another one.
NEVER_RETIRES = [
    # The checksum is that of the content or target alone, and directories have none.
    (
        3,
        "crate.py",
        "        if self.edition >= 2:\n            data = ",
        "        if self.edition >= 3:\n            data = ",
    ),
    # A path that occurs twice is refused.
    (
        4,
        "crate.py",
        "            if entry.path in tree:\n",
        '            if entry.path in tree:\n                raise damaged("a path occurs twice")\n',
    ),
    # Times are listed in whole seconds.
    (5, "crate.py", 'return f"{sign}{time // SECOND}.{time % SECOND:09d}"', 'return f"{sign}{time // SECOND}"'),
    # A link that leads out is made.
    (7, "crate.py", 'if entry.kind == "L" and leads_out(entry):', 'if entry.kind == "?":'),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (2, "crate.c", "entry->mode = status.st_mode & 0777;", "entry->mode = status.st_mode & 0677;"),  # round-trip
    (
        3,
        "crate.py",
        '        elif entry.kind == "L":\n            os.symlink',
        '        elif entry.kind == "?":\n            os.symlink',
    ),
    (4, "crate.c", "to[written++] = run + 125;", "to[written++] = run + 124;"),  # runs
    (5, "crate.py", "if id(last) in seen:", "if len(seen) > 100:"),  # same
    (6, "crate.c", "    if (edition < 5) {\n", "    if (edition < 4) {\n"),  # widened
    (7, "crate.py", "> limit:", "> limit + 1:"),  # limit
    (8, "crate.c", "first < 0xc2 ? 0", "first < 0xc0 ? 0"),  # readable
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
    """Change a program as rounds from this number on leave it."""
    for each in range(number, ROUNDS + 1):
        program = task / f"steps/round-{each}/solution/{name}"
        text = program.read_text()
        if text.count(old) != 1:
            raise SystemExit(f"make.py: {text.count(old)} times in {name} of round-{each}: {old!r}")
        program.write_text(text.replace(old, new))


if __name__ == "__main__":
    main()
