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

MOST_INSTRUCTIONS = 4096
MOST_CELLS = 1024
"""Numbers of data, and cells of the drum."""
WIDEST = 200
LEAST, MOST = -32768, 32767


class Refusal(Exception):
    """The end of a command: its exit status, and the line that says why."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status
        self.text = text


class Program:
    """What a pattern or a deck says. An instruction is (code, register, mode, value)."""

    def __init__(self):
        self.width = 40
        self.code = []
        self.data = []
