"""Servers that stand for the outside: on loopback addresses of their own, reached by names that only the tests know."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus

#: Where the server is that a list may have, and one that it has not.
LISTED, OTHER = "127.0.0.2", "127.0.0.3"
NAMES = {
    "good.test": [LISTED],
    "xn--bcher-kva.test": [LISTED],
    "wild.test": [LISTED],
    "evilwild.test": [LISTED],
    "a.wild.test": [LISTED],
    "a.b.wild.test": [LISTED],
    "loopback.wild.test": [OTHER],
    "both.wild.test": [OTHER, LISTED],
    "metadata.wild.test": ["169.254.169.254"],
    "mapped.wild.test": ["::ffff:169.254.169.254"],
    "private.wild.test": ["10.1.2.3"],
}
HOSTS = ["Good.test.", "*.wild.test", "bücher.test", LISTED]


async def resolve(name: str) -> Sequence[str]:
    """Answer as a name server would that knows only ``NAMES``."""
    if name not in NAMES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return NAMES[name]


class Outside(http.server.BaseHTTPRequestHandler):
    """Says which Host it was asked for, and how much it was sent; in the path is how much it says beyond that."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(f"{self.path} {self.headers['Host']}".encode())

    def do_POST(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            got = 0
            while size := int(self.rfile.readline(), 16):
                got += len(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else:
            got = len(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(f"got {got}".encode())

    def _answer(self, body: bytes) -> None:
        body += b"." * int(self.path.partition("size=")[2] or 0)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(address: str, port: int = 0) -> Iterator[int]:
    """Serve at an address, and yield the port."""
    with http.server.ThreadingHTTPServer((address, port), Outside) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
