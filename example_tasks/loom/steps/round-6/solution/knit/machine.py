"""The machine that runs programs."""

from .codes import DEEPEST, LEAST, MOST, MOST_CELLS, MOST_ROWS, Refusal

HALT, SET, ADD, SUB, MUL, DIV, MOD, CMP, JMP, JEQ, JNE, JLT, JGE, CALL, RET = range(15)
PUSH, POP, LOAD, STORE, YARN, KNIT, SKIP, ROW, RAND = range(15, 24)


def fit(rules, value):
    """Make of a value one that fits: up to edition 4 by its lower 16 bits, later the nearest."""
    if rules < 5:
        return (value - LEAST) % 65536 + LEAST
    return min(max(value, LEAST), MOST)


class Fault(Exception):
    """An instruction cannot be carried out."""


def check(holds, kind):
    if not holds:
        raise Fault(kind)


def divide(rules, left, right):
    """Return quotient and rest: up to edition 3 cut off towards 0, later so that the rest is not negative."""
    check(right != 0, "divide")
    quotient = (abs(left) if rules < 4 else left) // abs(right)
    if (left < 0) != (right < 0) if rules < 4 else right < 0:
        quotient = -quotient
    return quotient, left - quotient * right


class Machine:
    """One run of a program."""

    def __init__(self, program, write, budget):
        self.program = program
        self.write = write
        self.budget = budget
        self.rows = 0
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
            address = self.at
            self.at += 1
            try:
                check(self.budget > 0, "budget")
                self.budget -= 1
                if kind == HALT:
                    return
                self.step(kind, register, self.registers[value] if mode else value)
            except Fault as fault:
                raise Refusal(4, f"loom: fault: {fault} at {address}{self.program.place(address)}") from None

    def push(self, value):
        check(len(self.stack) < DEEPEST, "stack")
        self.stack.append(value)

    def pop(self):
        check(self.stack, "stack")
        return self.stack.pop()

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
            target = self.pop()
            check(0 <= target <= len(self.program.code), "jump")
            self.at = target
        elif kind == PUSH:
            self.push(value)
        elif kind == POP:
            registers[register] = self.pop()
        elif kind == LOAD:
            check(0 <= value < MOST_CELLS, "drum")
            registers[register] = self.drum[value]
        elif kind == STORE:
            check(0 <= value < MOST_CELLS, "drum")
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
            new = divide(self.program.rules, old, value)[kind == MOD]
        self.registers[register] = new = fit(self.program.rules, new)
        self.zero = new == 0
        self.less = new < 0

    def jump(self, kind, target):
        if kind == CALL:
            self.push(self.at)
        taken = {JEQ: self.zero, JNE: not self.zero, JLT: self.less, JGE: not self.less}
        if taken.get(kind, True):
            self.at = target

    def needles(self, kind, value):
        if kind == YARN:
            check(0 <= value <= 15, "yarn")
            self.yarn = value
        elif kind in (KNIT, SKIP):
            check(value >= 0, "count")
            check(value <= self.program.width - len(self.row), "needle")
            self.row += ("." if kind == SKIP else f"{self.yarn:x}") * value
        else:
            check(self.rows < MOST_ROWS, "rows")
            self.rows += 1
            self.write(self.row.ljust(self.program.width, ".") + "\n")
            self.row = ""

    def random(self, below):
        check(below > 0, "count")
        self.seed = (1103515245 * self.seed + 12345) % 2147483648
        return self.seed // 65536 % below
