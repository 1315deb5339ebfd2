"""The machine that runs programs."""

import random

from .codes import MOST_CELLS, NAMES


def wrap(value):
    """Keep what fits."""
    return value & 0xFFFF


class Machine:
    """One run of a program."""

    registers = [0] * 8
    stack = []
    zero = None
    less = None
    yarn = 0

    def __init__(self, program, write):
        self.program = program
        self.write = write
        self.drum = program.data
        while len(self.drum) < MOST_CELLS:
            self.drum.append(0)
        self.row = ""
        self.at = 0
        self.running = True

    def run(self):
        while self.running and self.at < len(self.program.code):
            code, register, mode, value = self.program.code[self.at]
            self.at += 1
            if mode:
                value = self.registers[value]
            getattr(self, "do_" + NAMES[code])(register, value)

    def result(self, register, value):
        """Put what was computed into a register, and set the flags by it."""
        self.registers[register] = value
        Machine.zero = value == 0
        Machine.less = value < 0

    def do_halt(self, register, value):
        self.running = False

    def do_set(self, register, value):
        self.result(register, value)

    def do_add(self, register, value):
        self.result(register, wrap(self.registers[register] + value))

    def do_sub(self, register, value):
        self.result(register, self.registers[register] - value)

    def do_mul(self, register, value):
        self.result(register, self.registers[register] * value)

    def do_div(self, register, value):
        self.result(register, self.registers[register] // value)

    def do_mod(self, register, value):
        self.result(register, self.registers[register] % value)

    def do_cmp(self, register, value):
        difference = wrap(self.registers[register] - value)
        Machine.zero = difference == 0
        Machine.less = difference > 0x7FFF

    def do_jmp(self, register, value):
        self.at = value

    def do_jeq(self, register, value):
        if self.zero is not False:
            self.at = value

    def do_jne(self, register, value):
        if not self.zero:
            self.at = value

    def do_jlt(self, register, value):
        if self.less:
            self.at = value

    def do_jge(self, register, value):
        if self.less is False or self.zero:
            self.at = value

    def do_call(self, register, value):
        self.stack.append(self.at)
        self.at = value

    def do_ret(self, register, value):
        self.at = self.stack.pop()

    def do_push(self, register, value):
        self.stack.append(value)

    def do_pop(self, register, value):
        self.registers[register] = self.stack.pop()

    def do_load(self, register, value):
        self.result(register, self.drum[value])

    def do_store(self, register, value):
        self.drum[value] = self.registers[register]

    def do_yarn(self, register, value):
        Machine.yarn = value

    def do_knit(self, register, value):
        self.row += str(self.yarn) * value

    def do_skip(self, register, value):
        self.row += "." * value

    def do_row(self, register, value):
        self.write(self.row.rstrip(".") + "\n")
        self.row = ""

    def do_rand(self, register, value):
        self.registers[register] = random.randrange(value)
