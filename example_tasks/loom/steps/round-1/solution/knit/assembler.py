"""From a pattern to a program."""

import os
import re

from .codes import CODES, LEAST, MOST, MOST_CELLS, MOST_INSTRUCTIONS, OPERANDS, WIDEST, Program, Refusal

BLANKS = " \t"
NAME = re.compile(r"(?!r[0-7]\Z)[a-z_][a-z0-9_]{0,31}\Z")
LABEL = re.compile(r"[ \t]*(?!r[0-7]:)([a-z_][a-z0-9_]{0,31}):")
NUMBER = re.compile(r"(-?)(?:0x([0-9a-fA-F]+)|0b([01]+)|([0-9]+))\Z")
KINDS = ["byte", "twice", "word", "limit", "number", "name", "operand"]


def assemble(path):
    """Read a pattern and return its program."""
    assembler = Assembler()
    assembler.file(path)
    return assembler.finish()


def number(text, least=LEAST, most=MOST):
    """Return the value of a number, None where it is none or out of its range."""
    match = NUMBER.match(text)
    if match is None:
        return None
    sign, *digits = match.groups()
    for base, found in zip((16, 2, 10), digits, strict=True):
        if found is not None:
            found = found.lstrip("0") or "0"
            value = int(found, base) if len(found) <= 16 else MOST + 2
    value = -value if sign else value
    return value if least <= value <= most else None


def operands_of(text, start):
    """Return the operands in `text`, which begins at column `start`, each with its column."""
    found = []
    if not text.strip(BLANKS):
        return found
    for piece in text.split(","):
        bare = piece.strip(BLANKS)
        found.append((bare, start + piece.index(bare) if bare else start + len(piece)))
        start += len(piece) + 1
    return found


class Assembler:
    """A program while it is read. A place is (how many lines were read before, file, line)."""

    def __init__(self):
        self.program = Program()
        self.errors = []
        self.names = {}
        self.wanted = []
        self.lines = 0
        self.width_is_set = False

    def error(self, place, column, kind):
        order, file, line = place
        self.errors.append((order, column, KINDS.index(kind), file, line))

    def file(self, path):
        """Read a file, in the place of the line that includes it."""
        try:
            with open(path, "rb") as opened:
                text = opened.read().decode("latin-1")
        except (OSError, ValueError) as error:
            raise Refusal(1, f"loom: system: {path}: {error}") from None
        for index, line in enumerate(text.split("\n")):
            self.lines += 1
            self.line(line.removesuffix("\r"), (self.lines, path, index + 1))

    def line(self, line, place):
        content = line.partition(";")[0]
        for index, character in enumerate(content):
            if not (" " <= character <= "~" or character == "\t"):
                self.error(place, index + 1, "byte")
                return
        content = content.rstrip(BLANKS)
        label = LABEL.match(content)
        at = 0
        if label:
            self.define(label[1], ("L", len(self.program.code)), place, label.start(1) + 1)
            at = label.end()
        rest = content[at:].lstrip(BLANKS)
        if rest:
            self.statement(content, len(content) - len(rest), place)

    def define(self, name, meaning, place, column):
        if name in self.names:
            self.error(place, column, "twice")
        else:
            self.names[name] = meaning

    def statement(self, content, at, place):
        word = re.match(r"[^ \t]+", content[at:])[0]
        start = at + len(word)
        end = len(content) + 1
        operands = operands_of(content[start:], start + 1)
        if word == ".include":
            self.include(*(operands[0] if operands else ("", end)), place)
            if len(operands) > 1:
                self.error(place, operands[1][1], "operand")
        elif word == ".data":
            self.data(operands or [("", end)], place)
        elif word == ".width":
            if self.width_is_set:
                self.error(place, at + 1, "twice")
            self.width_is_set = True
            values = self.operands(".", operands, end, place, 1, WIDEST)
            self.program.width = values[0]
        elif word == ".const":
            name = operands[0] if operands else ("", end)
            if not NAME.match(name[0]):
                self.error(place, name[1], "operand")
            value = self.operands(".", operands[1:], end, place)[0]
            if NAME.match(name[0]):
                self.define(name[0], ("V", value), place, name[1])
        elif word in CODES:
            self.instruction(word, operands, at + 1, end, place)
        else:
            self.error(place, at + 1, "word")

    def operands(self, kinds, operands, end, place, least=LEAST, most=MOST):
        """Return the values of operands: (mode, value) of a V, the number of an R, None of an L; of a `.` a number."""
        values = []
        for index, kind in enumerate(kinds):
            text, column = operands[index] if index < len(operands) else ("", end)
            values.append(self.operand(kind, text, place, column, least, most))
        if len(operands) > len(kinds):
            self.error(place, operands[len(kinds)][1], "operand")
        return values

    def operand(self, kind, text, place, column, least, most):
        if kind in ".V" and re.match("[-0-9]", text):
            value = number(text, least, most)
            if value is None:
                self.error(place, column, "number")
                value = 0
            return value if kind == "." else (0, value)
        if kind in "RV" and re.fullmatch("r[0-7]", text):
            return int(text[1]) if kind == "R" else (1, int(text[1]))
        if kind in "VL" and NAME.match(text):
            self.wanted.append((len(self.program.code), text, kind, place, column))
            return (0, 0)
        self.error(place, column, "operand")
        return 0 if kind in ".R" else (0, 0)

    def instruction(self, word, operands, column, end, place):
        code = CODES[word]
        if len(self.program.code) == MOST_INSTRUCTIONS:
            self.error(place, column, "limit")
        kinds = OPERANDS[code]
        values = self.operands(kinds, operands, end, place)
        register = values[0] if kinds.startswith("R") else 0
        mode, value = values[-1] if kinds.endswith(("V", "L")) else (0, 0)
        self.program.code.append((code, register, mode, value))

    def data(self, operands, place):
        for text, column in operands:
            if len(self.program.data) == MOST_CELLS:
                self.error(place, column, "limit")
            self.program.data.append(self.operand(".", text, place, column, LEAST, MOST))

    def include(self, text, column, place):
        if len(text) < 3 or text[0] != '"' or text[-1] != '"':
            self.error(place, column, "operand")
        else:
            name = text[1:-1].encode("latin-1").decode("utf-8", "surrogateescape")
            self.file(os.path.join(os.path.dirname(place[1]), name))

    def finish(self):
        """Give names their meanings, and return the program; where there are errors, tell the first."""
        code = self.program.code
        for address, name, kind, place, column in self.wanted:
            found, value = self.names.get(name, (None, 0))
            if found != kind:
                self.error(place, column, "name")
            else:
                code[address] = (*code[address][:3], value)
        if self.errors:
            _, column, kind, file, line = min(self.errors)
            raise Refusal(3, f"{file}:{line}:{column}: {KINDS[kind]}")
        return self.program
