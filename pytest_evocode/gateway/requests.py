"""What programs ask: which API a path is of, where the token is, and the gateway's own answers in each API's form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from pytest_evocode.gateway.routes import Family, Route
from pytest_evocode.llm.usage import Api

FAMILIES: tuple[Family, ...] = get_args(Family)
_APIS: tuple[tuple[Family, re.Pattern[str], Api], ...] = (
    ("anthropic", re.compile(r"(/v1)?/messages"), "messages"),
    ("openai", re.compile(r"(/v1)?/chat/completions"), "chat"),
    ("openai", re.compile(r"(/v1)?/responses(/compact)?"), "responses"),
    ("google", re.compile(r"/\w+/models/[\w.@-]+:(streamG|g)enerateContent"), "gemini"),
)
#: What programs may ask beside: which models there are, and how many tokens a request has. All else at a provider, such
#: as files, batches and replies of other sessions, is the account's, not the agent's.
_BESIDE: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("anthropic", re.compile(r"GET (/v1)?/models(/[\w.:@-]+)?|POST (/v1)?/messages/count_tokens")),
    ("openai", re.compile(r"GET (/v1)?/models(/[\w.:@/-]+)?|POST (/v1)?/responses/input_tokens")),
    ("google", re.compile(r"GET /v\w+/models(/[\w.:@-]+)?|POST /v\w+/models/[\w.:@-]+:countTokens")),
)
#: What every answer of an API has one of.
_SIGNS: Mapping[Api, tuple[str, ...]] = {
    "messages": ("content",),
    "chat": ("choices",),
    "responses": ("output",),
    "gemini": ("candidates", "promptFeedback"),
}
_SMALL: Mapping[Api, dict[str, Any]] = {
    "messages": {"max_tokens": 16, "messages": [{"role": "user", "content": "Say OK."}]},
    "chat": {"messages": [{"role": "user", "content": "Say OK."}]},
    "responses": {"input": "Say OK."},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Say OK."}]}]},
}
_MODEL_IN_PATH = re.compile(r"/models/([^/]+):")
#: What says of a connection, not of a message, and what the gateway says itself.
NOT_PASSED_ON = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade", "content-length", "host", "expect",
})  # fmt: skip
_CREDENTIALS = ("x-api-key", "x-goog-api-key", "api-key")
#: What chooses the account to be charged, or another method than the one that was looked at.
_ACCOUNTS = frozenset({"openai-organization", "openai-project", "x-goog-user-project", "x-http-method-override"})
_CREDENTIALS_IN_QUERY = frozenset({"key", "access_token", "oauth_token", "$httpheaders", "quotauser"})


@dataclass(frozen=True, slots=True)
class AskedPath:
    """What the path of a request says."""

    family: Family
    path: str
    """Without the family."""
    query: str
    api: Api | None
    """None for all that is no request to a model."""
    is_known: bool = True
    """Whether the gateway passes it on."""

    @property
    def whole(self) -> str:
        """The path with the family, as records have it."""
        return f"/{self.family}{self.path}"

    @property
    def model(self) -> str:
        """The model that the path names; empty where it names none."""
        found = _MODEL_IN_PATH.search(self.path)
        return found[1] if found else ""

    @property
    def streams(self) -> bool:
        """Whether the path asks for a stream."""
        return self.path.endswith(":streamGenerateContent")

    def target(self, route: Route) -> str:
        """Return the address of the request at the real server, without the token."""
        # OpenAI's SDK takes the version as part of the server's address, the others as part of the path.
        # What begins with nothing but the same letters is another path, and without a slash would name another host.
        path = self.path[3:] if self.family == "openai" and self.path.startswith("/v1/") else self.path
        given = parse_qsl(self.query, True)
        query = urlencode([(name, value) for name, value in given if name.lower() not in _CREDENTIALS_IN_QUERY])
        return f"{route.server}{path}" + (f"?{query}" if query else "")


def asked_path(method: str, raw_path: str) -> AskedPath | None:
    """Read the path of a request; None where it begins with no family.

    >>> asked_path("POST", "/anthropic/v1/messages?beta=true").api, asked_path("GET", "/icon")
    ('messages', None)
    >>> [asked_path(method, "/openai/v1/files").is_known for method in ("GET", "POST")]
    [False, False]
    """
    whole, _, query = raw_path.partition("?")
    for family in FAMILIES:
        if whole.startswith(f"/{family}/"):
            path = whole.removeprefix(f"/{family}")
            asks = method == "POST"
            api = next((api for of, form, api in _APIS if asks and of == family and form.fullmatch(path)), None)
            beside = any(of == family and form.fullmatch(f"{method} {path}") for of, form in _BESIDE)
            is_known = (api is not None or beside) and ".." not in path
            return AskedPath(family, path, query, api, is_known)
    return None


def tokens_in(headers: Mapping[str, str], query: str) -> list[str]:
    """Return what a request may have for a token, wherever clients put their keys."""
    found = [headers[name] for name in _CREDENTIALS if name in headers]
    found += [headers.get("authorization", "").partition(" ")[2].strip()]
    return [each for each in (*found, *(value for name, value in parse_qsl(query) if name == "key")) if each]


def headers_for(route: Route, given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request at the real server: the program's, with the real key in place of the token."""
    dropped = NOT_PASSED_ON | _ACCOUNTS | {*_CREDENTIALS, "authorization", "accept-encoding", "cookie"}
    own = {name.lower() for name in route.headers}
    kept = {name: value for name, value in given.items() if name.lower() not in dropped | own}
    # Answers are read on their way.
    return {**kept, "Accept-Encoding": "identity", **route.credentials, **route.headers}


