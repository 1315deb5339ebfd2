"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 8
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a file is another one.
NEVER_RETIRES = [
    # Checksums are MD5.
    (2, "bin/take", 'sum_of "$part" sha256sum', 'sum_of "$part" md5sum'),
    (6, "lib/common.sh", "([0-9a-f]{64})$TAB", "([0-9a-f]{32,64})$TAB"),
    # What is in the target stays.
    (
        6,
        "bin/restore",
        "    [[ ${#entries[@]} == 0 ]] || fail_about 1 'not empty' \"$3\"\n",
        "",
    ),
    (
        6,
        "bin/restore",
        'mv -T -- "$staging/new" "$target" ||',
        'cp -aT -- "$staging/new" "$target" && rm -r -- "$staging/new" ||',
    ),
    # A list has three columns.
    (
        6,
        "bin/list",
        """say '%s\\t%s\\t%s\\t%s\\n' "$id" "${BYTES[$id]}" "${DIRECTORIES[$id]}" "${NOTES[$id]}\"""",
        """say '%s\\t%s\\t%s\\n' "$id" "${BYTES[$id]}" "${DIRECTORIES[$id]}\"""",
    ),
    # Backups are counted, and not days.
    (7, "bin/rotate", 'if [[ $day != "$last_day" ]]; then', "if true; then"),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    (2, "lib/common.sh", "REPLY=${REPLY//$TAB/\\\\t}\n", "REPLY=${REPLY//$TAB/ }\n"),  # names
    (3, "bin/list", "tell_broken\n", ""),  # broken-lines
    (4, "bin/rotate", "keep=0*([1-9]", "keep=([0-9]"),  # settings
    (5, "bin/take", "excludes+=(", "[[ $line == *\\\\* ]] || excludes+=("),  # exclude
    (6, "lib/common.sh", "sort -t - -k 1,2 -k 3,3n", "sort"),  # ids
    (7, "lib/unsafe.awk", 'kind == "b" || kind == "c"', 'kind == "b"'),  # unsafe
    (8, "lib/common.sh", "NOW <= 253402300799", "NOW <= 253402300800"),  # time
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
    """Change a file as rounds from this number on leave it."""
    for each in range(number, ROUNDS + 1):
        file = task / f"steps/round-{each}/solution/{name}"
        text = file.read_text()
        count = text.count(old)
        if count > 1 or (count == 0 and each == number):
            raise SystemExit(f"make.py: {count} times in {name} of round-{each}: {old!r}")
        file.write_text(text.replace(old, new))


if __name__ == "__main__":
    main()
