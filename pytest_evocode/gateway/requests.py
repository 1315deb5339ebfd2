"""What programs ask: which API a path is of, where the token is, and the gateway's own answers in each API's form."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from pytest_evocode.gateway.routes import Family, Route
from pytest_evocode.llm.usage import Api

FAMILIES: tuple[Family, ...] = get_args(Family)
_TABLE = tomllib.loads(Path(__file__).with_name("apis.toml").read_text(encoding="utf-8"))
_FAMILIES: Mapping[Family, Mapping[str, Any]] = _TABLE["families"]
_APIS: Mapping[Api, Mapping[str, Any]] = _TABLE["apis"]
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
            of_family = (api for api, about in _APIS.items() if about["family"] == family)
            api = next((api for api in of_family if asks and re.fullmatch(_APIS[api]["path"], path)), None)
            is_beside = re.fullmatch(_FAMILIES[family]["beside"], f"{method} {path}") is not None
            is_known = (api is not None or is_beside) and ".." not in path
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
    return isinstance(body, dict) and any(sign in body for sign in _APIS[api]["signs"])


def small_request(api: Api, path: AskedPath, model: str) -> tuple[AskedPath, bytes]:
    """Return the path and the body of a request to the same model that any server of the API can answer."""
    plain = path.path.replace(":streamGenerateContent", ":generateContent").removesuffix("/compact")
    small: dict[str, Any] = _APIS[api]["small"]
    body = small if path.model else {"model": model, **small}
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


def error_of(family: Family, trouble: Trouble, words: str) -> tuple[int, bytes]:
    """Return the status and the body by which the provider would say that something is wrong."""
    status, name = _FAMILIES[family]["troubles"][trouble]
    error: dict[str, Any] = {"message": words}
    if family == "anthropic":
        body: dict[str, Any] = {"type": "error", "error": {"type": name, **error}}
    elif family == "openai":
        body = {"error": {**error, "type": name, "param": None, "code": name}}
    else:
        body = {"error": {"code": status, **error, "status": name}}
    return status, json.dumps(body).encode()
