"""States: the bytes of a run that was stopped behind a row, and of its program."""

import struct

from . import deck
from .machine import Machine

MAGIC = b"LOOMSTOP"
HEAD = struct.Struct("<8sLLHHBBBB8h1024h")
LARGEST = 262144
"""No state has as many bytes."""


def to_bytes(machine):
    """Return the state of a machine. Behind the head are the stack and the deck."""
    head = HEAD.pack(
        MAGIC,
        machine.budget,
        machine.seed,
        machine.at,
        machine.rows,
        machine.zero,
        machine.less,
        machine.yarn,
        len(machine.stack),
        *machine.registers,
        *machine.drum,
    )
    stack = struct.pack(f"<{len(machine.stack)}h", *machine.stack)
    return deck.sealed(head + stack + deck.to_bytes(machine.program))


def from_bytes(content, write):
    """Return a machine that goes on from a state."""
    sound = content[: len(MAGIC)] == MAGIC and len(content) > HEAD.size
    deck.check(sound and deck.sealed(content[:-4]) == content, "no state, or its checksum is wrong")
    _, budget, seed, at, rows, zero, less, yarn, depth, *numbers = HEAD.unpack_from(content)
    start = HEAD.size + 2 * depth
    deck.check(start < len(content), "it ends too early")
    machine = Machine(deck.from_bytes(content[start:-4]), write, budget)
    machine.seed, machine.at, machine.rows, machine.yarn = seed, at, rows, yarn
    machine.zero, machine.less = bool(zero), bool(less)
    machine.registers, machine.drum = numbers[:8], numbers[8:]
    machine.stack = list(struct.unpack_from(f"<{depth}h", content, HEAD.size))
    return machine
