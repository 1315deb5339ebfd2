"""Patterns, decks and the machine as the suite has them: code is a list such as `("add", "r1", 5)`, `("jmp", 3)`."""

import binascii

WORDS = (
    "halt set:RV add:RV sub:RV mul:RV div:RV mod:RV cmp:RV jmp:L jeq:L jne:L jlt:L jge:L call:L ret push:V pop:R "
    "load:RV store:RV yarn:V knit:V skip:V row rand:RV"
)
OPERANDS = {word: kinds for word, _, kinds in (each.partition(":") for each in WORDS.split())}
CODES = {word: code for code, word in enumerate(OPERANDS)}
POWERS = [1 << bit for bit in range(14, -1, -1)]
"""The data that what is appended by `showing` needs, from cell 0 on."""


def pattern(code, data=(), width=40):
    """Return the pattern that `list` prints for a program."""
    lines = [f".width {width}"]
    lines += [".data " + ", ".join(map(str, data[at : at + 8])) for at in range(0, len(data), 8)]
    targets = {operands[-1] for word, *operands in code if OPERANDS[word] == "L"}
    for address, (word, *operands) in enumerate(code):
        if address in targets:
            lines.append(f"a{address}:")
        texts = [f"a{each}" if OPERANDS[word] == "L" else str(each) for each in operands]
        lines.append(f"    {word} {', '.join(texts)}".rstrip())
    if len(code) in targets:
        lines.append(f"a{len(code)}:")
    return "".join(line + "\n" for line in lines)


def two(value):
    """Return a number of two bytes."""
    return (value % 65536).to_bytes(2, "little")


def instruction(word, *operands):
    """Return the five bytes of an instruction."""
    kinds = OPERANDS[word]
    register = int(operands[0][1]) if kinds.startswith("R") else 0
    value = operands[-1] if kinds[-1:] in ("V", "L") else 0
    mode = int(isinstance(value, str))
    return bytes([CODES[word], register, mode]) + two(int(value[1]) if mode else value)


def sealed(content):
    """Return bytes with their checksum."""
    return content + binascii.crc32(content).to_bytes(4, "little")


def deck(edition, code, data=(), width=40, *, files=None, lines=(), rules=7):
    """Return a deck. From edition 6 on it has files, and of each instruction (file, line)."""
    head = b"LOOM" + bytes([edition]) + (bytes([rules]) if edition >= 7 else b"") + bytes([width])
    content = head + two(len(code)) + two(len(data))
    content += b"".join(instruction(*each) for each in code) + b"".join(map(two, data))
    if edition >= 6:
        names = [b"a.knit"] if files is None else files
        lines = lines or ([(0, 1)] * len(code) if names else [])
        content += bytes([len(names)]) + b"".join(bytes([len(name)]) + name for name in names)
        content += b"".join(bytes([file]) + two(line) for file, line in lines)
    return content if edition < 3 else sealed(content)


def shown(value):
    """Return the row that shows a number: its sign and 15 bits."""
    return f"{value % 65536:016b}".replace("0", ".").replace("1", "7") + "\n"


def showing(code, registers):
    """Return code that ends by showing what registers have. It needs the data POWERS, a bed of 16, and r6 and r7."""
    code = [each for each in code if each != ("halt",)]
    start = len(code) + 1 + 2 * len(registers) + 1
    code = [*code, ("yarn", 7)]
    for register in registers:
        code += [("set", "r0", register), ("call", start)]
    code += [("halt",)]
    code += [("cmp", "r0", 0), ("jlt", start + 4), ("skip", 1), ("jmp", start + 7)]
    code += [("knit", 1), ("add", "r0", 32767), ("add", "r0", 1)]
    code += [("set", "r7", 0), ("load", "r6", "r7"), ("cmp", "r0", "r6"), ("jlt", start + 14), ("sub", "r0", "r6")]
    code += [("knit", 1), ("jmp", start + 15), ("skip", 1), ("add", "r7", 1), ("cmp", "r7", 15), ("jne", start + 8)]
    return [*code, ("row",), ("ret",)]


class Fault(Exception):
    """The end of a run: its kind."""


