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
LARGEST_FILE = 65536
MOST_FILES = 64
"""Included ones."""
DEEPEST_FILE = 8
MOST_REPEATS = 1000
DEEPEST_REPEAT = 8
LONGEST_NAME = 255
"""Bytes of a file's name in a deck."""
EDITION = 6
"""Of what is built."""
DEEPEST = 64
"""Numbers on the stack."""
MOST_ROWS = 10000
BUDGET = 100000
"""Of a run, where the command has none."""
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
        self.rules = EDITION
        self.code = []
        self.data = []
        self.files = []
        self.lines = []
        """Of each instruction (file, line), or nothing."""

    def place(self, address):
        """Return where an instruction stands, as a fault tells it."""
        if not self.lines:
            return ""
        file, line = self.lines[address]
        name = "".join(chr(byte) if 33 <= byte <= 126 else "?" for byte in self.files[file])
        return f", {name}:{line}"
