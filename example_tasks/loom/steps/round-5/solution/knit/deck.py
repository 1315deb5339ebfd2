"""Decks: the bytes of a program."""

import binascii
import struct

from .codes import EDITION, MOST_CELLS, MOST_INSTRUCTIONS, NAMES, OPERANDS, WIDEST, Program, Refusal

MAGIC = b"LOOM"
EDITIONS = (1, 3, 4, 5)
LARGEST = 65536
"""No deck has as many bytes."""
HEAD = struct.Struct("<4sBBHH")
INSTRUCTION = struct.Struct("<BBBh")


def to_bytes(program):
    """Return the deck of a program."""
    head = HEAD.pack(MAGIC, EDITION, program.width, len(program.code), len(program.data))
    code = b"".join(INSTRUCTION.pack(*each) for each in program.code)
    return sealed(head + code + struct.pack(f"<{len(program.data)}h", *program.data))


def sealed(content):
    """Return bytes with their checksum behind them."""
    return content + struct.pack("<L", binascii.crc32(content))


def check(holds, text):
    if not holds:
        raise Refusal(5, f"loom: damaged: {text}")


def from_bytes(content):
    """Return the program of a deck, which is checked."""
    check(content[:4] == MAGIC, "not a deck")
    check(len(content) >= HEAD.size and content[4] in EDITIONS, "no such edition, or no head")
    if content[4] >= 3:
        check(sealed(content[:-4]) == content, "its checksum is wrong")
        content = content[:-4]
        check(len(content) >= HEAD.size, "it has no head")
    program = Program()
    program.rules = content[4]
    _, _, program.width, count, cells = HEAD.unpack_from(content)
    check(1 <= program.width <= WIDEST, "its width is none")
    check(count <= MOST_INSTRUCTIONS and cells <= MOST_CELLS, "it has too many instructions or numbers")
    end = HEAD.size + count * INSTRUCTION.size
    check(len(content) == end + 2 * cells, "its length is wrong")
    program.code = list(INSTRUCTION.iter_unpack(content[HEAD.size : end]))
    program.data = list(struct.unpack_from(f"<{cells}h", content, end))
    for instruction in program.code:
        check(is_sound(count, *instruction), "an instruction is none")
    return program


def is_sound(count, code, register, mode, value):
    """Say whether an instruction is one that a pattern can have."""
    if code >= len(OPERANDS):
        return False
    kinds = OPERANDS[code]
    if register > (7 if "R" in kinds else 0) or mode > (1 if "V" in kinds else 0):
        return False
    if mode == 1:
        return 0 <= value <= 7
    if "L" in kinds:
        return 0 <= value <= count
    return value == 0 or "V" in kinds


def listing(program):
    """Return a pattern that says what a program says."""
    lines = [f".width {program.width}"]
    for start in range(0, len(program.data), 8):
        lines.append(".data " + ", ".join(map(str, program.data[start : start + 8])))
    targets = {value for code, _, _, value in program.code if "L" in OPERANDS[code]}
    for address, (code, register, mode, value) in enumerate(program.code):
        if address in targets:
            lines.append(f"a{address}:")
        texts = {"R": f"r{register}", "V": f"r{value}" if mode else str(value), "L": f"a{value}"}
        operands = ", ".join(texts[kind] for kind in OPERANDS[code])
        lines.append(f"    {NAMES[code]} {operands}".rstrip())
    if len(program.code) in targets:
        lines.append(f"a{len(program.code)}:")
    return "".join(line + "\n" for line in lines)
