"""Saved files as the orders describe them, put together byte by byte."""

from __future__ import annotations

import zlib

NAMES = "PUSH LOAD ADD SUB MUL DIV NEG POW EQ NE LT LE GT GE CALL JZ JMP RET ARG INVOKE JERR JOK"
OPCODES = {name: number for number, name in enumerate(NAMES.split(), 1)}
FUNCTIONS = {"MIN": 1, "MAX": 2, "ROUND": 3, "ABS": 4}
FORMULA, CELL, DEF = 0, 1, 2


def code(text: str) -> bytes:
    """Assemble instructions that stand between semicolons; operands are numbers, or names of built-in functions."""
    done = bytearray()
    for instruction in text.split(";"):
        name, *operands = instruction.split()
        done.append(OPCODES[name])
        match name:
            case "CALL":
                done += bytes([FUNCTIONS.get(operands[0], 99), int(operands[1])])
            case "INVOKE":
                done += wide(int(operands[0])) + bytes([int(operands[1])])
            case "ARG":
                done.append(int(operands[0]))
            case _:
                done += b"".join(wide(int(operand)) for operand in operands)
    return bytes(done)


def wide(number: int) -> bytes:
    return number.to_bytes(2, "big")


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


def texts(values: str) -> bytes:
    """Texts that stand between blanks, and how many they are."""
    return wide(len(values.split())) + b"".join(text(value) for value in values.split())


def sealed(content: bytes) -> bytes:
    return content + zlib.crc32(content).to_bytes(4, "big")


def version_1(constants: str, names: str, instructions: str) -> bytes:
    done = code(instructions)
    return sealed(b"PFML\x01" + texts(constants) + texts(names) + wide(len(done)) + done)


def part(kind: int, name: int, instructions: str, *, parameters=(), shape: str = "", positions=None) -> bytes:
    """A part of versions 2 and later; `positions` are those of version 4: (offset, line, column)."""
    done = code(instructions)
    head = bytes([kind]) + wide(name) + bytes([len(parameters)]) + b"".join(map(wide, parameters))
    tail = b""
    if positions is not None:
        tail = wide(len(positions)) + b"".join(wide(number) for position in positions for number in position)
    return head + text(shape) + wide(len(done)) + done + tail


def version(number: int, constants: str, names: str, *parts: bytes) -> bytes:
    return sealed(b"PFML" + bytes([number]) + texts(constants) + texts(names) + wide(len(parts)) + b"".join(parts))
