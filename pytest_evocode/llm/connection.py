"""Requests to a provider through its own SDK: keys, deadlines, repetitions, and errors in the provider's words."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pytest_evocode.errors import (
    AgentFault,
    Cancelled,
    ConnectionBroken,
    ContextOverflow,
    RequestRefused,
    RequestUnanswered,
    UsageError,
)
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.provider_errors import Fault, from_answer, from_status
from pytest_evocode.secrets import SHORTEST, is_secret_name

Json = dict[str, Any]
#: A request without an answer is given up after so many seconds, and repeated: the connection is dead.
LONGEST_REQUEST = 1800.0
_CONNECT = 30.0
#: So often a provider is asked again of which nothing has ever come back: its address may be wrong.
_FIRST_RETRIES = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0


@dataclass(frozen=True, slots=True)
class Provider:
    """Where models are, and the SDK that speaks to them: its package, which our extra is named after, and its class."""

    name: str
    sdk_class: str
    host: str
    key_variable: str
    token_variable: str | None
    """Another variable for the key, which the SDK sends in another way."""
    url_variable: str


PROVIDERS = {
    "openai": Provider("openai", "OpenAI", "openai.com", "OPENAI_API_KEY", None, "OPENAI_BASE_URL"),
    "anthropic": Provider(
        "anthropic", "Anthropic", "anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"
    ),
}


class ProviderConnection:
    """To one model of one provider."""

    def __init__(self, provider: Provider, model: str, options: ModelOptions) -> None:
        self._provider, self._options = provider, options
        self._was_reached = False
        self._sdk_client: Any = None
        self._making = threading.Lock()
        self._closed = threading.Event()
        self.label = f"{provider.name}/{model}"
        """What messages call the model."""

    @property
    def base_url(self) -> str | None:
        """Where the provider is; None for its own address."""
        return self._options.base_url or os.environ.get(self._provider.url_variable) or None

    @property
    def is_providers_own(self) -> bool:
        """Whether the provider itself is spoken to, and not a server that is compatible."""
        host = urlsplit(self.base_url or "").hostname or ""
        return self.base_url is None or host == self._provider.host or host.endswith("." + self._provider.host)

    def check(self) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` when the SDK or the key is missing."""
        name = self._provider.name
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"{self.label} needs the package {name}: pip install 'pytest-evocode[{name}]'")
        if (named := self._options.key_env) is not None and not is_secret_name(named):
            raise UsageError(
                f"key_env = {named!r}: a variable of this name is not taken for a secret, and what it holds would not "
                f"be kept out of records; call it {named}_API_KEY"
            )
        if self.is_providers_own and not (self._key or self._token):
            variable = self._options.key_env or self._provider.key_variable
            raise UsageError(
                f"{self.label} needs a key: set {variable}, or name its variable with the option key_env, "
                "or the server with base_url"
            )

    def prepare(self, resource: Callable[[Any], Any]) -> None:
        """Have all imported that a request needs."""
        resource(self._client())

    def post(
        self, resource: Callable[[Any], Any], payload: Json, options: Json, timeout: float | None
    ) -> tuple[Json, str]:
        """What the provider answers, as JSON, and the request's id.

        ``resource`` takes the SDK's client and gives the part of it that is asked; ``options`` are parts of the request
        that not all versions of the SDK have a name for, left out where they are None. Repeats what may help. Raises
        what :meth:`~pytest_evocode.llm.protocol.ModelClient.complete` does, and :class:`RequestRefused` for what only
        the request is to blame for.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        given = {name: value for name, value in options.items() if value is not None}
        sent = _sendable(payload | {"extra_body": given})
        patience = _Patience(self._options)
        while True:
            try:
                answer = self._once(resource, sent, ends)
                self._was_reached = True
                return answer
            except RequestUnanswered as unanswered:
                fault = unanswered.fault
            self._was_reached |= fault.status is not None
            if fault.kind in ("overflow", "final"):
                raise RequestRefused(fault)
            seconds = patience.pause(fault, self._options.retries if self._was_reached else _FIRST_RETRIES)
            if seconds is None:
                raise self._given_up(fault, patience)
            if ends is not None and time.monotonic() + seconds >= ends:
                raise self._fault("the turn's time is over before the provider can be asked again", fault)
            self._pause(seconds)

    def explain(self, fault: Fault) -> ContextOverflow | AgentFault:
        """What to raise for a request that is not worth a repetition."""
        if fault.kind == "overflow":
            return ContextOverflow(self._without_key(str(fault)))
        variable = self._options.key_env or self._provider.key_variable
        reasons = {
            401: f"the key in {variable} was refused",
            402: "the provider wants to be paid first",
            403: f"the key in {variable} may not do this",
            404: f"there is no such model, or nothing of the kind at {self.base_url or 'the provider'}",
            429: "the account has used up what it may",
        }
        return self._fault(reasons.get(fault.status or 0, "the request was refused"), fault)

    def unreadable(self, body: Any, request_id: str, form: str) -> AgentFault:
        """What to raise for an answer that is not in the form of the API."""
        shown = json.dumps(body)[:300]
        hint = f"is base_url right ({self.base_url})?" if self.base_url else "is the SDK too old?"
        return self._fault(f"the answer is not in the form of {form}; {hint}", Fault(shown, 200, request_id=request_id))

    def _fault(self, reason: str, fault: Fault) -> AgentFault:
        return AgentFault(self._without_key(f"{self.label}: {reason}: {fault}"))

    def _without_key(self, text: str) -> str:
        for key in (self._key, self._token):
            if key and len(key) >= SHORTEST:
                text = text.replace(key, "***")
        return text

    def _given_up(self, fault: Fault, patience: _Patience) -> AgentFault:
        if fault.kind == "rate limit":
            wanted = "" if fault.retry_after is None else f" (the provider wants {fault.retry_after:g} more)"
            limit = f"{self._options.retry_seconds:g} seconds{wanted}"
            return self._fault(f"the rate limit has not ended within {limit}; see the option retry_seconds", fault)
        times = f"{patience.failures} times" if patience.failures > 1 else "once"
        if fault.status is None:
            return self._fault(f"{self.base_url or self._provider.host} cannot be reached, tried {times}", fault)
        return self._fault(f"the provider failed {times}", fault)

    def _once(self, resource: Callable[[Any], Any], payload: Json, ends: float | None) -> tuple[Json, str]:
        """One request; raises :class:`RequestUnanswered`, and TimeoutError at the deadline."""
        sdk = importlib.import_module(self._provider.name)
        left = LONGEST_REQUEST if ends is None else min(LONGEST_REQUEST, ends - time.monotonic())
        if left <= 0:
            raise TimeoutError(f"{self.label}: no time is left to ask the model")
        until = time.monotonic() + left
        limits = sdk.Timeout(left, connect=min(left, _CONNECT))
        try:
            written, headers = _read(resource(self._client()), payload | {"timeout": limits}, until)
        except sdk.APIStatusError as error:
            raise RequestUnanswered(from_status(error.status_code, error.body, error.response.headers)) from None
        except (sdk.APIConnectionError, ConnectionBroken) as error:
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"{self.label}: the model has not answered in time") from None
            raise RequestUnanswered(Fault(_cause(error))) from None
        request_id = headers.get("x-request-id") or headers.get("request-id") or ""
        try:
            body = json.loads(written)
        except ValueError:
            body = written.decode("utf-8", "replace")
        if not isinstance(body, dict):
            raise self.unreadable(body, request_id, "the API")
        fault = from_answer(body, request_id)
        if fault is not None:
            raise RequestUnanswered(fault)
        return body, request_id or str(body.get("id") or "")

    @property
    def _key(self) -> str | None:
        return os.environ.get(self._options.key_env or self._provider.key_variable) or None

    @property
    def _token(self) -> str | None:
        variable = None if self._options.key_env else self._provider.token_variable
        return (os.environ.get(variable) or None) if variable else None

    def _client(self) -> Any:
        """Return the SDK's client, which is made for the first request and lives until :meth:`close`."""
        with self._making:
            self._refuse_when_closed()
            if self._sdk_client is None:
                self.check()
                sdk = importlib.import_module(self._provider.name)
                # A server of one's own takes any key, but the SDKs want one.
                auth = (
                    {"auth_token": self._token} if self._token and not self._key else {"api_key": self._key or "none"}
                )
                make = getattr(sdk, self._provider.sdk_class)
                self._sdk_client = make(base_url=self.base_url, max_retries=0, **auth)
            return self._sdk_client

    def close(self) -> None:
        """Close all connections to the provider, for good.

        A request that another thread waits for fails, and is not repeated.
        """
        with self._making:
            self._closed.set()
            if self._sdk_client is not None:
                self._sdk_client.close()

    def _pause(self, seconds: float) -> None:
        self._closed.wait(seconds)
        self._refuse_when_closed()

    def _refuse_when_closed(self) -> None:
        if self._closed.is_set():
            raise Cancelled(f"{self.label}: the connection was closed")


