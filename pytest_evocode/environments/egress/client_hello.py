"""The name of the server in the first message of a TLS connection, which no encryption hides."""

from __future__ import annotations

import struct

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_RECORD_HEADER = 5  # bytes
_LONGEST = 2**16  # bytes of a first message; real ones have at most a few thousand
_NOBODYS = ""  # no name that anybody may have


class ClientHello:
    """Reads the beginning of what a client sends, in pieces as they come.

    What begins as TLS and is no whole, plain message names nobody: a server may understand it in another way than we.
    """

    def __init__(self) -> None:
        self._unread = bytearray()
        self._message = bytearray()
        self.server_name: str | None = None
        """The name, once it is known."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece, and return whether enough is known: the name, that there is none, or that it is no TLS."""
        self._unread += piece
        while self._unread:
            if self._unread[0] != _HANDSHAKE:
                if self._message:  # Another record within the message.
                    self.server_name = _NOBODYS
                return True
            if len(self._unread) < _RECORD_HEADER:
                return False
            end = _RECORD_HEADER + struct.unpack_from(">H", self._unread, 3)[0]
            begun = self._message or self._unread[_RECORD_HEADER:end]
            if begun and begun[0] != _CLIENT_HELLO:
                return True
            if end == _RECORD_HEADER or len(self._message) + len(self._unread) > _LONGEST:
                self.server_name = _NOBODYS
                return True
            if len(self._unread) < end:
                return False
            self._message += self._unread[_RECORD_HEADER:end]
            del self._unread[:end]
            if len(self._message) >= 4 and len(self._message) >= 4 + int.from_bytes(self._message[1:4], "big"):
                try:
                    self.server_name = _server_name(bytes(self._message[4:]))
                except (struct.error, UnicodeDecodeError, IndexError):
                    self.server_name = _NOBODYS
                return True
        return False


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
