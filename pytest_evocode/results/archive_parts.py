"""Cuts tars into parts, of which most stay the same when a few files change."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

_BLOCK = 512
_LARGEST = 16 * 2**20
"""Bytes of the largest part."""
_SMALLEST = 2**20
"""Bytes of the smallest part but the last."""
_ONE_IN = 64
"""At how many of the entries a part may end."""
_OF_NEXT = b"xgLK"
"""The types of entries that tell of the next one."""


def archive_parts(archive: BinaryIO) -> Iterator[bytes]:
    """Yield the parts of a tar, which joined give the tar.

    A part ends where the name of an entry says so, so that one more file changes the part that it is in and no later
    one; and after 16 MiB.
    """
    part = bytearray()
    is_told_of = False
    while header := archive.read(_BLOCK):
        kind = header[156:157]
        if len(part) >= _SMALLEST and not is_told_of and zlib.crc32(header[:100]) % _ONE_IN == 0:
            yield bytes(part)
            part.clear()
        is_told_of = kind in _OF_NEXT and bool(kind.strip(b"\0"))
        part += header
        left = -(-_size(header) // _BLOCK) * _BLOCK
        while left:
            if len(part) >= _LARGEST:
                yield bytes(part)
                part.clear()
            contents = archive.read(min(left, _LARGEST - len(part)))
            if not contents:
                break
            left -= len(contents)
            part += contents
    if part:
        yield bytes(part)


def _size(header: bytes) -> int:
    """Return how many bytes the contents of an entry have; 0 for the blocks that end a tar."""
    field = header[124:136]
    if field[0] & 0x80:  # Too large for octal digits.
        return int.from_bytes(field[1:], "big")
    return int(field.rstrip(b"\0 ") or b"0", 8)
