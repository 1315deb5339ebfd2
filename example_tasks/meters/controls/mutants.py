"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-10` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
# The module, a passage of it as round 10 leaves it, and what stands there instead.
MUTANTS = [
    # Files.
    ("suppliers.py", '"MWh": ("power", 1_000_000)', '"MWh": ("power", 100_000)'),
    ("suppliers.py", '"Wh": ("power", 1)', '"Wh": ("power", 1000)'),
    ("suppliers.py", '"l": ("water", 1)', '"l": ("power", 1)'),
    ("suppliers.py", 'content.decode("latin-1")', 'content.decode("utf-8", "replace")'),
    ("suppliers.py", 'content.decode("utf-8-sig", "replace")', 'content.decode("utf-8", "replace")'),
    ("suppliers.py", 'r"\\r?\\n", content.decode("latin-1")', 'r"\\n", content.decode("latin-1")'),
    ("suppliers.py", "header < 0 or not", "not"),
    ("suppliers.py", "lines[header + 1 :], header + 2", "lines[header + 1 :], header + 1"),
    ("suppliers.py", "        if line:\n", "        if True:\n"),
    ("suppliers.py", "elif not record.meter:", "elif False:"),
    ("suppliers.py", "except (ValueError, csv.Error):", "except csv.Error:"),
    ("suppliers.py", "(\\d{1,3}(\\.\\d{3})+|\\d+)(,\\d+)?", "[\\d.]+(,\\d+)?"),
    ("suppliers.py", "(\\d{1,3}(\\.\\d{3})+|\\d+)(,\\d+)?", "(\\d{1,3}(\\.\\d{3})+|\\d{1,3})(,\\d+)?"),
    ("suppliers.py", "    if amount != int(amount):\n        raise ValueError(line)\n", ""),
    ("suppliers.py", "unit not in UNITS or", "unit.lower() not in map(str.lower, UNITS) or"),
    ("suppliers.py", '(Z|[+-]\\d\\d:\\d\\d)"', '(Z|[+-]\\d\\d:\\d\\d)?"'),
    ("suppliers.py", "(\\d{{1,3}}))?", "(\\d{{1,4}}))?"),
    ("suppliers.py", 'ljust(3, "0")', 'rjust(3, "0")'),
    ("suppliers.py", 'ljust(4, "0")', 'ljust(3, "0")'),
    ("suppliers.py", "(?:\\.(\\d{1,4}))?", "(?:\\.(\\d+))?"),
    ("suppliers.py", 'kind not in ("water", "power") or', ""),
    ("suppliers.py", 'tops.get("Erstellt", ""), zone', 'tops.get("Erstellt", ""), "+00:00"'),
    ("suppliers.py", '_issued(_moment_with_zone, tops.get("issued", ""))', "NEVER"),
    ("suppliers.py", "_issued(_utc_moment, *issued[:1])", "NEVER"),
    ("suppliers.py", "NEVER = -(10**12)", "NEVER = 10**12"),
    ("suppliers.py", "{text[3:5]}-{text[:2]}", "{text[:2]}-{text[3:5]}"),
    # The database.
    ("database.py", "record.at >= forgotten", "record.at > forgotten"),
    ("database.py", "forgotten.get(record.meter, record.at)", "record.at"),
    ("database.py", "_rank(known) > _rank(row)", "_rank(known) < _rank(row)"),
    ("database.py", "_rank(known) > _rank(row)", "False"),
    ("database.py", " and known[:4] != each", ""),
    ("database.py", "            continue\n", "            row = (*known[:4], file.issued)\n"),
    ("database.py", "    return issued, value", "    return issued, -value"),
    ("database.py", "    return issued, value", "    return issued, 0"),
    ("database.py", "    return issued, value", "    return value, issued"),
    ("database.py", "max(until, excluded.until)", "excluded.until"),
    ("database.py", "WHERE meter = ? AND at < ?", "WHERE meter = ? AND at <= ?"),
    ("database.py", 'for table in ("reading", "exchange")', 'for table in ("reading",)'),
    ("database.py", "    amounts.refresh(database)\n    return [f", "    return [f"),
    ("database.py", "    elif known[0] != price.price:", "    elif False:"),
    ("database.py", "    name = os.path.basename(name)\n", ""),
    ("database.py", '    database.execute("DELETE FROM rejects WHERE file = ?", (name,))\n', ""),
    ("database.py", "        amounts.refresh(database)\n    return database", "    return database"),
    ("database.py", "SELECT meter, month, 1, amount, cents", "SELECT meter, month, 0, amount, cents"),
    ("database.py", "INSERT INTO bill SELECT meter, month, 1, amount, cents FROM first_bill;\n", ""),
    ("database.py", "{(record.meter, record.at): record", "{record: record"),
    # Amounts.
    ("amounts.py", "shown >= HIGH and", "shown > HIGH and"),
    ("amounts.py", "and value < LOW", "and value <= LOW"),
    ("amounts.py", "value - shown + ROUND", "value - shown + ROUND - 1"),
    ("amounts.py", "value >= shown:", "value > shown:"),
    ("amounts.py", "        elif new is None:", "        elif True:"),
    ("amounts.py", "            continue\n", "            pass\n"),
    ("amounts.py", "            suspects.append(at)\n", ""),
    ("amounts.py", "shown = value if new is None else new", "shown = value"),
    (
        "amounts.py",
        "        points.append((at, total))\n",
        "        if new is None:\n            points.append((at, total))\n",
    ),
    ("amounts.py", "first[1] or last[1]", "first[1] and last[1]"),
    ("amounts.py", "first[1] or last[1]", "first[1]"),
    ("amounts.py", "<= points[-1][0]:", "< points[-1][0]:"),
    ("amounts.py", "(at - before) + span)", "(at - before) + span - 1)"),
    ("amounts.py", "(at - before) + span)", "(at - before))"),
    ("amounts.py", "if index in (0, len(points)):", "if index == len(points):"),
    ("amounts.py", "ORDER BY known.meter", "ORDER BY known.meter COLLATE NOCASE"),
    ("amounts.py", "{'~' if estimated else ''}", ""),
    (
        "amounts.py",
        '    database.execute("DELETE FROM suspect")\n',
        '    database.execute("DELETE FROM suspect WHERE 0")\n',
    ),
    # Bills.
    ("bills.py", "HAVING count(number) = 0 OR month.amount <> total(bill.amount)", "HAVING count(number) = 0"),
    ("bills.py", "HAVING count(number) = 0 OR", "HAVING"),
    ("bills.py", " - int(billed_cents)", ""),
    ("bills.py", "issued + 1, amount - int(billed)", "issued + 1, amount"),
    ("bills.py", "(meter, month, issued + 1", "(meter, month, issued"),
    ("bills.py", "        ORDER BY meter\n", "        ORDER BY meter DESC\n"),
    ("bills.py", "if start < end:", "if start <= begin:"),
    ("bills.py", "since = max(start, begin)", "since = begin"),
    ("bills.py", "            until = since\n", "            until = begin\n"),
    ("bills.py", "2 * rest + cents % 2 > UNIT", "2 * rest >= UNIT"),
    ("bills.py", "2 * rest + cents % 2 > UNIT", "2 * rest > UNIT"),
    ("bills.py", "UNIT = 1000 * 10_000", "UNIT = 1000 * 1_000"),
    ("bills.py", "    else:\n        raise Refused", "    if not prices:\n        raise Refused"),
    # Commands.
    ("commands.py", "    amounts.refresh(connection)\n", ""),
    ("commands.py", 'if file.rejects else ""', ""),
    ("commands.py", '    if not database.exists():\n        raise Refused("no meters.db")\n', ""),
    ("commands.py", "if is_day(day):", "if day:"),
    ("commands.py", "        return 2\n", "        return 1\n"),
    ("calendar.py", "(0[1-9]|1[0-2])", "\\d\\d"),
    ("calendar.py", "year + number // 12", "year"),
]


def last_modules() -> dict[str, Path]:
    """Return where the modules are as the last round leaves them."""
    paths = {}
    for number in range(1, 11):
        for path in (TASK / f"steps/round-{number}/solution/app/metering").glob("*.py"):
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
    (directory / f"steps/round-10/solution/app/metering/{name}").write_text(text)


if __name__ == "__main__":
    main()
