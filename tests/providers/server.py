"""A fake provider on this machine: the APIs of Anthropic, OpenAI and Google with their rules, a script, and faults.

    with ProviderServer([Run("make test"), Say("It works.")], faults={2: Refuse("overloaded")}) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key=KEY)

It answers ``/v1/messages``, ``/v1/chat/completions``, ``/v1/responses`` and ``/v1beta/models/M:generateContent``,
streamed or not, counts tokens and lists models. What it refuses and why is in the modules of the APIs. Every request
to a model is in ``exchanges``, with the usage that was billed for it.
"""

from __future__ import annotations

import itertools
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from types import TracebackType
from typing import Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.model_scripts import Asked, Run, Say, Think, Use, shell_call
from tests.providers.chat_api import ChatApi
from tests.providers.exchanges import Api, Call, Event, Exchange, Json, Refused, Said, Shown, Step, Usage
from tests.providers.faults import (
    Broken,
    CutOff,
    Decline,
    Drip,
    ErrorEvent,
    Fault,
    HangUp,
    Misreport,
    OddId,
    Page,
    Refuse,
    Rename,
    Silent,
)
from tests.providers.gemini_api import GeminiApi
from tests.providers.messages_api import MessagesApi
from tests.providers.responses_api import ResponsesApi

KEY = "sk-of-the-tests-0123456789"
#: The model of a list, or what a function says of the conversation; one that looks at it alone may be asked again.
Script = Sequence[Step] | Callable[[Asked], Step]
Faults = Mapping[int, Fault] | Callable[[Exchange], Fault | None]
_GEMINI = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")
_LISTS = re.compile(r"/v1(beta)?/models(?:/([^/]+))?")
_DECLINED = "I will not do this."