class _Patience:
    """How long to wait before a request is repeated, and when no longer."""

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._refusals = 0
        self._refused_since = 0.0
        self.failures = 0
        """How often the request has failed for a passing reason that is no rate limit."""

    def pause(self, fault: Fault, retries: int) -> float | None:
        """Seconds until the request is worth a repetition after one more fault; None where it no longer is."""
        if fault.kind == "rate limit":
            self._refused_since = self._refused_since or time.monotonic()
            self._refusals += 1
            left = self._options.retry_seconds - (time.monotonic() - self._refused_since)
            backoff = min(left, _backoff(self._refusals))
        else:
            self.failures += 1
            left = self._options.retry_seconds if self.failures <= min(retries, self._options.retries) else 0.0
            backoff = _backoff(self.failures)
        seconds = backoff if fault.retry_after is None else fault.retry_after
        return seconds if left > 0 and seconds <= left else None


def _backoff(times: int) -> float:
    """Twice as long each time, and not at the same moment as everybody else who was refused."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(times - 1, 16)) * random.uniform(0.5, 1)


def _read(resource: Any, payload: Json, until: float) -> tuple[bytes, Mapping[str, str]]:
    """The body and the headers of the answer.

    The SDKs' limits are for each read, and some servers send blanks for as long as they are busy.
    """
    body = bytearray()
    with resource.with_streaming_response.create(**payload) as response:
        try:
            for chunk in response.iter_bytes():
                body += chunk
                if time.monotonic() >= until:
                    raise TimeoutError("the answer took too long")
        except Exception as error:  # the SDKs let through what their HTTP libraries raise here
            raise ConnectionBroken(str(error) or type(error).__name__) from error
        return bytes(body), response.headers


def _cause(error: BaseException) -> str:
    """What is behind an error of the SDK, which itself says no more than that there is one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _sendable(value: Any) -> Any:
    """The value with no text in it that UTF-8 has no bytes for, which would end in an error of the SDK."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: _sendable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(each) for each in value]
    return value
