"""An MCP server of the tests in plain Python, over stdio or, with a port as its argument, over HTTP.

``note`` appends a text to log.txt, ``die`` ends the server. Over HTTP, ``X-Key: sesame`` has to be among the headers;
with ``sessions`` as a second argument it has sessions, and does not answer whoever ends one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SESSIONS = "sessions" in sys.argv
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params, number = message.get("method"), message.get("params") or {}, message.get("id")
    if number is None:
        return None
    if method == "initialize":
        about = {"name": "tiny", "version": "1"}
        version = params["protocolVersion"]
        result: Any = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        result = {"tools": [{"name": each, "description": each, "inputSchema": SCHEMA} for each in ("note", "die")]}
    elif method == "tools/call":
        if params["name"] == "die":
            print("I was told to end.", file=sys.stderr, flush=True)
            os._exit(3)
        text = params["arguments"]["text"]
        with open("log.txt", "a") as file:
            print(text, file=file)
        result = {"content": [{"type": "text", "text": f"noted {text} as {os.getuid()}"}]}
        if text == "malformed":
            result = {"content": 5}
    else:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": f"there is no {method}"}}
    return {"jsonrpc": "2.0", "id": number, "result": result}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        if SESSIONS:
            time.sleep(600)
        self.send_error(405)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("X-Key") != "sesame":
            self.send_error(403)
            return
        said = answer(message)
        body = b"" if said is None else json.dumps(said).encode()
        self.send_response(202 if said is None else 200)
        self.send_header("Content-Type", "application/json")
        if SESSIONS:
            self.send_header("Mcp-Session-Id", "one")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    if len(sys.argv) > 1:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    for line in sys.stdin:
        if (said := answer(json.loads(line))) is not None:
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