def is_answer(api: Api, body: Any) -> bool:
    """Return whether a body is in the form of an API's answers; busy proxies answer otherwise for a moment."""
    return isinstance(body, dict) and any(sign in body for sign in _SIGNS[api])


def small_request(api: Api, path: AskedPath, model: str) -> tuple[AskedPath, bytes]:
    """Return the path and the body of a request to the same model that any server of the API can answer."""
    plain = path.path.replace(":streamGenerateContent", ":generateContent").removesuffix("/compact")
    body = _SMALL[api] if path.model else {"model": model, **_SMALL[api]}
    return replace(path, path=plain, query=""), json.dumps(body).encode()


def with_counts(body: bytes, asked: Any) -> bytes | None:
    """Return a request of Chat Completions for a stream so that the stream says what it used; None where it does so.

    Bytes are put in, so that all else stays as the program wrote it.
    """
    if not isinstance(asked, dict) or not asked.get("stream") or asked.get("stream_options") is not None:
        return None
    if "stream_options" in asked:
        return json.dumps(asked | {"stream_options": {"include_usage": True}}).encode()
    at = body.index(b"{") + 1
    return body[:at] + b'"stream_options":{"include_usage":true},' + body[at:]


Trouble = Literal["token", "path", "model", "budget", "unreachable"]
# Which status and name ends a program at once: SDKs send 4xx but for 408, 409 and 429 once; Codex, all but 400 again.
_TROUBLES: Mapping[Family, Mapping[Trouble, tuple[int, str]]] = {
    "anthropic": {
        "token": (401, "authentication_error"),
        "path": (404, "not_found_error"),
        "model": (404, "not_found_error"),
        "budget": (403, "permission_error"),
        "unreachable": (502, "api_error"),
    },
    "openai": {
        "token": (401, "invalid_api_key"),
        "path": (404, "not_found"),
        "model": (404, "model_not_found"),
        "budget": (400, "insufficient_quota"),
        "unreachable": (502, "server_error"),
    },
    "google": {
        "token": (401, "UNAUTHENTICATED"),
        "path": (404, "NOT_FOUND"),
        "model": (404, "NOT_FOUND"),
        "budget": (403, "PERMISSION_DENIED"),
        "unreachable": (503, "UNAVAILABLE"),
    },
}


def error_of(family: Family, trouble: Trouble, words: str) -> tuple[int, bytes]:
    """Return the status and the body by which the provider would say that something is wrong."""
    status, name = _TROUBLES[family][trouble]
    error: dict[str, Any] = {"message": words}
    if family == "anthropic":
        body: dict[str, Any] = {"type": "error", "error": {"type": name, **error}}
    elif family == "openai":
        body = {"error": {**error, "type": name, "param": None, "code": name}}
    else:
        body = {"error": {"code": status, **error, "status": name}}
    return status, json.dumps(body).encode()
