"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-8` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
# The module, a passage of it as round 8 leaves it, and what stands there instead.
MUTANTS = [
    # Files.
    ("files.py", 'removeprefix(MARK if kind == "tsv" else b"")', 'removeprefix(b"")'),
    ("files.py", 'line.removesuffix(b"\\r")', 'line.rstrip(b"\\r\\n")'),
    ("files.py", "        if not lines[-1]:\n            lines.pop()\n", ""),
    ("files.py", 'card = line.replace("\\t", " ")', "card = line"),
    ("files.py", 'going_on = not card.startswith("*") and', "going_on ="),
    ("files.py", 'day[4:] < "50"', 'day[4:] <= "50"'),
    ("files.py", "card[17:29]", "card[17:30]"),
    ("files.py", "card[30:33]", "card[29:33]"),
    ("files.py", "card[34:38]", "card[34:39]"),
    ("files.py", "card[39:42]", "card[39:43]"),
    ("files.py", 'elif not card.startswith("*"):', "else:"),
    ("files.py", "unit, held = 60, []", "unit, held = 1, []"),
    ("files.py", 'if line.endswith("\\\\"):', 'if line.rstrip().endswith("\\\\"):'),
    ("files.py", 'whole.split(";", 7)', 'whole.split(";")[:8]'),
    ("files.py", "len(fields) >= 7 and", "len(fields) >= 8 and"),
    ("files.py", '1 if directive[1] == "s" else 60', "1"),
    ("files.py", 'magnitude.replace(",", ".", 1)', "magnitude"),
    ("files.py", "date < NOTEBOOK_MOMENTS", "date <= NOTEBOOK_MOMENTS"),
    ("files.py", 'NOTEBOOK_MOMENTS = "2010-07-01"', 'NOTEBOOK_MOMENTS = "2010-08-01"'),
    ("files.py", "self._add(together[0][0],", "self._add(number,"),
    ("files.py", "self._pass_over(*together)", "self._pass_over(together[0])"),
    ("files.py", "        self._pass_over(*held)\n", ""),
    ("files.py", "enumerate(lines[1:], 2)", "enumerate(lines[1:], 1)"),
    ("files.py", 'elif not line.startswith("#"):', "else:"),
    ("files.py", 'late = time < "12:00"', 'late = time <= "12:00"'),
    ("files.py", "evening = day_before(date) if late else date", "evening = date"),
    ("files.py", "date = day_after(evening) if late else evening", "date = evening"),
    ("files.py", 'text.strip(" ") for text in texts', "text.strip() for text in texts"),
    ("files.py", 'f"{last.note} {text}"', 'f"{last.note} {text}".strip()'),
    ("files.py", 'line[1:].replace("\\t", " ").strip(" ")', "line[1:].strip()"),
    ("files.py", 'any(text.strip(" \\t") for _, text in lines)', "lines"),
    ("files.py", '    if kind == "tsv":\n        try:', '    if kind != "crd":\n        try:'),
    ("files.py", "(?:[.,]([0-9]*))?", "(?:[.]([0-9]*))?"),
    ("files.py", "(2 * amount + parts) // (2 * parts)", "amount // parts"),
    ("files.py", "(2 * amount + parts) // (2 * parts)", "(2 * amount + parts - 1) // (2 * parts)"),
    ("files.py", "            year, month = year - 1, 12\n", "            month = 12\n"),
    ("files.py", "            year, month = year + 1, 1\n", "            month = 1\n"),
    ("files.py", "1 <= day <= days(year, month)", "1 <= day <= 31"),
    ("files.py", "year % 4 == 0 and (year % 100 or year % 400 == 0)", "False"),
    ("files.py", "(4, 6, 9, 11)", "(4, 9, 11)"),
    ("files.py", 'content.removesuffix(b"\\n") +', "content +"),
    # The database.
    (
        "database.py",
        '        refresh(database)\n        database.execute("COMMIT")',
        '        database.execute("COMMIT")',
    ),
    ("database.py", '        database.execute("COMMIT")\n        database.execute("BEGIN IMMEDIATE")\n', ""),
    ("database.py", "if not make and not os.path.exists(NAME):", "if False:"),
    ("database.py", "WHERE name = ? ORDER BY version DESC", "WHERE name = ? ORDER BY version"),
    ("database.py", "1 + count(*), coalesce", "1, coalesce"),
    ("database.py", 'ORDER BY name")', 'ORDER BY place")'),
    ("database.py", 'ORDER BY name")', 'ORDER BY name COLLATE NOCASE")'),
    ("database.py", "if row in there]", "]"),
    ("database.py", "key=lambda pair: pair[1][:3]", "key=lambda pair: pair[1][:2]"),
    ("database.py", "(each.night, each.number), name) == name", "(each.night, each.number), name) is not None"),
    ("database.py", "        if shown:\n", "        if True:\n"),
    ("database.py", '    database.execute("DELETE FROM observation")\n', ""),
    ("database.py", "WHERE version < (SELECT", "WHERE version <= (SELECT"),
    ("database.py", " AND version = (SELECT max(version) FROM file WHERE name = ?1)", ""),
    # Commands.
    ("commands.py", "        return 2\n", "        return 1\n"),
    ("commands.py", 'words[:1] == ["--replace"]', "False"),
    ("commands.py", "os.path.basename(path), contents_of(path)", "path, contents_of(path)"),
    ("commands.py", "        if before == data:\n", "        if False:\n"),
    (
        "commands.py",
        "Counter(map(seen, known)) - Counter(map(seen, found))",
        "Counter(set(map(seen, known)) - set(map(seen, found)))",
    ),
    ("commands.py", "            if lost and not replace:\n", "            if lost > 1 and not replace:\n"),
    ("commands.py", "observation._replace(line=None)", "observation._replace(line=None, note=None)"),
    ("commands.py", "observation._replace(line=None)", "observation"),
    ("commands.py", " and is_date(moment[:10])", ""),
    ("commands.py", 'moment[11:13] < "24" and ', ""),
    ("commands.py", ' and moment[14:] < "60"', ""),
    ("commands.py", 'name.strip(" ") and', "name and"),
    ("commands.py", "[\\t\\r\\n]", "[\\t\\r]"),
    ("commands.py", "1 + max((int(match[1])", "1 + min((int(match[1])"),
    ("commands.py", "for match in numbers if match), default=0):04}", "for match in numbers if match), default=0)}"),
    ("commands.py", "first <= each.night <= last", "first <= each.night < last"),
    ("commands.py", "(shown or everything) and", "shown and"),
    ("commands.py", "    expect(all(is_date(night) for night in options.values()))\n", ""),
    ("commands.py", " or read(path) != data", ""),
    (
        "commands.py",
        "for path, data in sorted(contents.items()):",
        "for path, data in sorted(contents.items(), reverse=True):",
    ),
    ("commands.py", "each.night.startswith(words[0])", "each.date.startswith(words[0])"),
    ("commands.py", "if each.number and shown:", "if each.number:"),
    ("commands.py", "if each.number and shown:", "if shown:"),
    ("commands.py", "if len({seen(each) for _, each in group}) > 1:", "if len(group) > 1:"),
    ("commands.py", "    if count != 1:\n", "    if count == 0:\n"),
    ("commands.py", "sorted(groups.items())", "groups.items()"),
    ("commands.py", "{'s' * (count > 1)}", "s"),
    # Listings.
    ("listings.py", "each.object[:12]:<12", "each.object:<12"),
    ("listings.py", "each.observer[:3]:<3", "each.observer:<3"),
    ("listings.py", "            if each.note:\n", "            if True:\n"),
    ("listings.py", "exposed + each.seconds", "each.seconds"),
    ("listings.py", "[-+]?[0-9]+(", "[0-9]+("),
    ("listings.py", "ROUND_HALF_UP)", '"ROUND_HALF_EVEN")'),
    ("listings.py", "min(numbers, key=Decimal)", "min(numbers)"),
    ("listings.py", "sorted(objects.items())", "objects.items()"),
    ("listings.py", "        if numbers:\n", "        if magnitudes:\n"),
]


def last_modules() -> dict[str, Path]:
    """Return where the modules are as the last round leaves them."""
    paths = {}
    for number in range(1, 9):
        for path in (TASK / f"steps/round-{number}/solution/app/observatory").glob("*.py"):
            paths[path.name] = path
    return paths


def mutated(number: int) -> tuple[str, str]:
    """Return the module that a mutant changes and its text."""
    name, old, new = MUTANTS[number]
    text = last_modules()[name].read_text()
    if text.count(old) != 1:
        raise SystemExit(f"mutants.py: {text.count(old)} times in {name}: {old!r}")
    return name, text.replace(old, new)


def main() -> None:
    if len(sys.argv) != 3:
        for number, (name, old, new) in enumerate(MUTANTS):
            print(f"{number:3} {name}: {old!r} -> {new!r}")
        return
    name, text = mutated(int(sys.argv[1]))
    directory = Path(sys.argv[2])
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    (directory / f"steps/round-8/solution/app/observatory/{name}").write_text(text)


if __name__ == "__main__":
    main()