class Run:
    """One run: its rows, and (kind, address) of its fault, None where it has none."""

    def __init__(self, code, data=(), width=40, *, rules=7, budget=100000, stitches=True):
        self.code, self.width, self.rules, self.left, self.stitches = code, width, rules, budget, stitches
        self.registers = dict.fromkeys([f"r{number}" for number in range(8)], 0)
        self.cells = dict(enumerate(data))
        self.stack, self.row, self.rows = [], "", []
        self.equal = self.smaller = False
        self.colour, self.chance, self.next = 0, 1, 0
        self.fault = None
        while self.fault is None and self.next < len(code) and code[self.next] != ("halt",):
            address = self.next
            try:
                self._spend(1)
                self._do(*code[address])
            except Fault as fault:
                self.fault = (str(fault), address)
        if self.fault is None and self.next < len(code) and self.left < 1:
            self.fault = ("budget", self.next)

    def _spend(self, amount):
        if self.left < amount:
            raise Fault("budget")
        self.left -= amount

    def _value(self, operand):
        return self.registers[operand] if isinstance(operand, str) else operand

    def _do(self, word, *operands):
        self.next += 1
        kinds = OPERANDS[word]
        value = self._value(operands[-1]) if operands else None
        if kinds == "L":
            self._jump(word, value)
        elif word in ("add", "sub", "mul", "div", "mod"):
            self._compute(word, operands[0], value)
        elif kinds.startswith("R"):
            self._move(word, operands[0], value)
        else:
            getattr(self, f"_{word}")(value)

    def _jump(self, word, target):
        if word == "call":
            self._push(self.next)
        holds = {"jeq": self.equal, "jne": not self.equal, "jlt": self.smaller, "jge": not self.smaller}
        if holds.get(word, True):
            self.next = target

    def _compute(self, word, register, value):
        old = self.registers[register]
        if word in ("div", "mod"):
            if value == 0:
                raise Fault("divide")
            sign = 1 if value > 0 else -1
            rest = old % abs(value)
            if self.rules < 4 and old < 0 and rest:
                rest -= abs(value)
            new = rest if word == "mod" else sign * ((old - rest) // abs(value))
        else:
            new = {"add": old + value, "sub": old - value, "mul": old * value}[word]
        if self.rules < 5:
            new = (new + 32768) % 65536 - 32768
        new = max(-32768, min(32767, new))
        self.registers[register] = new
        self.equal, self.smaller = new == 0, new < 0

    def _move(self, word, register, value):
        if word == "cmp":
            old = self.registers[register]
            self.equal, self.smaller = old == value, old < value
        elif word == "set":
            self.registers[register] = value
        elif word == "pop":
            self.registers[register] = self._pop()
        elif word == "rand":
            if value < 1:
                raise Fault("count")
            self.chance = (1103515245 * self.chance + 12345) & 0x7FFFFFFF
            self.registers[register] = (self.chance >> 16) % value
        elif not 0 <= value <= 1023:
            raise Fault("drum")
        elif word == "load":
            self.registers[register] = self.cells.get(value, 0)
        else:
            self.cells[value] = self.registers[register]

    def _push(self, value):
        if len(self.stack) == 64:
            raise Fault("stack")
        self.stack.append(value)

    def _pop(self):
        if not self.stack:
            raise Fault("stack")
        return self.stack.pop()

    def _ret(self, _):
        target = self._pop()
        if not 0 <= target <= len(self.code):
            raise Fault("jump")
        self.next = target

    def _yarn(self, value):
        if not 0 <= value <= 15:
            raise Fault("yarn")
        self.colour = value

    def _needles(self, value, character):
        if value < 0:
            raise Fault("count")
        if len(self.row) + value > self.width:
            raise Fault("needle")
        if character != "." and self.stitches:
            self._spend(value)
        self.row += character * value

    def _knit(self, value):
        self._needles(value, "0123456789abcdef"[self.colour])

    def _skip(self, value):
        self._needles(value, ".")

    def _row(self, _):
        if len(self.rows) == 10000:
            raise Fault("rows")
        self.rows.append(self.row + "." * (self.width - len(self.row)) + "\n")
        self.row = ""


NUMBERS = [0, 1, -1, 2, 3, -3, 7, -7, 10, 100, -181, 255, 256, 4096, 32767, -32768, 20000, -20000, 32766, -32767]

CHOICES = ["set", "set", "add", "add", "sub", "mul", "div", "mod", "cmp", "jeq", "jne", "jlt", "jge"]
CHOICES += ["push", "pop", "load", "store", "rand"]


def chance_code(chance, length=40):
    """Return code at random, which jumps forward and calls no one, and at last shows its registers."""
    registers = [f"r{number}" for number in range(1, 6)]
    code = []
    while len(code) < length:
        address = len(code)
        word = chance.choice(CHOICES)
        register = chance.choice(registers)
        value = chance.choice(registers) if chance.random() < 0.5 else chance.choice(NUMBERS)
        if word in ("div", "mod") and chance.random() < 0.95:
            value = chance.choice(NUMBERS[1:])
        if OPERANDS[word] == "L":
            code.append((word, chance.randint(address + 1, address + 5)))
        elif word == "push":
            code.append((word, value))
        elif word == "pop":
            code += [("push", value), ("pop", register)]
        elif word in ("load", "store"):
            code.append((word, register, chance.randint(15, 1023)))
        elif word == "rand":
            code.append((word, register, abs(value) % 32767 + 1 if isinstance(value, int) else 9))
        else:
            code.append((word, register, value))
    return showing(code + [("set", "r5", 5)] * 5, registers)


def chance_codes(chance, count, *, faults=False, **how):
    """Return programs at random which have a fault, or none."""
    found = []
    while len(found) < count:
        code = chance_code(chance)
        if (Run(code, POWERS, 16, **how).fault is not None) == faults:
            found.append(code)
    return found
