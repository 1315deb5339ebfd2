"""Many connections over one stream of bytes, as either end of it sees them.

One end is the session. The other is a program in a container's network: this file, run by the image's own Python, or
what does the same in Perl. So nothing is used here but the standard library of Python 3.7.

What passes are messages: a letter, the number of a connection, a length and so many bytes. ``O``: a connection was
taken; number 0 is the listener, which is ready. ``D``: data. ``E``: no more data follows. ``C``: the connection is
over, and is to be closed when what was sent before has been taken. ``A``: so many bytes of data were taken on; each end
sends no more than a window beyond what the other has acknowledged, so that a slow connection holds up no other one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import struct
import sys
from collections.abc import Callable

WINDOW = 2**18
"""Bytes of one connection that may be under way in one direction."""
_PIECE = 2**15  # bytes of one message
_HEADER = struct.Struct(">cII")


class Multiplexer:
    """One end, which is used in one event loop alone."""

    def __init__(self, send: Callable[[bytes], object], begin: Callable[[int], object] = lambda number: None) -> None:
        """``send`` takes what goes to the other end; ``begin`` gets the numbers that are taken there."""
        self._send = send
        self._begin = begin
        self._received = bytearray()
        self._open: dict[int, _Connection] = {}

    def take(self, data: bytes) -> None:
        """Take what the other end has sent."""
        self._received += data
        while len(self._received) >= _HEADER.size:
            kind, number, length = _HEADER.unpack_from(self._received)
            end = _HEADER.size + length
            if len(self._received) < end:
                return
            payload = bytes(self._received[_HEADER.size : end])
            del self._received[:end]
            if kind == b"O":
                self._begin(number)
            elif number in self._open:
                self._open[number].obey(kind, payload)

    def tell(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Send a message."""
        self._send(_HEADER.pack(kind, number, len(payload)) + payload)

    def expect(self, number: int) -> None:
        """Keep what comes for a connection until it is carried."""
        self._open[number] = _Connection()

    async def carry(
        self,
        number: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        user: asyncio.Future[None] | None = None,
    ) -> None:
        """Pass on what comes either way until both ways have ended, or an end of the connection is gone.

        When ``user`` is done, nobody reads any more what is written; what is there to be read is still passed on.
        """
        connection = self._open[number]
        sending = asyncio.ensure_future(self._send_on(number, connection, reader))
        receiving = asyncio.ensure_future(self._receive(number, connection, writer))
        connection.over.add_done_callback(lambda over: sending.cancel())
        if user is not None:
            user.add_done_callback(lambda user: receiving.cancel())
        try:
            await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_EXCEPTION)
        finally:
            sending.cancel()
            receiving.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)
            writer.close()
            del self._open[number]
            self.tell(b"C", number)

    async def _send_on(self, number: int, connection: _Connection, reader: asyncio.StreamReader) -> None:
        data = b"begun"
        while data:
            while connection.window <= 0:
                connection.moved.clear()
                await connection.moved.wait()
            data = await reader.read(min(_PIECE, connection.window))
            connection.window -= len(data)
            self.tell(b"D" if data else b"E", number, data)

    async def _receive(self, number: int, connection: _Connection, writer: asyncio.StreamWriter) -> None:
        data = await connection.pieces.get()
        while data:
            writer.write(data)
            await writer.drain()
            self.tell(b"A", number, len(data).to_bytes(4, "big"))
            data = await connection.pieces.get()
        writer.write_eof()

    def close(self) -> None:
        """End all connections, whose other end is gone."""
        for connection in self._open.values():
            connection.obey(b"C", b"")


class _Connection:
    """What has come for a connection, and how much more may be sent."""

    def __init__(self) -> None:
        self.window = WINDOW
        self.moved = asyncio.Event()
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()
        """Data; an empty piece is the end."""
        self.over: asyncio.Future[None] = asyncio.get_event_loop().create_future()

    def obey(self, kind: bytes, payload: bytes) -> None:
        """Take a message."""
        if kind == b"A":
            self.window += int.from_bytes(payload, "big")
            self.moved.set()
        else:
            self.pieces.put_nowait(payload)
        if kind == b"C" and not self.over.done():
            self.over.set_result(None)


async def _listen(port: int) -> None:
    """Carry the connections to a port of the loopback; the stream is stdin and stdout."""

    def send(message: bytes) -> None:
        while message:
            message = message[os.write(1, message) :]

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(numbers)
        multiplexer.expect(number)
        multiplexer.tell(b"O", number)
        await multiplexer.carry(number, reader, writer)

    multiplexer, numbers = Multiplexer(send), itertools.count(1)
    await asyncio.start_server(take, "127.0.0.1", port, backlog=128)
    stream = asyncio.StreamReader()
    await asyncio.get_event_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    multiplexer.tell(b"O", 0)
    data = b"begun"
    while data:
        data = await stream.read(2**16)
        multiplexer.take(data)


if __name__ == "__main__":
    asyncio.run(_listen(int(sys.argv[1])))
