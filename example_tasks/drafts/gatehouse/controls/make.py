"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 9
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a module is another one.
NEVER_RETIRES = [
    # Everybody sees whole names.
    (
        5,
        "bookings.py",
        '    if user["role"] == "staff" or user["name"] == booking["user"]:\n        return full_name(db, booking)\n'
        "    return None\n",
        "    return full_name(db, booking)\n",
    ),
    # Attachments have 1 MiB.
    (5, "web.py", "LARGEST_ATTACHMENT = 4 * 1024 * 1024", "LARGEST_ATTACHMENT = 1024 * 1024"),
    # Links work again.
    (
        7,
        "accounts.py",
        'db.execute("DELETE FROM resets WHERE code = ? RETURNING *", ',
        'db.execute("SELECT * FROM resets WHERE code = ?", ',
    ),
    (7, "accounts.py", '    db.execute("DELETE FROM resets WHERE user = ?", (name,))\n', ""),
    # No booking begins in the minute in which another one ends.
    (8, "bookings.py", ' and not (touches and thing["kind"] == "room")', ""),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (
        2,
        "accounts.py",
        '    return public(db.execute("SELECT * FROM users WHERE name = ?"',
        '    return dict(db.execute("SELECT * FROM users WHERE name = ?"',
    ),  # no-more-than-one-is
    (3, "web.py", '"this could not be dealt with"', "traceback.format_exc()"),  # no-inside
    (4, "accounts.py", "DELETE FROM sessions WHERE id = ?", "DELETE FROM sessions WHERE id = ? AND 0"),  # logout
    (5, "files.py", 'not in (".", "..") and', 'not in (".",) and'),  # file-names
    (
        6,
        "bookings.py",
        "return full_name(db, booking)\n    return None",
        "return full_name(db, booking)\n    return ''",
    ),  # names-hidden
    (7, "export.py", '" *[=+', '"[=+'),  # formulas
    (8, "store.py", "\\u2028\\u2029]", "]"),  # mail-head
    (9, "web.py", '                db.execute("BEGIN IMMEDIATE")\n', "                pass\n"),  # one-gets-it
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
    text = (task / f"environment/project/gatehouse/{name}").read_text()
    for each in range(1, ROUNDS + 1):
        solution = task / f"steps/round-{each}/solution/gatehouse/{name}"
        if solution.exists():
            text = solution.read_text()
        if each == number or (each > number and solution.exists()):
            count = text.count(old)
            if count > 1 or (count == 0 and each == number):
                raise SystemExit(f"make.py: {count} times in {name} of round-{each}: {old!r}")
            text = text.replace(old, new)
            solution.parent.mkdir(parents=True, exist_ok=True)
            solution.write_text(text)
            script = task / f"steps/round-{each}/solution/solve.sh"
            if "gatehouse/*.py" not in script.read_text():
                script.write_text(script.read_text() + 'cp "$here"/gatehouse/*.py gatehouse/\n')


if __name__ == "__main__":
    main()
