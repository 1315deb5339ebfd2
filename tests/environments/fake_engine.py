"""A Docker engine whose every call can hang, fail or lie: alone, or in front of the real one."""

from __future__ import annotations

import contextlib
import json
import re
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from typing import Any

REAL = "/var/run/docker.sock"
_VERSION = {"ApiVersion": "1.44", "Version": "1", "MinAPIVersion": "1.24"}
_INFO = {"ServerVersion": "fake", "MemTotal": 2**30, "Runtimes": {}}
_ALONE = {
    r"GET /version": _VERSION,
    r"GET /info": _INFO,
    r"GET /(containers|images)/json": [],
    r"GET /networks": [],
    r"GET /volumes": {"Volumes": []},
}


class FakeEngine(ThreadingMixIn, UnixStreamServer):
    """Serves at a socket; the rule that was made last decides about a call, such as ``DELETE /containers/a``.

    What no rule is about goes to the real engine, or is answered by 404 without one.
    """

    daemon_threads = True

    def __init__(self, socket_path: Path, behind: str | None) -> None:
        super().__init__(str(socket_path), _Call)
        self.url = f"unix://{socket_path}"
        self.behind = behind
        self.calls: list[str] = []
        """What was called, in order."""
        self.hanging: list[str] = []
        """Calls whose caller still waits for an answer."""
        self._rules: list[tuple[str, Callable[[_Call], None]]] = []
        self._released = threading.Event()
        self.connections: set[socket.socket] = set()
        for pattern, answer in _ALONE.items() if behind is None else ():
            self.lies(pattern, answer)

    def lies(self, pattern: str, answer: Any, status: int = 200) -> None:
        """Have calls that match a pattern get this answer."""
        self._rules.append((pattern, lambda call: call.answer(status, answer)))

    def fails(self, pattern: str, message: str, status: int = 500) -> None:
        """Have calls that match a pattern fail."""
        self.lies(pattern, {"message": message}, status)

    def hangs(self, pattern: str) -> None:
        """Have calls that match a pattern get no answer until :meth:`release`, and then a failure."""
        self._rules.append((pattern, self._hang))

    def release(self) -> None:
        """Answer all that hang."""
        self._released.set()

    def cut(self) -> None:
        """End every connection, and take no other."""
        self.shutdown()
        self.server_close()
        for each in list(self.connections):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def rule_for(self, call: str) -> Callable[[_Call], None] | None:
        """Return the newest rule about a call."""
        return next((rule for pattern, rule in reversed(self._rules) if re.fullmatch(pattern, call)), None)

    def _hang(self, call: _Call) -> None:
        self.hanging.append(call.name)
        while not self._released.wait(0.01):
            if select.select([call.connection], [], [], 0)[0]:  # Nobody waits any more.
                break
        self.hanging.remove(call.name)
        call.answer(500, {"message": "released"})


class _Call(StreamRequestHandler):
    """One call of an engine; its connection ends with it."""

    server: FakeEngine
    name: str
    """Method and path, without the version of the API and the query."""

    def handle(self) -> None:
        """Do what the rule says, else what the real engine does."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (line := self.rfile.readline()):
                return
            head += line
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        self.name = f"{method} {re.sub('^/v[0-9.]+(?=/)', '', target.partition('?')[0])}"
        self.server.calls.append(self.name)
        with contextlib.suppress(OSError):  # Either end may be gone.
            if rule := self.server.rule_for(self.name):
                rule(self)
            elif self.server.behind is None:
                self.answer(404, {"message": f"no rule for {self.name}"})
            else:
                self._forward(head, self.server.behind)

    def answer(self, status: int, body: Any) -> None:
        """Send JSON."""
        content = b"" if status == HTTPStatus.NO_CONTENT else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self.wfile.write(f"{head}Connection: close\r\n\r\n".encode() + content)

    def _forward(self, head: bytes, engine: str) -> None:
        if b"upgrade: tcp" not in head.lower():
            head = re.sub(rb"(?im)^connection:.*\r\n", b"", head)[:-2] + b"Connection: close\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as real:
            real.connect(engine)
            self.server.connections |= {real, self.connection}
            real.sendall(head)
            sending = threading.Thread(target=self._send_on, args=[real], daemon=True)
            sending.start()
            with contextlib.suppress(OSError):
                while data := real.recv(2**16):
                    self.connection.sendall(data)
                self.connection.shutdown(socket.SHUT_RDWR)
            sending.join()
            self.server.connections -= {real, self.connection}

    def _send_on(self, real: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := self.rfile.read1(2**16):
                real.sendall(data)
            real.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def fake_engine(behind: str | None = None) -> Iterator[FakeEngine]:
    """Serve one; ``behind`` is the socket of the real engine."""
    directory = Path(tempfile.mkdtemp())  # Paths of sockets have to be short.
    try:
        with FakeEngine(directory / "d.sock", behind) as engine:
            serving = threading.Thread(target=engine.serve_forever, args=[0.01], daemon=True)
            serving.start()
            yield engine
            engine.release()
            engine.shutdown()
            serving.join()
    finally:
        shutil.rmtree(directory)
