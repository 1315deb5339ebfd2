"""The format as the suite has it: entries, and the bytes of an archive of each edition."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass

SECOND = 10**9
NOON = 1_700_000_000
"""A time for whatever needs one."""


@dataclass(frozen=True)
class Item:
    """What a tree has, or an archive: its time is in nanoseconds. A path in a tree is its key there."""

    kind: str
    mode: int = 0o644
    time: int = NOON * SECOND
    content: bytes = b""
    target: bytes = b""
    ref: int = 0


def file(content: bytes = b"", mode: int = 0o644, time: int = NOON * SECOND) -> Item:
    return Item("F", mode, time, content)


def directory(mode: int = 0o755) -> Item:
    return Item("D", mode, 0)


def link(target: bytes) -> Item:
    return Item("L", 0, 0, b"", target)


def same(ref: int, mode: int = 0o644, time: int = NOON * SECOND) -> Item:
    """Return an entry that has the content of another one."""
    return Item("S", mode, time, ref=ref)


def number(value: int) -> bytes:
    """Return a NUMBER."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: bytes) -> bytes:
    return number(len(text)) + text


def crc(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def header(edition: int) -> bytes:
    return b"CRATE" + bytes([edition])


def end(count: int) -> bytes:
    return b"E" + number(count)


def entry_1(path: bytes, item: Item) -> bytes:
    """Return an entry of edition 1."""
    start = item.kind.encode() + string(path) + number(item.mode)
    if item.kind == "D":
        return start
    content = item.content
    return start + number(max(0, item.time // SECOND)) + number(len(content)) + content + crc(content)


def archive_1(items: list[tuple[bytes, Item]]) -> bytes:
    return header(1) + b"".join(entry_1(path, item) for path, item in items) + end(len(items))


class Table:
    """The table of names, and paths by it."""

    def __init__(self, paths: list[bytes]) -> None:
        self.names = sorted({name for path in paths for name in path.split(b"/")})

    def bytes(self) -> bytes:
        return number(len(self.names)) + b"".join(map(string, self.names))

    def path(self, path: bytes) -> bytes:
        names = path.split(b"/")
        return number(len(names)) + b"".join(number(self.names.index(name)) for name in names)


def entry_2_as_it_was(path: bytes, item: Item) -> bytes:
    """Return an entry of edition 2 as that edition had it, where `path` is stored already."""
    start = item.kind.encode() + path
    if item.kind == "L":
        return start + string(item.target) + crc(item.target)
    start += number(item.mode)
    if item.kind == "D":
        return start
    content = item.content
    return start + number(max(0, item.time // SECOND)) + number(len(content)) + content + crc(content)


def archive_2_as_it_was(items: list[tuple[bytes, Item]]) -> bytes:
    table = Table([path for path, _ in items])
    entries = b"".join(entry_2_as_it_was(table.path(path), item) for path, item in items)
    return header(2) + table.bytes() + entries + end(len(items))


@functools.cache
def coded(content: bytes) -> bytes:
    """Code the runs of a chunk, as it is packed."""
    out, literal, at = bytearray(), bytearray(), 0

    def flush():
        for start in range(0, len(literal), 128):
            piece = literal[start : start + 128]
            out.extend([len(piece) - 1, *piece])
        literal.clear()

    while at < len(content):
        run = len(content[at : at + 130]) - len(content[at : at + 130].lstrip(content[at : at + 1]))
        if run >= 3:
            flush()
            out.extend([run + 125, content[at]])
            at += run
        else:
            literal.append(content[at])
            at += 1
    flush()
    return bytes(out)


def chunk(content: bytes, method: int) -> bytes:
    start = number(len(content)) + bytes([method])
    return start + (string(coded(content)) if method else content)


def chunks(content: bytes) -> bytes:
    """Return the chunks of a file, as they are packed."""
    out = b""
    for start in range(0, len(content), 65536):
        piece = content[start : start + 65536]
        out += chunk(piece, int(len(coded(piece)) < len(piece)))
    return out + number(0)


def sealed(entry: bytes) -> bytes:
    """Return an entry with its checksum."""
    return entry + crc(entry)


def stored_time(edition: int, time: int) -> int:
    if edition < 5:
        return max(0, time // SECOND)
    return 2 * time if time >= 0 else -2 * time - 1


def entry(edition: int, path: bytes, item: Item) -> bytes:
    """Return an entry of edition 2 or later, where `path` is stored already."""
    start = item.kind.encode() + path
    if item.kind == "L":
        return sealed(start + string(item.target))
    start += number(item.mode)
    if item.kind == "D":
        return sealed(start)
    start += number(stored_time(edition, item.time))
    if item.kind == "S":
        return sealed(start + number(item.ref))
    content = item.content
    return sealed(start + (chunks(content) if edition >= 3 else string(content)))


def archive(edition: int, items: list[tuple[bytes, Item]]) -> bytes:
    table = Table([path for path, _ in items])
    whole = header(edition) + table.bytes()
    starts = []
    for path, item in items:
        starts.append(len(whole))
        whole += entry(edition, table.path(path), item)
    whole += end(len(items))
    return whole + (tail(starts, len(whole)) if edition >= 8 else b"")


def tail(starts: list[int], at: int) -> bytes:
    """Return the index of edition 8, which begins at a place of the archive."""
    return sealed(b"".join(map(number, starts))) + at.to_bytes(8, "little") + b"ETARC"


def one_file(edition: int, rest: bytes) -> bytes:
    """Return an archive with one file `a`, of which everything behind its time is given, up to the checksum."""
    table = Table([b"a"])
    start = b"F" + table.path(b"a") + number(0o644) + number(2 * NOON * SECOND if edition >= 5 else NOON)
    return header(edition) + table.bytes() + sealed(start + rest) + end(1)


def listed(items: list[tuple[bytes, Item]]) -> list[str]:
    """Return the lines of list, without times."""
    return [listed_one(path, item) for path, item in items]


def listed_one(path: bytes, item: Item) -> str:
    if item.kind == "D":
        return f"D {item.mode:03o} - {path.decode()}"
    if item.kind == "L":
        return f"L - - {path.decode()} -> {item.target.decode()}"
    return f"F {item.mode:03o} {len(item.content)} {path.decode()}"


def in_order(tree: dict[bytes, Item]) -> list[tuple[bytes, Item]]:
    return sorted(tree.items())


def without_repeats(tree: dict[bytes, Item]) -> list[tuple[bytes, Item]]:
    """Return the entries of a tree as they are packed from edition 4 on."""
    items, first = [], {}
    for path, item in in_order(tree):
        if item.kind == "F" and item.content:
            if item.content in first:
                item = same(first[item.content], item.mode, item.time)
            else:
                first[item.content] = len(items)
        items.append((path, item))
    return items


def what_counts(items: list[tuple[bytes, Item]]) -> dict[bytes, Item]:
    """Return the tree of entries of which later ones take the place of earlier ones, in the order of the archive."""
    tree = {}
    for path, item in items:
        earlier = tree.pop(path, None)
        if earlier and earlier.kind == "D" and item.kind != "D":
            tree = {each: kept for each, kept in tree.items() if not each.startswith(path + b"/")}
        last = item
        while last.kind == "S":
            last = items[last.ref][1]
        tree[path] = Item("F", item.mode, item.time, last.content) if item.kind == "S" else item
    return tree
