"""A server that answers as GitHub's REST API does, for the scripts of the workflows."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class GitHub:
    """What the server has, by path behind the repository's, and what was written to it."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.written: list[tuple[str, str, dict[str, Any]]] = []

    def answer(self, path: str, query: dict[str, str]) -> Any:
        """Return an object, or the page of a list that was asked for; lists about runs come in an object."""
        if path in self.objects:
            return self.objects[path]
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        found = [each for each in self.lists.get(path, []) if each.get("name") == query.get("name", each.get("name"))]
        shown = found[size * (page - 1) : size * page]
        kind = re.match(r"actions/.*?(\w+)$", path)
        return {"total_count": len(found), kind[1]: shown} if kind else shown


@contextlib.contextmanager
def github() -> Iterator[tuple[GitHub, dict[str, str]]]:
    """Start a server, and yield it with the variables by which a script finds it."""
    has = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def handle_request(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            path = address.path.removeprefix("/repos/o/r/")
            if self.command == "GET":
                has.asked.append(self.path)
                answer = has.answer(path, dict(urllib.parse.parse_qsl(address.query)))
            else:
                length = int(self.headers["Content-Length"])
                has.written.append((self.command, path, json.loads(self.rfile.read(length))))
                answer = {}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = handle_request

        def log_message(self, *arguments: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield (
                has,
                {
                    "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
                    "GITHUB_REPOSITORY": "o/r",
                    "GITHUB_TOKEN": "token",
                },
            )
        finally:
            server.shutdown()
            thread.join()
