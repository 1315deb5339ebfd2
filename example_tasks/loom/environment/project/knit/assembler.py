"""From a pattern to a program, in two passes: the first finds labels and constants, the second makes instructions."""

import os

from .codes import CODES, OPERANDS, PatternError, Program

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"


class Statement:
    """A line that does something: what it says, and where it stands."""

    def __init__(self, file, line, word, operands):
        self.file = file
        self.line = line
        self.word = word
        self.operands = operands

    def error(self, kind):
        return PatternError(self.file, self.line, 1, kind)


def assemble(path):
    """Read a pattern and return its program."""
    assembler = Assembler()
    assembler.first_pass(path)
    return assembler.second_pass()


def read_lines(path):
    """Return the lines of a file that say something, without comments, with their numbers."""
    with open(path, encoding="utf-8") as opened:
        text = opened.read()
    lines = []
    number = 0
    for line in text.splitlines():
        line = line.split(";")[0].strip()
        if not line:
            continue
        number += 1
        lines.append((number, line))
    return lines


def parse_number(text):
    """Return the value of a number, None where it is none."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def is_name(text):
    """Say whether a text can be the name of something."""
    return text.lower().strip(LETTERS) == "" and not text[0].isdigit()


def split_operands(text):
    """Return the operands of a statement."""
    return [piece.strip() for piece in text.split(",") if piece.strip()]


class Assembler:
    """A program while it is read."""

    def __init__(self):
        self.program = Program()
        self.labels = {}
        self.constants = {}
        self.statements = []

    def first_pass(self, path):
        """Collect the statements of a file and of what it includes, and the labels and constants."""
        for number, line in read_lines(path):
            if ":" in line:
                label, line = line.split(":", 1)
                self.labels[label.strip().lower()] = self.address()
                line = line.strip()
                if not line:
                    continue
            word, _, rest = line.partition(" ")
            statement = Statement(path, number, word.lower(), split_operands(rest))
            if statement.word == ".include":
                self.include(statement)
            elif statement.word == ".const":
                self.constant(statement)
            elif statement.word == ".width":
                self.program.width = self.number(statement, statement.operands[0])
            elif statement.word == ".data":
                for operand in statement.operands:
                    self.program.data.append(self.number(statement, operand))
            else:
                self.statements.append(statement)

    def address(self):
        """Return the address of the next instruction."""
        return len(self.statements)

    def include(self, statement):
        """Read another file in the place of this line."""
        name = statement.operands[0].strip('"')
        self.first_pass(os.path.join(os.path.dirname(statement.file), name))

    def constant(self, statement):
        """Remember a constant."""
        name, value = statement.operands
        self.constants[name] = self.number(statement, value)

    def number(self, statement, text):
        value = parse_number(text)
        if value is None:
            raise statement.error("number")
        return value

    def second_pass(self):
        """Make the instructions, now that all labels are known."""
        self.program.code = []
        for statement in self.statements:
            self.program.code.append(self.instruction(statement))
        return self.program

    def instruction(self, statement):
        """Return the instruction of a statement."""
        if statement.word not in CODES:
            raise statement.error("word")
        code = CODES[statement.word]
        kinds = OPERANDS[code]
        if len(statement.operands) < len(kinds):
            raise statement.error("operand")
        register, mode, value = 0, 0, 0
        for kind, operand in zip(kinds, statement.operands, strict=False):
            if kind == "R":
                register = self.register(statement, operand)
            elif kind == "L":
                value = self.label(statement, operand)
            else:
                mode, value = self.value(statement, operand)
        return code, register, mode, value

    def register(self, statement, operand):
        """Return the number of a register."""
        operand = operand.lower()
        if operand[0] != "r":
            raise statement.error("operand")
        return self.number(statement, operand[1:])

    def label(self, statement, operand):
        """Return the address of a label, or of whatever else can be jumped to."""
        if operand.lower() in self.labels:
            return self.labels[operand.lower()]
        if operand in self.constants:
            return self.constants[operand]
        value = parse_number(operand)
        if value is None:
            raise statement.error("name")
        return value

    def value(self, statement, operand):
        """Return mode and value of an operand: a register, a number or a constant."""
        if operand[0] in "rR" and operand[1:].isdigit():
            return 1, int(operand[1:])
        if operand in self.constants:
            return 0, self.constants[operand]
        if is_name(operand):
            raise statement.error("name")
        return 0, self.number(statement, operand)
