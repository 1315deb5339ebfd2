"""The name of the server in the first message of a TLS connection, which no encryption hides."""

from __future__ import annotations

import struct

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_LONGEST = 2**16  # bytes of a first message; real ones have at most a few thousand


class ClientHello:
    """Reads the beginning of what a client sends, in pieces as they come."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.server_name: str | None = None
        """The name, once it is known."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece, and return whether enough is known: the name, that there is none, or that it is no TLS."""
        self._data += piece
        message = bytearray()
        records = bytes(self._data)
        while True:
            if records and records[0] != _HANDSHAKE:
                return True
            if len(records) < 5:
                break
            length = struct.unpack(">H", records[3:5])[0]
            message += records[5 : 5 + length]
            if len(records) < 5 + length:
                break
            records = records[5 + length :]
            if _is_whole(message):
                break
        if message and message[0] != _CLIENT_HELLO:
            return True
        if _is_whole(message):
            try:
                self.server_name = _server_name(bytes(message[4:]))
            except (struct.error, UnicodeDecodeError, IndexError):
                self.server_name = ""  # No name that anybody may have.
            return True
        return len(self._data) > _LONGEST


def _is_whole(message: bytes | bytearray) -> bool:
    return len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big")


def _server_name(hello: bytes) -> str | None:
    position = 2 + 32  # version and random
    position += 1 + hello[position]  # session
    position += 2 + struct.unpack_from(">H", hello, position)[0]  # ciphers
    position += 1 + hello[position]  # compressions
    if position >= len(hello):
        return None
    end = position + 2 + struct.unpack_from(">H", hello, position)[0]
    position += 2
    while position + 4 <= end:
        kind, length = struct.unpack_from(">HH", hello, position)
        position += 4
        if kind == _SERVER_NAME:
            # A list of one: two bytes of length, one of the kind of name, two of length, the name.
            size = struct.unpack_from(">H", hello, position + 3)[0]
            return hello[position + 5 : position + 5 + size].decode("ascii")
        position += length
    return None
