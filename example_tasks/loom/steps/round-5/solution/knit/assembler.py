"""From a pattern to a program."""

import os
import re
import stat

from .codes import (
    CODES,
    DEEPEST_FILE,
    DEEPEST_REPEAT,
    LARGEST_FILE,
    LEAST,
    MOST,
    MOST_CELLS,
    MOST_FILES,
    MOST_INSTRUCTIONS,
    MOST_REPEATS,
    OPERANDS,
    WIDEST,
    Program,
    Refusal,
)

BLANKS = " \t"
NAME = re.compile(r"(?!r[0-7]\Z)[a-z_][a-z0-9_]{0,31}\Z")
LABEL = re.compile(r"[ \t]*(?!r[0-7]:)([a-z_][a-z0-9_]{0,31}):")
NUMBER = re.compile(r"(-?)(?:0x([0-9a-fA-F]+)|0b([01]+)|([0-9]+))\Z")
PART = r"(?!\.)[a-z0-9_.-]{1,64}"
INCLUDED = re.compile(rf'"({PART}(?:/{PART}){{0,7}})"\Z')
KINDS = ["byte", "twice", "word", "repeat", "limit", "number", "name", "include", "operand"]


def assemble(path):
    """Read a pattern and return its program."""
    assembler = Assembler(path.removesuffix(os.path.basename(path)))
    try:
        with open(path, "rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise Refusal(1, f"loom: system: {path}: {error}") from None
    if len(content) > LARGEST_FILE:
        raise Refusal(3, f"{path}:1:1: limit")
    assembler.file(os.path.basename(path), content)
    return assembler.finish()


def read_included(directory, name):
    """Return the bytes of a file below a directory, None where it is none that may be included. No link is followed."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    *parts, last = name.split("/")
    at = None
    try:
        at = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY)
        for part in parts:
            below = os.open(part, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        with open(os.open(last, flags, dir_fd=at), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                return None
            content = opened.read(LARGEST_FILE + 1)
    except OSError:
        return None
    finally:
        if at is not None:
            os.close(at)
    return content if len(content) <= LARGEST_FILE else None


def column_shown(line, index):
    """Return the column in which an editor shows the byte at an index of a line."""
    column = 0
    for character in line[:index]:
        column = column // 8 * 8 + 8 if character == "\t" else column + 1
    return column + 1


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


class Body:
    """What a pattern has, or a `.repeat`: instructions and data, by their places in what was read, as often as there.

    Of what is too much there is only one of each kind left, which is enough to say so.
    """

    def __init__(self, word=None, times=1):
        self.word = word
        self.times = times
        self.code = []
        self.data = []

    def add(self, body):
        self.code = without_too_much(self.code, body.code, body.times, MOST_INSTRUCTIONS)
        self.data = without_too_much(self.data, body.data, body.times, MOST_CELLS)


def without_too_much(before, items, times, most):
    if items:
        before += items * min(times, most // len(items) + 2)
    return before[:most] + list(dict.fromkeys(before[most:]))


class Assembler:
    """A program while it is read. A place is (how many lines were read before, file, line, its text)."""

    def __init__(self, directory):
        self.program = Program()
        self.directory = directory
        self.open_files = []
        self.included = 0
        self.code = []
        self.data = []
        self.bodies = [Body()]
        self.errors = []
        self.names = {}
        self.wanted = []
        self.lines = 0
        self.width_is_set = False

    def error(self, place, column, kind):
        order, file, line, text = place
        self.errors.append((order, column_shown(text, column - 1), KINDS.index(kind), file, line))

    def file(self, name, content):
        """Read a file, in the place of the line that includes it."""
        self.open_files.append(name)
        for index, line in enumerate(content.decode("latin-1").split("\n")):
            self.lines += 1
            line = line.removesuffix("\r")
            self.line(line, (self.lines, name, index + 1, line))
        self.open_files.pop()
        for body in self.bodies[1:]:
            self.error(*body.word, "repeat")
        del self.bodies[1:]

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
            if len(self.bodies) > 1:
                self.error(place, label.start(1) + 1, "repeat")
            self.define(label[1], ("L", len(self.bodies[0].code)), place, label.start(1) + 1)
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
        if len(self.bodies) > 1 and word in (".include", ".width", ".const"):
            self.error(place, at + 1, "repeat")
        if word == ".repeat":
            times = self.operands(".", operands, end, place, 0, MOST_REPEATS)[0]
            if len(self.bodies) > DEEPEST_REPEAT:
                self.error(place, at + 1, "repeat")
            self.bodies.append(Body((place, at + 1), times))
        elif word == ".end":
            self.operands("", operands, end, place)
            if len(self.bodies) == 1:
                self.error(place, at + 1, "repeat")
            else:
                body = self.bodies.pop()
                self.bodies[-1].add(body)
        elif word == ".include" and len(self.bodies) == 1:
            self.include(*(operands[0] if operands else ("", end)), place)
            if len(operands) > 1:
                self.error(place, operands[1][1], "operand")
        elif word == ".include":
            pass
        elif word == ".data":
            self.cells(operands or [("", end)], place)
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
            self.wanted.append((len(self.code), text, kind, place, column))
            return (0, 0)
        self.error(place, column, "operand")
        return 0 if kind in ".R" else (0, 0)

    def instruction(self, word, operands, column, end, place):
        code = CODES[word]
        kinds = OPERANDS[code]
        values = self.operands(kinds, operands, end, place)
        register = values[0] if kinds.startswith("R") else 0
        mode, value = values[-1] if kinds.endswith(("V", "L")) else (0, 0)
        self.bodies[-1].code.append(len(self.code))
        self.code.append(((code, register, mode, value), place, column))

    def cells(self, operands, place):
        for text, column in operands:
            self.bodies[-1].data.append(len(self.data))
            self.data.append((self.operand(".", text, place, column, LEAST, MOST), place, column))

    def include(self, text, column, place):
        content = None
        match = INCLUDED.match(text)
        if not text:
            self.error(place, column, "operand")
            return
        self.included += 1
        if match and self.included <= MOST_FILES and len(self.open_files) < DEEPEST_FILE:
            name = os.path.join(os.path.dirname(place[1]), match[1])
            if name not in self.open_files:
                content = read_included(self.directory, name)
        if content is None:
            self.error(place, column, "include")
        else:
            self.file(name, content)

    def finish(self):
        """Give names their meanings, and return the program; where there are errors, tell the first."""
        for index, name, kind, place, column in self.wanted:
            found, value = self.names.get(name, (None, 0))
            if found != kind:
                self.error(place, column, "name")
            else:
                instruction, *where = self.code[index]
                self.code[index] = ((*instruction[:3], value), *where)
        body = self.bodies[0]
        too_much = [self.code[index] for index in body.code[MOST_INSTRUCTIONS:]]
        too_much += [self.data[index] for index in body.data[MOST_CELLS:]]
        for _, place, column in too_much:
            self.error(place, column, "limit")
        if self.errors:
            _, column, kind, file, line = min(self.errors)
            raise Refusal(3, f"{self.directory}{file}:{line}:{column}: {KINDS[kind]}")
        self.program.code = [self.code[index][0] for index in body.code]
        self.program.data = [self.data[index][0] for index in body.data]
        return self.program
