"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-8` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
# The module, a passage of it as round 8 leaves it, and what stands there instead.
MUTANTS = [
    ("knit/assembler.py", 'r"(?!r[0-7]\\Z)[a-z_][a-z0-9_]{0,31}\\Z"', 'r"(?!r[0-7]\\Z)[a-z_][a-z0-9_]{0,32}\\Z"'),
    ("knit/assembler.py", 'r"[ \\t]*(?!r[0-7]:)([a-z_][a-z0-9_]{0,31}):"', 'r"[ \\t]*([a-z_][a-z0-9_]{0,31}):"'),
    ("knit/assembler.py", "(?:/{PART}){{0,7}}", "(?:/{PART}){{0,8}}"),
    ("knit/assembler.py", '{1,64}"', '{1,65}"'),
    ("knit/assembler.py", 'PART = r"(?!\\.)', 'PART = r"'),
    ("knit/assembler.py", "if len(found) <= 16 else MOST + 2", "if len(found) <= 4 else MOST + 2"),
    ("knit/assembler.py", 'found.lstrip("0") or "0"', "found"),
    ("knit/assembler.py", "least <= value <= most", "least < value <= most"),
    ("knit/assembler.py", "most // len(items) + 2", "most // len(items) + 1"),
    ("knit/assembler.py", "most // len(items) + 2", "10 ** 6"),
    ("knit/assembler.py", "list(dict.fromkeys(before[most:]))", "before[most:most + 1]"),
    ("knit/assembler.py", "len(content) > LARGEST_FILE", "len(content) >= LARGEST_FILE"),
    ("knit/assembler.py", "if len(content) <= LARGEST_FILE else None", "if len(content) < LARGEST_FILE else None"),
    ("knit/assembler.py", "os.O_NONBLOCK | ", ""),
    ("knit/assembler.py", "os.O_NOFOLLOW | ", ""),
    ("knit/assembler.py", "stat.S_ISREG(os.fstat(opened.fileno()).st_mode)", "True"),
    ("knit/assembler.py", "self.included <= MOST_FILES", "self.included < MOST_FILES"),
    ("knit/assembler.py", "len(self.open_files) < DEEPEST_FILE", "len(self.open_files) <= DEEPEST_FILE"),
    ("knit/assembler.py", "name not in self.open_files and ", ""),
    ("knit/assembler.py", "len(name) <= LONGEST_NAME", "len(name) < LONGEST_NAME"),
    ("knit/assembler.py", 'line = line.removesuffix("\\r")', 'line = line.rstrip("\\r")'),
    ("knit/assembler.py", 'character == "\\t"):\n                self', "False):\n                self"),
    (
        "knit/assembler.py",
        '                self.error(place, index + 1, "byte")\n                return',
        '                self.error(place, index + 1, "byte")',
    ),
    ("knit/assembler.py", "if self.width_is_set:", "if False:"),
    ("knit/assembler.py", "place, 1, WIDEST", "place, 0, WIDEST"),
    ("knit/assembler.py", "place, 0, MOST_REPEATS", "place, 1, MOST_REPEATS"),
    ("knit/assembler.py", "len(self.bodies) > DEEPEST_REPEAT", "len(self.bodies) >= DEEPEST_REPEAT"),
    ("knit/assembler.py", 'word in (".include", ".width", ".const")', 'word in (".include", ".width")'),
    ("knit/assembler.py", 'elif word == ".include" and len(self.bodies) == 1:', 'elif word == ".include":'),
    ("knit/assembler.py", "        del self.bodies[1:]\n", ""),
    ("knit/assembler.py", 'self.operands("", operands, end, place)', "pass"),
    ("knit/assembler.py", "if found != kind:", "if found is None:"),
    ("knit/assembler.py", "min(self.errors)", "self.errors[0]"),
    ("knit/assembler.py", "if name not in self.program.files:", "if True:"),
    ("knit/assembler.py", 'self.error(place, operands[len(kinds)][1], "operand")', 'self.error(place, end, "operand")'),
    ("knit/assembler.py", 'self.define(name[0], ("V", value), place, name[1])', 'self.names[name[0]] = ("V", value)'),
    (
        "knit/assembler.py",
        '"limit", "number", "name", "include", "operand"]',
        '"number", "limit", "name", "include", "operand"]',
    ),
    ("knit/assembler.py", 'KINDS = ["byte", "twice", "word"', 'KINDS = ["byte", "word", "twice"'),
    ("knit/codes.py", "MOST_CELLS = 1024", "MOST_CELLS = 1023"),
    ("knit/codes.py", "MOST_INSTRUCTIONS = 4096", "MOST_INSTRUCTIONS = 4095"),
    ("knit/codes.py", "DEEPEST = 64", "DEEPEST = 63"),
    ("knit/codes.py", "MOST_ROWS = 10000", "MOST_ROWS = 9999"),
    ("knit/codes.py", "BUDGET = 100000", "BUDGET = 100001"),
    ("knit/codes.py", "33 <= byte <= 126", "33 <= byte <= 127"),
    ("knit/codes.py", "33 <= byte <= 126", "32 <= byte <= 126"),
    ("knit/machine.py", "if rules < 5:", "if rules <= 5:"),
    ("knit/machine.py", "if rules < 5:", "if rules < 4:"),
    ("knit/machine.py", "min(max(value, LEAST), MOST)", "min(max(value, -MOST), MOST)"),
    ("knit/machine.py", "rules < 4 else left)", "rules < 5 else left)"),
    ("knit/machine.py", "if rules < 4 else right < 0:", "if rules < 4 else left < 0:"),
    ("knit/machine.py", 'check(right != 0, "divide")', 'check(right > -40000, "divide")'),
    (
        "knit/machine.py",
        'check(0 <= target <= len(self.program.code), "jump")',
        'check(0 <= target < len(self.program.code), "jump")',
    ),
    (
        "knit/machine.py",
        'check(0 <= target <= len(self.program.code), "jump")',
        'check(target <= len(self.program.code), "jump")',
    ),
    (
        "knit/machine.py",
        '            check(0 <= value < MOST_CELLS, "drum")\n            registers',
        '            check(value < MOST_CELLS, "drum")\n            registers',
    ),
    (
        "knit/machine.py",
        '            check(0 <= value < MOST_CELLS, "drum")\n            self.drum',
        '            check(-1 <= value < MOST_CELLS, "drum")\n            self.drum',
    ),
    ("knit/machine.py", "0 <= value <= 15", "0 <= value <= 16"),
    ("knit/machine.py", 'check(value >= 0, "count")', 'check(value >= -1, "count")'),
    (
        "knit/machine.py",
        'check(value <= self.program.width - len(self.row), "needle")',
        'check(value <= self.program.width - len(self.row) + 1, "needle")',
    ),
    ("knit/machine.py", "                self.budget -= value\n", ""),
    ("knit/machine.py", 'check(value <= self.budget, "budget")', 'check(value < self.budget, "budget")'),
    ("knit/machine.py", 'check(below > 0, "count")', 'check(below >= 0, "count")'),
    ("knit/machine.py", "self.less = new < 0", "self.less = old < 0"),
    ("knit/machine.py", "self.less = registers[register] < value", "self.less = registers[register] <= value"),
    ("knit/machine.py", "JGE: not self.less", "JGE: not self.less or self.zero"),
    ("knit/machine.py", "self.seed // 65536 % below", "self.seed % below"),
    ("knit/machine.py", "self.seed = 1", "self.seed = 0"),
    ("knit/machine.py", '            self.row = ""\n', "            pass\n"),
    ("knit/machine.py", "last = None if rows is None else self.rows + rows", "last = rows"),
    ("knit/machine.py", "        return self.rows == last\n", "        return False\n"),
    ("knit/machine.py", '            check(self.rows < MOST_ROWS, "rows")\n', ""),
    ("knit/deck.py", "EDITIONS = (1, 3, 4, 5, 6, 7)", "EDITIONS = (1, 2, 3, 4, 5, 6, 7)"),
    ("knit/deck.py", '    check(program.rules in EDITIONS, "its rules are those of no edition")\n', ""),
    ("knit/deck.py", "1 <= program.width", "0 <= program.width"),
    ("knit/deck.py", "cells <= MOST_CELLS", "cells <= MOST_CELLS + 1"),
    ("knit/deck.py", "count <= MOST_INSTRUCTIONS", "count <= MOST_INSTRUCTIONS + 1"),
    ("knit/deck.py", 'register > (7 if "R" in kinds else 0)', "register > 7"),
    ("knit/deck.py", 'mode > (1 if "V" in kinds else 0)', "mode > 1"),
    ("knit/deck.py", "0 <= value <= 7", "value <= 7"),
    ("knit/deck.py", "0 <= value <= count", "0 <= value < count"),
    ("knit/deck.py", 'return value == 0 or "V" in kinds', "return True"),
    ("knit/deck.py", '    check(len(content) == end, "it ends too late")\n', ""),
    ("knit/deck.py", "(content[at] > 0 or edition >= 7)", "True"),
    ("knit/deck.py", "file < len(program.files) and line > 0", "file < len(program.files)"),
    ("knit/deck.py", "file < len(program.files) and line > 0", "line > 0"),
    (
        "knit/deck.py",
        'check(at < len(content) and content[at] > 0, "a name is missing")',
        'check(at < len(content), "a name is missing")',
    ),
    ("knit/deck.py", "if edition >= 3:", "if edition > 3:"),
    ("knit/deck.py", "EDITION, program.rules,", "EDITION, EDITION,"),
    ("knit/deck.py", "start + 8]", "start + 7]"),
    ("knit/deck.py", "    if len(program.code) in targets:\n", "    if False:\n"),
    ("loom.py", 're.fullmatch("[0-9]{1,9}", words[1])', 're.fullmatch("[0-9]{1,10}", words[1])'),
    ("loom.py", 're.fullmatch("[0-9]{1,9}", words[1])', 're.fullmatch(r"\\d{1,9}", words[1])'),
    ("loom.py", "            os.remove(new)\n        raise", "            pass\n        raise"),
    ("loom.py", "            os.link(new, path)\n            os.remove(new)", "            os.rename(new, path)"),
    ("loom.py", "            os.link(new, path)\n            os.remove(new)", "            os.link(new, path)"),
    ("loom.py", "        os.replace(new, path)", '        open(path, "wb").write(content); os.remove(new)'),
    (
        "loom.py",
        "        except (ValueError, RecursionError):\n            words = None",
        "        except (ValueError, RecursionError):\n            continue",
    ),
    ("loom.py", "not all(isinstance(word, str) for word in words)", "False"),
    ("knit/state.py", "machine.zero,\n        machine.less", "machine.less,\n        machine.zero"),
    (
        "knit/state.py",
        "machine.seed, machine.at, machine.rows, machine.yarn = seed, at, rows, yarn",
        "machine.at, machine.rows, machine.yarn = at, rows, yarn",
    ),
    (
        "knit/state.py",
        "machine.seed, machine.at, machine.rows, machine.yarn = seed, at, rows, yarn",
        "machine.seed, machine.at, machine.yarn = seed, at, yarn",
    ),
    (
        "knit/state.py",
        "machine.seed, machine.at, machine.rows, machine.yarn = seed, at, rows, yarn",
        "machine.seed, machine.at, machine.rows = seed, at, rows",
    ),
    ("knit/state.py", "sound and deck.sealed(content[:-4]) == content", "sound"),
    ("knit/state.py", "    machine.stack = list(struct", "    list(struct"),
    ("knit/state.py", "machine.registers, machine.drum = numbers[:8], numbers[8:]", "machine.registers = numbers[:8]"),
    ("knit/state.py", "        machine.budget,\n", "        100000,\n"),
]


def main() -> None:
    if len(sys.argv) == 1:
        for number, mutant in enumerate(MUTANTS):
            print(number, *map(repr, mutant))
        return
    name, old, new = MUTANTS[int(sys.argv[1])]
    directory = Path(sys.argv[2])
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    texts = [directory / f"steps/round-{each}/solution/{name}" for each in range(1, 9)]
    text = [each for each in texts if each.exists()][-1].read_text()
    if text.count(old) != 1:
        raise SystemExit(f"mutants.py: {text.count(old)} times in {name}: {old!r}")
    texts[-1].write_text(text.replace(old, new))


if __name__ == "__main__":
    main()
