"""Decks: the bytes of a program."""

import binascii
import struct

from .codes import EDITION, MOST_CELLS, MOST_INSTRUCTIONS, NAMES, OPERANDS, WIDEST, Program, Refusal

MAGIC = b"LOOM"
EDITIONS = (1, 3, 4, 5, 6, 7)
LARGEST = 131072
"""No deck has as many bytes."""
HEAD = struct.Struct("<4sBBBHH")
INSTRUCTION = struct.Struct("<BBBh")
LINE = struct.Struct("<BH")


def to_bytes(program):
    """Return the deck of a program."""
    head = HEAD.pack(MAGIC, EDITION, program.rules, program.width, len(program.code), len(program.data))
    code = b"".join(INSTRUCTION.pack(*each) for each in program.code)
    data = struct.pack(f"<{len(program.data)}h", *program.data)
    files = bytes([len(program.files)]) + b"".join(bytes([len(name)]) + name for name in program.files)
    return sealed(head + code + data + files + b"".join(LINE.pack(*each) for each in program.lines))


def sealed(content):
    """Return bytes with their checksum behind them."""
    return content + struct.pack("<L", binascii.crc32(content))


def check(holds, text):
    if not holds:
        raise Refusal(5, f"loom: damaged: {text}")


def from_bytes(content):
    """Return the program of a deck, which is checked."""
    check(content[:4] == MAGIC, "not a deck")
    check(len(content) > 5 and content[4] in EDITIONS, "no such edition, or no head")
    edition = content[4]
    if edition >= 3:
        check(sealed(content[:-4]) == content, "its checksum is wrong")
        content = content[:-4]
    if edition < 7:
        # As if its rules were in its head.
        content = content[:5] + content[4:]
    check(len(content) >= HEAD.size, "it has no head")
    program = Program()
    _, _, program.rules, program.width, count, cells = HEAD.unpack_from(content)
    check(program.rules in EDITIONS, "its rules are those of no edition")
    check(1 <= program.width <= WIDEST, "its width is none")
    check(count <= MOST_INSTRUCTIONS and cells <= MOST_CELLS, "it has too many instructions or numbers")
    end = HEAD.size + count * INSTRUCTION.size
    check(len(content) >= end + 2 * cells, "it ends too early")
    program.code = list(INSTRUCTION.iter_unpack(content[HEAD.size : end]))
    program.data = list(struct.unpack_from(f"<{cells}h", content, end))
    for instruction in program.code:
        check(is_sound(count, *instruction), "an instruction is none")
    end += 2 * cells
    if edition >= 6:
        end = read_lines(program, content, end, edition)
    check(len(content) == end, "it ends too late")
    return program


def read_lines(program, content, at, edition):
    """Read files and lines from `at` on, and return where they end."""
    check(at < len(content) and (content[at] > 0 or edition >= 7), "it has no files")
    if content[at] == 0:
        return at + 1
    for _ in range(content[at]):
        at += 1
        check(at < len(content) and content[at] > 0, "a name is missing")
        program.files.append(content[at + 1 : at + 1 + content[at]])
        at += content[at]
    at += 1
    end = at + LINE.size * len(program.code)
    check(end <= len(content), "it ends too early")
    program.lines = list(LINE.iter_unpack(content[at:end]))
    for file, line in program.lines:
        check(file < len(program.files) and line > 0, "a line is none")
    return end


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
