"""The instructions, by their codes, and what their operands are: R a register, V a value, L a label."""

INSTRUCTIONS = [
    ("halt", ""),
    ("set", "RV"),
    ("add", "RV"),
    ("sub", "RV"),
    ("mul", "RV"),
    ("div", "RV"),
    ("mod", "RV"),
    ("cmp", "RV"),
    ("jmp", "L"),
    ("jeq", "L"),
    ("jne", "L"),
    ("jlt", "L"),
    ("jge", "L"),
    ("call", "L"),
    ("ret", ""),
    ("push", "V"),
    ("pop", "R"),
    ("load", "RV"),
    ("store", "RV"),
    ("yarn", "V"),
    ("knit", "V"),
    ("skip", "V"),
    ("row", ""),
    ("rand", "RV"),
]
NAMES = [name for name, _ in INSTRUCTIONS]
OPERANDS = [operands for _, operands in INSTRUCTIONS]
CODES = {name: code for code, name in enumerate(NAMES)}

MOST_CELLS = 1024
"""Cells of the drum."""


class PatternError(Exception):
    """A pattern is wrong at some line."""

    def __init__(self, file, line, column, kind):
        super().__init__(f"{file}:{line}:{column}: {kind}")


class Program:
    """What a pattern or a deck says. An instruction is (code, register, mode, value)."""

    width = 40
    code = []
    data = []
