"""The session's end of the door: asks the host to do something in the workspace's fork, and waits for the reply."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import socket
import threading
from typing import Any

from pytest_evocode.verifier.in_container.protocol import (
    VERSION,
    Frame,
    FrameError,
    FrameReader,
    Plan,
    SuiteReport,
    encode,
)

_ERRORS: dict[str, type[Exception]] = {
    "missing": FileNotFoundError,
    "exists": FileExistsError,
    "directory": NotADirectoryError,
    "timeout": TimeoutError,
    "refused": ConnectionRefusedError,
    "closed": BrokenPipeError,
    "request": ValueError,
    "large": OverflowError,
    "system": OSError,
}


DOOR = "--door"
"""The session's argument that makes stdin and stdout the door, or with ``=PATH`` a socket at a path."""
_SLICE = 5.0  # seconds that one request waits
_PIECE = 2**16  # bytes that are passed on at once


class DoorError(Exception):
    """The door is closed: the host has ended the suite, or what came through is no reply."""


class DoorClient:
    """Sends requests through a pipe and gives each reply to the thread that asked.

    A thread of its own writes, because pytest-timeout may interrupt a test anywhere, and half a frame would break all
    that follow; another one reads. A reply that nobody waits for any more is dropped.
    """

    def __init__(self, replies: int, requests: int) -> None:
        """Take the descriptors of the two pipes."""
        self._replies = replies
        self._requests = requests
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[Frame | None]] = {}
        self._outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._broken = ""
        for work in (self._write, self._read):
            threading.Thread(target=work, name=f"door{work.__name__}", daemon=True).start()

    @classmethod
    def open(cls, argument: str) -> DoorClient:
        """Return the client for the session's argument :data:`DOOR`.

        Stdin and stdout are replaced by /dev/null and stderr, and what tests start inherits neither pipe. With a path
        they stay, for a person who debugs.
        """
        _, _, path = argument.partition("=")
        if path:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            descriptor = connection.detach()
            return cls(descriptor, descriptor)
        replies, requests = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(replies, requests)

    def plan(self) -> Plan:
        """Begin the conversation, and return what the session is to do."""
        plan: Plan = self.ask("hello", version=VERSION).head["plan"]
        return plan

    def begin_case(self, id: str, where: str) -> None:
        """Tell which case runs from now on, for the host to know where the process died."""
        self.ask("case", id=id, where=where)

    def finish(self, report: SuiteReport) -> None:
        """Tell the report."""
        self.ask("report", json.dumps(report).encode())

    def ask(self, call: str, body: bytes = b"", **arguments: Any) -> Frame:
        """Send a request and wait for the reply.

        Raises:
            DoorError: The door is closed.
            FrameError: The request is too large.
            OSError, ValueError, OverflowError: The host's answer, such as FileNotFoundError.
        """
        answer: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        number = next(self._numbers)
        data = encode(Frame(number, {"call": call, **arguments}, body))
        try:
            with self._lock:
                if self._broken:
                    raise DoorError(self._broken)
                self._waiting[number] = answer
            self._outgoing.put(data)
            reply = answer.get()
        finally:
            self._waiting.pop(number, None)
        if reply is None:
            raise DoorError(self._broken)
        if (kind := reply.head.get("error")) is not None:
            raise _ERRORS.get(str(kind), DoorError)(str(reply.head.get("message", kind)))
        return reply

    def _write(self) -> None:
        try:
            while True:
                left = memoryview(self._outgoing.get())
                while left:
                    left = left[os.write(self._requests, left) :]
        except OSError as error:
            self._close(f"the host takes no requests any more: {error}")

    def _read(self) -> None:
        reader = FrameReader()
        why = "the host has closed the door"
        try:
            while data := os.read(self._replies, 2**18):
                for reply in reader.feed(data):
                    if (waiting := self._waiting.pop(reply.number, None)) is not None:
                        waiting.put(reply)
        except (OSError, FrameError) as error:
            why = f"the host's reply cannot be read: {error}"
        self._close(why)

    def _close(self, why: str) -> None:
        with self._lock:
            self._broken = self._broken or why
            left, self._waiting = list(self._waiting.values()), {}
        for waiting in left:
            waiting.put(None)


def relay(path: str) -> None:
    """Pass on what one session says at a socket to stdout, and stdin to it: the door of a session on a terminal."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen(1)
        session, _ = listener.accept()
    with session:
        threading.Thread(target=_copy, args=(session.fileno(), 1), daemon=True).start()
        _copy(0, session.fileno())


def _copy(source: int, target: int) -> None:
    while data := os.read(source, 2**16):
        left = memoryview(data)
        while left:
            left = left[os.write(target, left) :]


def connect(door: DoorClient, port: int, timeout: float) -> socket.socket:
    """Return a socket whose data passes through the door to and from a port of the workspace.

    Raises ConnectionRefusedError and TimeoutError.
    """
    number: int = door.ask("connect", port=port, timeout=timeout).head["connection"]
    ours, theirs = socket.socketpair()
    for work in (_carry_out, _carry_in):
        threading.Thread(target=work, args=(door, number, theirs), name=f"port-{port}", daemon=True).start()
    return ours


def _carry_out(door: DoorClient, number: int, theirs: socket.socket) -> None:
    """Pass on what the test sends, until it closes its socket."""
    with contextlib.suppress(OSError, DoorError):
        while data := theirs.recv(_PIECE):
            door.ask("send", data, connection=number)
    with contextlib.suppress(OSError, DoorError):
        door.ask("shut", connection=number)


def _carry_in(door: DoorClient, number: int, theirs: socket.socket) -> None:
    """Pass on what the program sends, until it closes the connection or the test does."""
    with contextlib.suppress(OSError, DoorError):
        while True:
            reply = door.ask("receive", connection=number, timeout=_SLICE)
            if reply.body:
                theirs.sendall(reply.body)
            elif reply.head["ended"]:
                break
    with contextlib.suppress(OSError):
        theirs.shutdown(socket.SHUT_WR)
    with contextlib.suppress(OSError, DoorError):
        door.ask("close", connection=number)


def forward(door: DoorClient, port: int, timeout: float) -> socket.socket:
    """Return a listening socket of this environment's loopback, whose connections lead to a port of the workspace.

    A connection that the workspace refuses is closed at once.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(door, port, timeout, listener), name=f"url-{port}", daemon=True).start()
    return listener


def _accept(door: DoorClient, port: int, timeout: float, listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            caller, _ = listener.accept()
            threading.Thread(target=_join, args=(door, port, timeout, caller), daemon=True).start()


def _join(door: DoorClient, port: int, timeout: float, caller: socket.socket) -> None:
    with caller:
        try:
            inner = connect(door, port, timeout)
        except (OSError, DoorError):
            return
        with inner:
            back = threading.Thread(target=_pass_on, args=(inner, caller), daemon=True)
            back.start()
            _pass_on(caller, inner)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_PIECE):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
