"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-9` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
ROUNDS = 9
# The module, a passage of it as round 9 leaves it, and what stands there instead.
MUTANTS = [
    # Numbers.
    ("lib/number.js", "replace(/0+$/, '')", "replace(/0$/, '')"),
    ("lib/number.js", "(value < 0n ? '-' : '') + digits", "'' + digits"),
    ("lib/number.js", "a < 0n !== b < 0n", "a < 0n"),
    ("lib/number.js", "rest > under ||", "rest >= under ||"),
    ("lib/number.js", "!evenHalves || whole % 2n", "evenHalves || whole % 2n"),
    ("lib/number.js", "whole % 2n === 1n", "whole % 2n === 0n"),
    ("lib/number.js", "percent ? value * 100n : value", "value"),
    ("lib/number.js", r"/\B(?=(\d{3})+$)/g", r"/\B(?=(\d{3})$)/g"),
    ("lib/number.js", "rules.signedZero ? value : scaled", "scaled"),
    ("lib/number.js", "rules.signedZero ? value : scaled", "value"),
    ("lib/number.js", "padStart(places + 1, '0')", "padStart(places, '0')"),
    # Codes.
    ("lib/code.js", "['MIN', 1, 9]", "['MIN', 1, 8]"),
    ("lib/code.js", "['MAX', 1, 9]", "['MAX', 0, 9]"),
    ("lib/code.js", "[21, 'JERR', 'j']", "[23, 'JERR', 'j']"),
    ("lib/code.js", "next > code.length", "next > code.length + 1"),
    # The parser.
    ("lib/parser.js", "{1,6}", "{1,7}"),
    ("lib/parser.js", "/[ \\t]*/y", "/[ ]*/y"),
    ("lib/parser.js", "const column = this.at + 1;", "const column = this.at;"),
    ("lib/parser.js", "this.line ? `${this.line}:` : ''", "''"),
    ("lib/parser.js", "this.binary(left, () => this.unary()) : left", "this.binary(left, () => this.power()) : left"),
    ("lib/parser.js", "operand: this.unary()", "operand: this.primary()"),
    ("lib/parser.js", "if (this.token.kind !== 'end') this.unexpected();", ""),
    ("lib/parser.js", "given.length < fewest || ", ""),
    ("lib/parser.js", "given.length > most", "given.length > most + 1"),
    ("lib/parser.js", "    if (!this.is(')')) this.unexpected();\n    if (given", "    if (given"),
    ("lib/parser.js", "Object.hasOwn(NUMBERS, name)", "NUMBERS[name]"),
    # The compiler.
    ("lib/compiler.js", "return found >= 0 ? found :", "return found > 0 ? found :"),
    ("lib/compiler.js", "for (const parameter of parameters) this.place(this.names, parameter);", ""),
    ("lib/compiler.js", "if (name) this.place(this.names, name);", ""),
    ("lib/compiler.js", "    this.land(failed);\n", "    this.land(failed + 0 * this.land(zero));\n"),
    ("lib/compiler.js", "if (name === 'ROUND') this.remember(column);", ""),
    ("lib/compiler.js", "'/^'.includes(tree.mark)", "tree.mark === '/'"),
    ("lib/compiler.js", "[this.line, column]", "[1, column]"),
    # The listing.
    ("lib/listing.js", "padStart(4, '0')", "padStart(3, '0')"),
    ("lib/listing.js", "join(', ')", "join(',')"),
    ("lib/listing.js", "part.format && ` [${part.format}]`", "''"),
    # The machine.
    ("lib/machine.js", "1: { evenHalves: false", "1: { evenHalves: true"),
    ("lib/machine.js", "2: { evenHalves: true, signedZero: true", "2: { evenHalves: true, signedZero: false"),
    ("lib/machine.js", "2: { evenHalves: true, signedZero: true", "2: { evenHalves: false, signedZero: true"),
    (
        "lib/machine.js",
        "3: { evenHalves: true, signedZero: false, errorValues: false",
        "3: { evenHalves: true, signedZero: false, errorValues: true",
    ),
    ("lib/machine.js", "4: { evenHalves: true, signedZero: false", "4: { evenHalves: true, signedZero: true"),
    ("lib/machine.js", "const STEP_LIMIT = 100000;", "const STEP_LIMIT = 100001;"),
    ("lib/machine.js", "this.steps > this.limit", "this.steps >= this.limit"),
    ("lib/machine.js", "filter(Boolean).pop()", "filter(Boolean).shift()"),
    ("lib/machine.js", "if (this.values.has(part.name)) return this.values.get(part.name);", ""),
    (
        "lib/machine.js",
        "if (this.values.has(name)) return this.stack.push(this.values.get(name));",
        "if (this.values.has(name) && !this.parts.has(name)) return this.stack.push(this.values.get(name));",
    ),
    ("lib/machine.js", "if (part.kind === 'cell') this.cells.set(part.name, null);", ""),
    ("lib/machine.js", "if (this.stack.length !== frame.floor) throw", "if (false) throw"),
    ("lib/machine.js", "this.stack.length <= this.frames", "this.stack.length < this.frames"),
    ("lib/machine.js", "if (this.pop() === 0n) frame.at", "if (this.pop() <= 0n) frame.at"),
    (
        "lib/machine.js",
        "if (this.top() instanceof ErrorValue) this.pop();\n        else",
        "if (!(this.top() instanceof ErrorValue))",
    ),
    (
        "lib/machine.js",
        "given.find((value) => value instanceof ErrorValue)",
        "given.reverse().find((value) => value instanceof ErrorValue)",
    ),
    ("lib/machine.js", "exponent > 100n * ONE", "exponent > 99n * ONE"),
    ("lib/machine.js", "exponent < 0n || ", ""),
    ("lib/machine.js", "exponent % ONE !== 0n", "false"),
    ("lib/machine.js", "digits > 6n * ONE", "digits > 5n * ONE"),
    ("lib/machine.js", "quotient(value, unit, this.rules.evenHalves) * unit", "quotient(value, unit, true) * unit"),
    ("lib/machine.js", "quotient(left * right, ONE, this.rules.evenHalves)", "quotient(left * right, ONE, true)"),
    ("lib/machine.js", "each < least ? each : least", "each > least ? each : least"),
    ("lib/machine.js", "return left <= right;", "return left < right;"),
    ("lib/machine.js", "this.cells.get(name) === null", "false"),
    # Files.
    ("lib/file.js", "checksum(body) !== bytes.readUInt32BE(body.length)", "false"),
    ("lib/file.js", "if (reader.at !== body.length) throw new Damaged();", ""),
    ("lib/file.js", "program.parts.some((part) => part.kind === 'formula')", "false"),
    ("lib/file.js", "if (version >= 4) program.parts.forEach(checkPositions);", ""),
    ("lib/file.js", "if (jumps.some(([from, to]) => to <= from || !starts.has(to))) throw new Damaged();", ""),
    ("lib/file.js", "to <= from || ", ""),
    ("lib/file.js", "|| !starts.has(to)", ""),
    ("lib/file.js", "last.name !== 'RET'", "false"),
    ("lib/file.js", "values[0] >= program.constants.length", "values[0] > program.constants.length"),
    ("lib/file.js", "values[0] >= part.parameters.length", "values[0] > part.parameters.length"),
    ("lib/file.js", "called.parameters.length !== values[1]", "false"),
    ("lib/file.js", "parameters.length && kind !== 'def'", "false"),
    ("lib/file.js", "kind !== 'cell' || ", ""),
    ("lib/file.js", "bytes.length < 5 || ", "bytes.length < 4 || "),
    ("lib/file.js", "if (!pattern.test(value)) throw new Damaged();", ""),
    ("lib/file.js", "count < called[1] || ", ""),
    # Sheets.
    ("lib/sheet.js", "/^[ \\t]*(#|$)/", "/^(#|$)/"),
    ("lib/sheet.js", "head[2].trim() ? head[2].split(',').length : 0", "head[2].split(',').length"),
    (
        "lib/sheet.js",
        "new Names(['IF', 'IFERROR', ...Object.keys(NUMBERS)])",
        "new Names(['IF', ...Object.keys(NUMBERS)])",
    ),
    ("lib/sheet.js", "lexer.match(/[ \\t]*\\[/y)", "lexer.match(/[ ]\\[/y)"),
    ("lib/sheet.js", "{1,6}", "{1,5}"),
    ("lib/sheet.js", "'', index + 1)", "'', index)"),
    ("lib/sheet.js", "names.add(parser, parser.expect('name'))", "parser.expect('name').text"),
    # The program.
    ("formula.js", "(-?[0-9]+", "([0-9]+"),
    ("formula.js", "found[2].startsWith('-') ? -value : value", "value"),
    ("formula.js", "Number(value) > 1000000", "Number(value) > 10000000"),
    ("formula.js", "[1-9][0-9]{0,6}", "[0-9]{1,7}"),
    ("formula.js", "if (cell && !lines.length) throw", "if (false) throw"),
    (
        "formula.js",
        "if (value instanceof ErrorValue) return value.text;",
        "if (value instanceof ErrorValue) return '#' + value.text;",
    ),
    ("formula.js", "sum + part.code.length", "Math.max(sum, part.code.length)"),
    ("formula.js", "process.exitCode = error.exitCode;", "process.exitCode = 2;"),
    ("formula.js", "error.message = `${path}: damaged`", "error.message = 'damaged'"),
]


def last_files() -> dict[str, str]:
    """Return the files as the last round leaves them."""
    texts = {}
    for number in range(1, ROUNDS + 1):
        solution = TASK / f"steps/round-{number}/solution/files"
        for path in solution.rglob("*.js"):
            texts[path.relative_to(solution).as_posix()] = path.read_text()
    return texts


def mutated(texts: dict[str, str], number: int) -> tuple[str, str]:
    """Return the file that a mutant changes and its text."""
    name, old, new = MUTANTS[number]
    if old not in texts[name]:
        raise SystemExit(f"mutants.py: not in {name}: {old!r}")
    return name, texts[name].replace(old, new)


def main() -> None:
    if len(sys.argv) != 3:
        for number, (name, old, new) in enumerate(MUTANTS):
            print(f"{number:3} {name}: {old!r} -> {new!r}")
        return
    name, text = mutated(last_files(), int(sys.argv[1]))
    directory = Path(sys.argv[2])
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    path = directory / f"steps/round-{ROUNDS}/solution/files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main()
