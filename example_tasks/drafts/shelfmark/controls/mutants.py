"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-env=docker --evocode-agent=oracle DIRECTORY -k round-10` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
# The module, a passage of it as round 10 leaves it, and what stands there instead.
MUTANTS = [
    # Dumps.
    ("dumps.py", 'data.partition(b"\\x1a")[0]', "data"),
    ("dumps.py", 'line.removesuffix(b"\\r")', "line"),
    ("dumps.py", "enumerate(lines[1:], 2)", "enumerate(lines[1:], 1)"),
    ("dumps.py", ' if line.strip(b" ")]', " if line]"),
    ("dumps.py", "len(self.records) != int(match[3])", "len(self.records) < int(match[3])"),
    ("dumps.py", "len(self.records) != int(match[3])", "len(self.records) > int(match[3])"),
    ("dumps.py", 'startswith("3.")', 'startswith("3.0")'),
    ("dumps.py", '        raise Rejected("code") from None', '        raise Rejected("fields") from None'),
    ("dumps.py", '[field.strip(" ") for field in', "[field for field in"),
    ("dumps.py", "len(fields) != FIELDS[kind]", "len(fields) < FIELDS[kind]"),
    ("dumps.py", ' or not int(text):\n        raise Rejected("number")', ':\n        raise Rejected("number")'),
    ("dumps.py", "([A-Za-z]{2,3}) +", "([A-Za-z]{2,4}) +"),
    ("dumps.py", "([A-Za-z]{2,3}) +", "([A-Za-z]{2,3}) *"),
    ("dumps.py", "([1-9][0-9]{0,3})", "([0-9]{1,4})"),
    ("dumps.py", "{match[1].upper()}", "{match[1]}"),
    ("dumps.py", "int(text or 1)", "int(text or 2)"),
    ("dumps.py", 'if text in ("", "00.00.00"):', 'if text == "":'),
    ("dumps.py", "2000 if year < 30", "2000 if year <= 30"),
    ("dumps.py", " and len(text) == 8:", ":"),
    ("dumps.py", "year=found.year - 100", "year=found.year - 200"),
    ("dumps.py", 'text.replace("(0)", "")', "text"),
    ("dumps.py", 'startswith("00")', 'startswith("000")'),
    ("dumps.py", '"+49" + value[1:]', '"+49" + value'),
    ("dumps.py", "{7,15}", "{6,15}"),
    ("dumps.py", '("note", text)', '("note", value)'),
    ("dumps.py", "if text and contact not in found:", "if text:"),
    ("dumps.py", '[0-9]{1,6}", text) else None', '[1-9][0-9]{0,5}", text) else None'),
    # Steps.
    ("editions.py", "extract(day FROM born - interval '100 years') = extract(day FROM born)", "true"),
    ("editions.py", "        WHERE born > since;", "        WHERE born > since AND born > '2010-01-01';"),
    ("editions.py", "ALTER TABLE member ADD CHECK (born <= since)", "SELECT 1"),
    ("editions.py", "ON DELETE CASCADE,", ","),
    ("editions.py", 'set("÷³▀─▄")', 'set("÷³▀─▄õ")'),
    ("editions.py", 'set("÷³▀─▄")', 'set("÷³▀▄")'),
    ("editions.py", 'text.encode("cp850").decode', 'text.encode("cp850", "replace").decode'),
    ("editions.py", '.decode("cp1252") or None', '.decode("cp1252", "replace") or None'),
    ("editions.py", 'ORDER BY out_on, member_no"', 'ORDER BY id"'),
    ("editions.py", 'ORDER BY out_on, member_no"', 'ORDER BY out_on, member_no DESC"'),
    ("editions.py", "CREATE UNIQUE INDEX ON loan (sig, copy_number)", "CREATE INDEX ON loan (sig, copy_number)"),
    ("editions.py", '        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))\n', ""),
    ("editions.py", "        if number > to:\n", "        if number > NOW:\n"),
    ("editions.py", ' FROM loan WHERE member_no IS NOT NULL"', ' FROM loan"'),
    ("editions.py", "string_agg(value, ', '", "string_agg(value, ','"),
    ("editions.py", "(SELECT string_agg(value", "(SELECT max(kind) || string_agg(value"),
    # Loading.
    ("load.py", "sorted(given, key=lambda dump: dumps.KINDS.index(dump.kind))", "given"),
    ("load.py", "[told[dump] for dump in given]", "list(told.values())"),
    ("load.py", '    cursor.execute("DELETE FROM reject WHERE file = %s", (dump.file,))\n', ""),
    ("load.py", 'if kind != "TITLES" and', "if"),
    ("load.py", 'if kind != "TITLES" and', 'if kind == "MEMBERS" and'),
    ("load.py", "key=lambda each: dumps.KINDS.index(each[1])", "key=lambda each: each[2:4]"),
    ("load.py", "            continue\n        except (Pass", "            pass\n        except (Pass"),
    ("load.py", "UPDATE reject SET reason = %s WHERE", "UPDATE reject SET reason = coalesce(reason, %s) WHERE"),
    ("load.py", "if born is not None and born > since:", "if False:"),
    ("load.py", "back is not None and back < out:", "back is not None and back <= out:"),
    ("load.py", " AND out_on != %s AND back_on IS NULL", " AND out_on > %s AND back_on IS NULL"),
    ("load.py", "elif back is not None and entered is None:", "elif back is not None:"),
    ("load.py", "elif back is not None and entered is None:", "elif entered is None:"),
    # Copies.
    ("copies.py", "start < end and first < until", "start <= end and first < until"),
    ("copies.py", "start < end and first < until", "start < end and first <= until"),
    ("copies.py", "WHERE sig = %s ORDER BY number", "WHERE sig = %s ORDER BY number DESC"),
    ("copies.py", "max(back, out + datetime.timedelta(1))", "back + datetime.timedelta(1)"),
    ("copies.py", "        return out, _NEVER", "        return out, out + datetime.timedelta(1)"),
    # Commands.
    ("__main__.py", "out_on < %(day)s - 28", "out_on <= %(day)s - 28"),
    ("__main__.py", "back_on > %(day)s)", "back_on >= %(day)s)"),
    (
        "__main__.py",
        'ORDER BY out_on, no, sig COLLATE "C", copy_number',
        'ORDER BY out_on, sig COLLATE "C", no, copy_number',
    ),
    ("__main__.py", "if found > to:", "if found > editions.NOW:"),
    ("__main__.py", ", flush=True)", ")"),
    ("__main__.py", "    if found != editions.NOW:", "    if found > editions.NOW:"),
    ("__main__.py", 'ORDER BY file COLLATE "C", line', "ORDER BY line, file"),
    ("__main__.py", '"replace").replace("\\ufffd", "?")', '"replace")'),
    # Leaving.
    ("leave.py", " AND back_on IS NULL", ""),
    ("leave.py", "split_part(head, ' ', 3) != 'TITLES'", "true"),
    ("leave.py", '    cursor.execute("INSERT INTO left_member VALUES (%s)", (no,))\n', ""),
]


def mutated(texts: dict[str, str], number: int) -> tuple[str, str]:
    """Return the module that a mutant changes and its text."""
    name, old, new = MUTANTS[number]
    if texts[name].count(old) != 1:
        raise SystemExit(f"mutants.py: {texts[name].count(old)} times in {name}: {old!r}")
    return name, texts[name].replace(old, new)


def last_modules() -> dict[str, str]:
    """Return the modules as the last round leaves them."""
    texts = {}
    for number in range(1, 11):
        for path in (TASK / f"steps/round-{number}/solution/shelf").glob("*.py"):
            texts[path.name] = path.read_text()
    return texts


def main() -> None:
    if len(sys.argv) != 3:
        for number, (name, old, new) in enumerate(MUTANTS):
            print(f"{number:3} {name}: {old!r} -> {new!r}")
        return
    name, text = mutated(last_modules(), int(sys.argv[1]))
    directory = Path(sys.argv[2])
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    (directory / f"steps/round-10/solution/shelf/{name}").write_text(text)


if __name__ == "__main__":
    main()
