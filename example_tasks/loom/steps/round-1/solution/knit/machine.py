"""The machine that runs programs."""

from .codes import LEAST, MOST_CELLS

HALT, SET, ADD, SUB, MUL, DIV, MOD, CMP, JMP, JEQ, JNE, JLT, JGE, CALL, RET = range(15)
PUSH, POP, LOAD, STORE, YARN, KNIT, SKIP, ROW, RAND = range(15, 24)


def wrap(value):
    """Keep the lower 16 bits, with a sign."""
    return (value - LEAST) % 65536 + LEAST


def divide(left, right):
    """Return the quotient, cut off towards 0, and what is left."""
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return quotient, left - quotient * right


class Machine:
    """One run of a program."""

    def __init__(self, program, write):
        self.program = program
        self.write = write
        self.registers = [0] * 8
        self.drum = program.data + [0] * (MOST_CELLS - len(program.data))
        self.stack = []
        self.zero = self.less = False
        self.yarn = 0
        self.seed = 1
        self.row = ""
        self.at = 0

    def run(self):
        code = self.program.code
        while self.at < len(code):
            kind, register, mode, value = code[self.at]
            if kind == HALT:
                return
            self.at += 1
            self.step(kind, register, self.registers[value] if mode else value)

    def step(self, kind, register, value):
        registers = self.registers
        if kind == SET:
            registers[register] = value
        elif kind <= MOD:
            self.compute(kind, register, value)
        elif kind == CMP:
            self.zero = registers[register] == value
            self.less = registers[register] < value
        elif kind <= CALL:
            self.jump(kind, value)
        elif kind == RET:
            self.at = self.stack.pop()
        elif kind == PUSH:
            self.stack.append(value)
        elif kind == POP:
            registers[register] = self.stack.pop()
        elif kind == LOAD:
            registers[register] = self.drum[value]
        elif kind == STORE:
            self.drum[value] = registers[register]
        elif kind == RAND:
            registers[register] = self.random(value)
        else:
            self.needles(kind, value)

    def compute(self, kind, register, value):
        old = self.registers[register]
        if kind == ADD:
            new = old + value
        elif kind == SUB:
            new = old - value
        elif kind == MUL:
            new = old * value
        else:
            new = divide(old, value)[kind == MOD]
        self.registers[register] = new = wrap(new)
        self.zero = new == 0
        self.less = new < 0

    def jump(self, kind, target):
        if kind == CALL:
            self.stack.append(self.at)
        taken = {JEQ: self.zero, JNE: not self.zero, JLT: self.less, JGE: not self.less}
        if taken.get(kind, True):
            self.at = target

    def needles(self, kind, value):
        if kind == YARN:
            self.yarn = value
        elif kind == KNIT:
            self.row += f"{self.yarn:x}" * value
        elif kind == SKIP:
            self.row += "." * value
        else:
            self.write(self.row.ljust(self.program.width, ".") + "\n")
            self.row = ""

    def random(self, below):
        self.seed = (1103515245 * self.seed + 12345) % 2147483648
        return self.seed // 65536 % below
