"""A server on this machine that speaks to model clients as OpenAI and Anthropic do, and says what a script says.

    with ModelServer([Run("make test"), Say("It works.")], host="127.0.0.1") as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any")

It answers Chat Completions, Responses and Messages, streamed or not, and generateContent, refuses conversations that
providers refuse, and keeps every request in ``server.asked``.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests import model_wire as wire
from tests.model_scripts import (
    Answer,
    Asked,
    BreakOff,
    Delay,
    Fail,
    HangUp,
    Part,
    Run,
    Script,
    Step,
    Tokens,
    Trickle,
    shell_call,
)


class ModelServer:
    """Serves in a thread of its own between ``with`` and its end, which raises what went wrong in the script.

    ``key``: requests with another are refused, where one is given. ``models``: other names are unknown, where some are
    given. ``context_tokens``: longer requests overflow, four characters of JSON being a token. ``tokens``: what a reply
    counts that has no :class:`Tokens`. ``dialect`` makes a server's own form of a reply to Chat Completions.
    ``compacts``: whether there is ``/responses/compact``. ``streams``: whether streams are answered by streams.
    """

    def __init__(
        self,
        script: Script,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        models: Sequence[str] = (),
        context_tokens: int | None = None,
        tokens: Tokens = Tokens(prompt=1000, completion=50, cached=600),  # noqa: B008 - frozen
        dialect: Callable[[wire.Json], wire.Json] = lambda reply: reply,
        compacts: bool = True,
        streams: bool = True,
    ) -> None:
        self.dialect, self.compacts, self.streams = dialect, compacts, streams
        self.key, self.models, self.context_tokens, self.tokens = key, models, context_tokens, tokens
        self.asked: list[Asked] = []
        """Requests to the model, those that failed included; not the lists of models, nor counts of tokens."""
        self.counted: list[Tokens] = []
        """What the replies that were given count."""
        self.troubles: list[Exception] = []
        """What the script raised; leaving the ``with`` raises the first."""
        self._script, self._position = script, 0
        self._lock = threading.Lock()
        self._server = _Server((host, port), type("_Bound", (_Handler,), {"model_server": self}))
        self._server.troubles = self.troubles
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        """Without ``/v1``; a container takes :attr:`port` at an address of the host that it can reach."""
        return f"http://{self._server.server_address[0]!s}:{self.port}"

    def is_left(self, seconds: float = 10.0) -> bool:
        """Whether all clients close their connections within so many seconds."""
        until = time.monotonic() + seconds
        while self._server.connections and time.monotonic() < until:
            time.sleep(0.02)
        return not self._server.connections

    @property
    def left(self) -> int:
        """How many steps of a list nobody has asked for yet."""
        return 0 if callable(self._script) else len(self._script) - self._position

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self.troubles and error is None:
            raise self.troubles[0]

    def parts_for(self, asked: Asked) -> list[Part]:
        """What the model answers; one request at a time."""
        with self._lock:
            self.asked.append(asked)
            refusal = wire.refusal(asked, self.key, self.models, self.context_tokens)
            if refusal is not None:
                return [refusal]
            try:
                step = self._next_step(asked)
                parts = [step] if isinstance(step, Part) else list(step)
                parts = [shell_call(asked, part.command) if isinstance(part, Run) else part for part in parts]
            except Exception as error:
                self.troubles.append(error)
                return [Fail(400, f"the script of the test failed: {error!r}")]
            if not any(isinstance(part, Fail | Answer | HangUp | BreakOff) for part in parts):
                self.counted.append(wire.tokens_of(parts, self.tokens))
            return parts

    def write(self, asked: Asked, parts: Sequence[Part]) -> wire.Json:
        """A reply as it is sent in one piece."""
        return self.dialect(wire.write_reply(asked, parts, self.tokens))

    def events_of(self, asked: Asked, reply: wire.Json) -> list[tuple[str, Any]]:
        """A reply as it is streamed: the names of events and their data."""
        return wire.events(asked.api, reply)

    def _next_step(self, asked: Asked) -> Step:
        if callable(self._script):
            return self._script(asked)
        if not self.left:
            raise AssertionError(f"request {len(self.asked)} came, and the script has no more to say")
        self._position += 1
        return self._script[self._position - 1]


class _Server(ThreadingHTTPServer):
    """Keeps what goes wrong, in place of printing it."""

    troubles: list[Exception]

    def __init__(self, *arguments: Any) -> None:
        self.connections: set[Any] = set()
        super().__init__(*arguments)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(error := sys.exception(), Exception) and not isinstance(error, ConnectionError):
            self.troubles.append(error)


class _Handler(BaseHTTPRequestHandler):
    """One connection, which may bring many requests."""

    protocol_version = "HTTP/1.1"
    model_server: ModelServer
    _ids = itertools.count(1)

    def do_HEAD(self) -> None:
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        if not self.path.partition("?")[0].endswith("/models"):
            self._send_json(404, wire.error_body("chat", Fail(404, f"Invalid URL (GET {self.path})")))
            return
        keys = (self.headers.get(name) for name in ("x-api-key", "x-goog-api-key", "api-key"))
        given = next(filter(None, keys), None) or self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.model_server.key is not None and given != self.model_server.key:
            self._send_json(401, wire.error_body("chat", Fail(401)))
            return
        common = {
            "object": "model",
            "type": "model",
            "created": 1,
            "created_at": "2026-01-01T00:00:00Z",
            "owned_by": "me",
        }
        models = [common | {"id": name, "display_name": name} for name in self.model_server.models]
        self._send_json(200, {"object": "list", "data": models, "has_more": False})

    def do_POST(self) -> None:
        written = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        api = next((api for end, api in wire.APIS.items() if path.endswith(end)), None)
        if path.endswith("/compact") and not self.model_server.compacts:
            api = None
        if path.endswith("/messages/count_tokens"):
            self._send_json(200, {"input_tokens": len(written) // 4})
        elif api is None:
            self._send_json(404, wire.error_body("chat", Fail(404, f"Invalid URL (POST {path})")))
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(written)
            if body:
                self._answer(wire.read_request(api, path, headers, body))
            else:
                self._send_json(400, wire.error_body(api, Fail(400, "Missing required parameter: 'model'.")))

    def _answer(self, asked: Asked) -> None:
        parts = self.model_server.parts_for(asked)
        time.sleep(sum(part.seconds for part in parts if isinstance(part, Delay)))
        blanks = sum(round(part.seconds * 10) for part in parts if isinstance(part, Trickle))
        for part in parts:
            if isinstance(part, HangUp):
                self.close_connection = True
                return
            if isinstance(part, Answer):
                self._send(part.status, part.body.encode(), part.content_type)
                return
            if isinstance(part, Fail):
                more = {} if part.retry_after is None else {"Retry-After": f"{part.retry_after:g}"}
                self._send_json(part.status, wire.error_body(asked.api, part), headers=part.headers | more)
                return
        reply = self.model_server.write(asked, parts)
        if self.model_server.streams and wire.wants_stream(asked):
            events = self.model_server.events_of(asked, reply)
            broken = next((part for part in parts if isinstance(part, BreakOff)), None)
            self._stream(asked, events if broken is None else events[: len(events) // 2], blanks)
            if broken is None:
                self._write_chunk(b"")
            else:
                time.sleep(broken.pause)
                self.close_connection = True
        else:
            self._send_json(200, reply, blanks=blanks)

    def _send_json(self, status: int, body: Any, headers: dict[str, str] | None = None, blanks: int = 0) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers or {}, blanks)

    def _send(
        self, status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None, blanks: int = 0
    ) -> None:
        self._begin(status, {"Content-Type": content_type, "Content-Length": str(len(body) + blanks)} | (headers or {}))
        for _ in range(blanks):
            time.sleep(0.1)
            self._write(b" ")
        self._write(body)

    def _stream(self, asked: Asked, events: Sequence[tuple[str, Any]], blanks: int) -> None:
        is_aws = asked.path.endswith(wire.AWS_STREAM)
        kind = "application/vnd.amazon.eventstream" if is_aws else "text/event-stream"
        self._begin(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"})
        for _ in range(blanks):
            time.sleep(0.1)
            self._write_chunk(b": still at work\n\n")
        for name, data in events:
            named = f"event: {name}\n" if name else ""
            written = wire.event_data(data)
            self._write_chunk(wire.aws_event(written) if is_aws else named.encode() + b"data: " + written + b"\n\n")

    def _write_chunk(self, data: bytes) -> None:
        """Write a piece of an answer whose length is not known before; the last one is empty."""
        self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        number = next(self._ids)
        self.send_response(status)
        sent = {"x-request-id": f"req_{number}", "request-id": f"req_{number}"} | headers
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:  # the client has gone, as one does at its deadline
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test says what matters."""
