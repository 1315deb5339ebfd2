"""Decks: the bytes of a program."""

import struct

from .codes import Program

MAGIC = b"LOOM"
EDITION = 1


def word(value):
    """Return two bytes of a number, the lower one first."""
    return struct.pack("<H", value & 0xFFFF)


def to_bytes(program):
    """Return the deck of a program."""
    deck = bytearray(MAGIC)
    deck += bytes([EDITION, program.width & 0xFF])
    deck += word(len(program.code)) + word(len(program.data))
    for code, register, mode, value in program.code:
        deck += bytes([code, register & 0xFF, mode]) + word(value)
    for value in program.data:
        deck += word(value)
    return bytes(deck)


class Reader:
    """The bytes of a deck, from the front to the back."""

    def __init__(self, content):
        self.content = content
        self.at = 0

    def byte(self):
        self.at += 1
        return self.content[self.at - 1]

    def word(self):
        low = self.byte()
        return low + 256 * self.byte()


def from_bytes(content):
    """Return the program of a deck."""
    reader = Reader(content)
    reader.at = len(MAGIC) + 1
    program = Program()
    program.width = reader.byte()
    count = reader.word()
    cells = reader.word()
    program.code = []
    for _ in range(count):
        code, register, mode = reader.byte(), reader.byte(), reader.byte()
        program.code.append((code, register, mode, reader.word()))
    for _ in range(cells):
        program.data.append(reader.word())
    return program