class ProviderServer:
    """Serves between ``with`` and its end, which raises what went wrong in the script.

    ``faults``: by the number of the request, from 1, or by what a function says of it. ``models``: other names are
    unknown, where some are given. ``context_tokens``: longer requests do not fit.
    """

    def __init__(
        self,
        script: Script,
        *,
        faults: Faults = {},  # noqa: B006 - only read
        key: str = KEY,
        models: Sequence[str] = (),
        context_tokens: int = 1_000_000,
        chat: ChatApi | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.apis: dict[str, Api] = {
            "messages": MessagesApi(),
            "chat": chat or ChatApi(),
            "responses": ResponsesApi(),
            "gemini": GeminiApi(),
        }
        self.faults, self.key = faults, key
        self.shown = [Shown(name, context_tokens) for name in models]
        self.context_tokens = context_tokens
        self.exchanges: list[Exchange] = []
        self.troubles: list[Exception] = []
        """What the script raised; leaving the ``with`` raises the first."""
        self.closing = threading.Event()
        self._script, self._position = script, 0
        self._lock = threading.RLock()
        self._calls = itertools.count(1)
        self._longest: dict[str, int] = {}
        self._listener = _Listener(host, self)

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def url(self) -> str:
        """Without ``/v1``, as Anthropic's and Google's clients take it."""
        return f"http://{self._listener.host}:{self.port}"

    def url_for(self, api: str) -> str:
        """As the clients of an API take it."""
        return f"{self.url}/v1" if api in ("chat", "responses") else self.url

    def billed(self, *, delivered: bool | None = None) -> Usage:
        """What all replies cost together; ``delivered`` takes those that arrived alone, or those that did not."""
        return sum(
            (each.billed for each in self.exchanges if each.billed is not None and delivered in (None, each.delivered)),
            Usage(),
        )

    def __enter__(self) -> Self:
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._listener.close()
        self.settle()
        if self.troubles and error is None:
            raise self.troubles[0]

    def refuse_connections(self, seconds: float) -> None:
        """Have nobody listen for some time."""
        self._listener.pause(seconds)

    def settle(self, seconds: float = 5.0) -> None:
        """Wait until the server knows of all requests that have come whether their replies went out."""
        for exchange in [*self.exchanges]:
            assert exchange.over.wait(seconds), f"request {exchange.number} is under way"

    def begin(self, asked: Asked) -> Exchange:
        """Number a request to a model, look whether it keeps the rules, and choose its fault."""
        with self._lock:
            exchange = Exchange(len(self.exchanges) + 1, asked)
            self.exchanges.append(exchange)
            try:
                self.check(asked)
            except Refused as refused:
                exchange.refused = refused
            faults = self.faults
            exchange.fault = faults(exchange) if callable(faults) else faults.get(exchange.number)
            return exchange

    def check(self, asked: Asked) -> None:
        """Raise Refused for a request that breaks a rule, and read the conversation of one that does not."""
        api = self.apis[asked.api]
        if self.shown and asked.model not in [shown.name for shown in self.shown]:
            raise Refused("not_found", f"The model `{asked.model}` does not exist or you do not have access to it.")
        try:
            api.check(asked)
            api.read(asked)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            raise Refused("invalid", f"the request has another shape: {error!r}") from None
        if size_of(asked) > self.context_tokens:
            raise Refused("context")

    def answer(self, exchange: Exchange) -> Said:
        """Have the model answer, and bill it."""
        with self._lock:
            try:
                step = self._next_step(exchange.asked)
                said = self._said(exchange.asked, step if isinstance(step, Sequence) else [step])
            except Exception as error:
                self.troubles.append(error)
                raise Refused("invalid", f"the script of the test failed: {error!r}") from None
            exchange.said = _changed(said, exchange.fault)
            exchange.billed = said.usage
            return exchange.said

    def _next_step(self, asked: Asked) -> Step:
        if callable(self._script):
            return self._script(asked)
        if self._position == len(self._script):
            raise AssertionError(f"request {len(self.exchanges)} came, and the script has no more to say")
        self._position += 1
        return self._script[self._position - 1]

    def _said(self, asked: Asked, step: Sequence[Say | Think | Use | Run | Usage]) -> Said:
        parts: list[Say | Think | Call] = []
        for part in step:
            use = shell_call(asked, part.command) if isinstance(part, Run) else part
            if isinstance(use, Use):
                assert not isinstance(use.arguments, str)
                parts.append(Call(self.apis[asked.api].call_id(next(self._calls)), use.tool, use.arguments))
            elif not isinstance(use, Usage):
                parts.append(use)
        usage = next((part for part in step if isinstance(part, Usage)), None) or self._counted(asked, parts)
        return Said(tuple(parts), usage, usage)

    def _counted(self, asked: Asked, parts: Iterable[Say | Think | Call]) -> Usage:
        """Tokens by the length of the texts; the cache has what an earlier request of the API brought."""
        prompt = size_of(asked)
        cached = min(prompt, self._longest.get(asked.api, 0)) if asked.replies else 0
        self._longest[asked.api] = max(prompt, self._longest.get(asked.api, 0))
        written = prompt - cached if asked.api == "messages" else 0
        reasoning = sum(len(part.text) // 4 + 1 for part in parts if isinstance(part, Think))
        spoken = sum(
            len(part.text if isinstance(part, Say) else part.written) // 4 + 8
            for part in parts
            if not isinstance(part, Think)
        )
        return Usage(prompt - cached - written, cached, written, spoken + reasoning, reasoning)


def size_of(asked: Asked) -> int:
    """The tokens of a request, of which four characters are one."""
    return len(json.dumps(asked.body)) // 4


def _changed(said: Said, fault: Fault | None) -> Said:
    """What a fault makes of a reply."""
    match fault:
        case Misreport("missing"):
            return replace(said, reported=None)
        case Misreport("negative"):
            return replace(said, reported=Usage(uncached=-1000, output=-50))
        case Rename(name):
            return replace(said, parts=tuple(replace(p, tool=name) if isinstance(p, Call) else p for p in said.parts))
        case OddId(id_):
            return replace(said, parts=tuple(replace(p, id=id_) if isinstance(p, Call) else p for p in said.parts))
        case CutOff(in_call=True) if said.calls:
            until = said.parts.index(said.calls[0]) + 1
            return replace(said, parts=said.parts[:until], stop="length")
        case CutOff():
            thoughts = tuple(part for part in said.parts if isinstance(part, Think))
            text = said.text[: len(said.text) // 2] if said.text and not said.calls else "First I will"
            return replace(said, parts=(*thoughts, Say(text or "Do")), stop="length")
        case Decline():
            return replace(said, parts=(Say(_DECLINED),), stop="refusal")
    return said


class _Listener:
    """Takes connections on one port, each in a thread of its own, and may leave the port for a while."""

    def __init__(self, host: str, server: ProviderServer) -> None:
        self.host, self._server = host, server
        self._socket = socket.create_server((host, 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self._until = 0.0
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def pause(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # The thread that waits for connections holds it open.
        self._socket.close()

    def close(self) -> None:
        self._thread.join()
        self._socket.close()
        for connection in [*self._connections]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while not self._server.closing.is_set():
            if self._socket.fileno() < 0:
                time.sleep(max(0.0, self._until - time.monotonic()))
                self._socket = socket.create_server((self.host, self.port), backlog=128)
            try:
                ready, _, _ = select.select([self._socket], [], [], 0.02)
                if ready:
                    connection, address = self._socket.accept()
                    threading.Thread(target=self._handle, args=(connection, address), daemon=True).start()
            except (OSError, ValueError):  # It was closed meanwhile.
                continue

    def _handle(self, connection: socket.socket, address: tuple[str, int]) -> None:
        self._connections.add(connection)
        try:
            _Handler(self._server, connection, address)
        except _Reset:
            # Closed at once, without a farewell.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except ConnectionError:
            pass
        except Exception as error:
            self._server.troubles.append(error)
        else:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        finally:
            self._connections.discard(connection)
            connection.close()


class _Reset(Exception):
    """The connection is to be reset."""


class _Handler(BaseHTTPRequestHandler):
    """One connection, which may bring many requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    connection: socket.socket
    _ids = itertools.count(1)

    def __init__(self, provider: ProviderServer, connection: socket.socket, address: tuple[str, int]) -> None:
        self.provider = provider
        super().__init__(connection, address, cast(BaseServer, None))  # It asks the server nothing.

    def do_HEAD(self) -> None:
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        found = _LISTS.fullmatch(url.path)
        headers = self._lower_headers()
        named = {"anthropic-version": "messages", "x-goog-api-key": "gemini"}  # Paths of lists are the same.
        name = next((each for header, each in named.items() if header in headers), "chat")
        api = self.provider.apis["gemini" if found and found[1] else name]
        try:
            self._check_key(api, headers, dict(parse_qsl(url.query)))
            if not found:
                raise Refused("not_found", f"Invalid URL (GET {url.path})")
            body = api.models(self.provider.shown)
            if found[2]:
                listed: list[Json] = body.get("data") or body.get("models") or []
                names = {str(each.get("id") or each["name"]).removeprefix("models/"): each for each in listed}
                if found[2] not in names:
                    raise Refused("not_found", f"The model `{found[2]}` does not exist.")
                body = names[found[2]]
        except Refused as refused:
            self._refuse(api, refused)
        else:
            self._send_json(200, body)

    def do_POST(self) -> None:
        written = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        headers, query = self._lower_headers(), dict(parse_qsl(url.query))
        api, model, counts = self._route(unquote(url.path))
        try:
            self._check_key(api, headers, query)
            if model is None:
                raise Refused("not_found", f"Invalid URL (POST {url.path})")
            try:
                body = json.loads(written)
                assert isinstance(body, dict)
            except (ValueError, AssertionError):
                raise Refused("invalid", "We could not parse the JSON body of your request.") from None
        except Refused as refused:
            self._refuse(api, refused)
            return
        asked = Asked(url.path, api.name, headers, body | ({"model": model} if model else {}))
        if counts:
            self._count(api, asked)
        else:
            exchange = self.provider.begin(asked)
            try:
                self._exchange(api, exchange, as_list=api.name == "gemini" and query.get("alt") != "sse")
            finally:
                exchange.over.set()

    def _route(self, path: str) -> tuple[Api, str | None, bool]:
        """The API, the model in the path, which is None where there is nothing there, and whether to count only."""
        apis = self.provider.apis
        if found := _GEMINI.fullmatch(path):
            return apis["gemini"], found[1], found[2] == "countTokens"
        named = {
            "/v1/messages": ("messages", False),
            "/v1/messages/count_tokens": ("messages", True),
            "/v1/chat/completions": ("chat", False),
            "/v1/responses": ("responses", False),
            "/v1/responses/input_tokens": ("responses", True),
        }
        if path in named:
            return apis[named[path][0]], "", named[path][1]
        return apis["messages" if "anthropic-version" in self.headers else "chat"], None, False

    def _check_key(self, api: Api, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        given = api.key(headers, query)
        if given is None and api.name == "gemini":
            raise Refused("permission")
        if given is None and api.name == "messages":
            raise Refused("authentication", "x-api-key header is required")
        if given != self.provider.key:
            raise Refused("authentication")

    def _count(self, api: Api, asked: Asked) -> None:
        try:
            self.provider.check(asked)
        except Refused as refused:
            self._refuse(api, refused)
            return
        bodies: dict[str, Json] = {
            "messages": {"input_tokens": size_of(asked)},
            "responses": {"object": "response.input_tokens", "input_tokens": size_of(asked)},
            "gemini": {"totalTokens": size_of(asked)},
        }
        self._send_json(200, bodies[api.name])

    def _exchange(self, api: Api, exchange: Exchange, as_list: bool) -> None:
        """Answer a request to a model, or do what the fault says."""
        fault = exchange.fault
        try:
            match fault:
                case Refuse(kind, retry_after, message):
                    raise Refused(kind, message, retry_after=retry_after)
                case ErrorEvent(_, kind) if not api.streams(exchange.asked):
                    raise Refused(kind)
                case Page(status, body, content_type):
                    exchange.status = status
                    self._send(status, body.encode(), content_type)
                    return
                case HangUp(reset, down):
                    self._hang_up(reset, down)
                    return
                case Silent(after=None):
                    self._stay_silent()
                    return
            if exchange.refused is not None:
                raise exchange.refused
            said = self.provider.answer(exchange)
        except Refused as refused:
            exchange.status = api.status(refused)
            self._refuse(api, refused)
            return
        exchange.status = 200
        if not api.streams(exchange.asked):
            exchange.delivered = self._send_reply(json.dumps(api.reply(exchange.asked, said)).encode(), fault)
            return
        events = _with_fault(api, api.events(exchange.asked, said), fault)
        exchange.delivered = self._stream(events, fault, as_list) and not isinstance(fault, Broken | ErrorEvent)

    def _send_reply(self, body: bytes, fault: Fault | None) -> bool:
        """Send a reply in one piece; whether all of it went out."""
        self._begin(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        if isinstance(fault, Broken | Silent):
            self._write(body[: len(body) // 2])
            self.close_connection = True
            if isinstance(fault, Silent):
                self._stay_silent()
            return False
        return self._write(body, fault.seconds if isinstance(fault, Drip) else 0)

    def _stream(self, events: Sequence[Event], fault: Fault | None, as_list: bool) -> bool:
        """Send a stream; whether all of it went out."""
        kind = "application/json" if as_list else "text/event-stream; charset=utf-8"
        self._begin(200, {"Content-Type": kind, "Transfer-Encoding": "chunked", "Cache-Control": "no-cache"})
        pause = fault.seconds / max(1, len(events)) if isinstance(fault, Drip) else 0
        for number, event in enumerate(events):
            written = _list_item(event, number, len(events)) if as_list else _server_sent(event)
            if not self._write_chunk(written, pause):
                return False
        if isinstance(fault, Silent):
            self._stay_silent()
            return False
        if isinstance(fault, Broken) and not fault.clean:
            self.close_connection = True
            return False
        self._write(b"0\r\n\r\n")  # A client may leave as soon as it has the last event.
        return True

    def _write_chunk(self, data: bytes, pause: float) -> bool:
        pieces = [data[at : at + 1] for at in range(len(data))] if pause else [data]
        if pause:  # Some bytes alone, the others together: each alone would be slower than was asked for.
            pieces = [*pieces[:4], data[4:]]
        for piece in pieces:
            if piece and not self._write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n"):
                return False
            time.sleep(pause / len(pieces))
        return True

    def _hang_up(self, reset: bool, down: float) -> None:
        if down:
            self.provider.refuse_connections(down)
        if reset:
            raise _Reset
        self.close_connection = True

    def _stay_silent(self) -> None:
        """Wait until the client leaves."""
        self.close_connection = True
        while not self.provider.closing.is_set():
            ready, _, _ = select.select([self.connection], [], [], 0.05)
            try:
                if ready and not self.connection.recv(1):
                    return
            except OSError:
                return

    def _refuse(self, api: Api, refused: Refused) -> None:
        headers = {}
        if refused.retry_after is not None and api.name != "gemini":
            headers["retry-after"] = f"{refused.retry_after:g}"
        self._send_json(api.status(refused), api.error(refused), headers)

    def _send_json(self, status: int, body: Json, headers: Mapping[str, str] = {}) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _send(self, status: int, body: bytes, content_type: str, headers: Mapping[str, str] = {}) -> None:
        self._begin(status, {"Content-Type": content_type, "Content-Length": str(len(body))} | dict(headers))
        self._write(body)

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        number = f"req_{next(self._ids):024d}"
        self.send_response(status)
        for name, value in {"request-id": number, "x-request-id": number, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _write(self, data: bytes, seconds: float = 0) -> bool:
        """Send bytes, in so many seconds; whether the client was there."""
        size = max(1, len(data) // 10) if seconds else max(1, len(data))
        try:
            for at in range(0, len(data), size):
                self.wfile.write(data[at : at + size])
                self.wfile.flush()
                time.sleep(seconds / 10)
        except OSError:
            self.close_connection = True
            return False
        return True

    def _lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test says what matters."""


def _with_fault(api: Api, events: Iterable[Event], fault: Fault | None) -> list[Event]:
    """The events that are sent: not all of them, where a fault says so."""
    sent = list(events)
    match fault:
        case Broken(after) | Silent(int(after)):
            return sent[: min(after, len(sent) - 1)]
        case ErrorEvent(after, kind):
            sent = sent[: min(after, len(sent) - 1)]
            return [*sent, api.error_event(Refused(kind), len(sent))]
    return sent


def _server_sent(event: Event) -> bytes:
    name, data = event
    written = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {written}\n\n".encode()


def _list_item(event: Event, number: int, of: int) -> bytes:
    """A part of the list that stands for a stream where no server-sent events are asked for."""
    return (("," if number else "[") + json.dumps(event[1]) + ("]" if number == of - 1 else "")).encode()
