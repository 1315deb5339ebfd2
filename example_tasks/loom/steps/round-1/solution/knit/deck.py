"""Decks: the bytes of a program."""

import struct

from .codes import Program

MAGIC = b"LOOM"
EDITION = 1
HEAD = struct.Struct("<4sBBHH")
INSTRUCTION = struct.Struct("<BBBh")


def to_bytes(program):
    """Return the deck of a program."""
    head = HEAD.pack(MAGIC, EDITION, program.width, len(program.code), len(program.data))
    code = b"".join(INSTRUCTION.pack(*each) for each in program.code)
    return head + code + struct.pack(f"<{len(program.data)}h", *program.data)


def from_bytes(content):
    """Return the program of a deck."""
    program = Program()
    _, _, program.width, count, cells = HEAD.unpack_from(content)
    end = HEAD.size + count * INSTRUCTION.size
    program.code = list(INSTRUCTION.iter_unpack(content[HEAD.size : end]))
    program.data = list(struct.unpack_from(f"<{cells}h", content, end))
    return program
