"""Requests to a model's provider through its SDK: keys, deadlines, retries, and errors in the provider's words."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pytest_evocode.errors import (
    AgentFault,
    Cancelled,
    ConnectionBroken,
    ContextOverflow,
    ModelFault,
    RequestRefused,
    RequestUnanswered,
    UsageError,
)
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.provider_errors import ProviderFault, from_answer, from_status
from pytest_evocode.llm.retries import RetrySchedule
from pytest_evocode.secrets import SHORTEST, is_secret_name

logger = logging.getLogger(__name__)

Json = dict[str, Any]
#: After so many seconds without an answer the connection is taken for dead, and the request is sent again.
LONGEST_REQUEST = 1800.0
_CONNECT = 30.0  # seconds
#: Retries while nothing has ever come back from the provider: its address may be wrong.
_FIRST_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models, with the SDK that speaks to it."""

    name: str
    """Also the SDK's package, and our extra that installs it."""
    sdk_class: str
    host: str
    key_variable: str
    token_variable: str | None
    """A second variable for the key, which the SDK sends in another header."""
    url_variable: str


PROVIDERS = {
    "openai": Provider("openai", "OpenAI", "openai.com", "OPENAI_API_KEY", None, "OPENAI_BASE_URL"),
    "anthropic": Provider(
        "anthropic", "Anthropic", "anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"
    ),
}


_OK = 200
_Answer = TypeVar("_Answer")


class ProviderConnection:
    """The connection to one model of one provider."""

    def __init__(self, provider: Provider, model: str, options: ModelOptions) -> None:
        self._provider, self._options = provider, options
        self._was_reached = False
        self._sdk_client: Any = None
        self._making = threading.Lock()
        self._closed = threading.Event()
        self.label = f"{provider.name}/{model}"
        """How messages name the model: ``provider/model``."""

    @property
    def base_url(self) -> str | None:
        """Address of the server that is asked; None for the provider's own."""
        return self._options.base_url or os.environ.get(self._provider.url_variable) or None

    @property
    def is_official(self) -> bool:
        """Whether the provider itself is asked, and not a compatible server."""
        host = urlsplit(self.base_url or "").hostname or ""
        return self.base_url is None or host == self._provider.host or host.endswith("." + self._provider.host)

    def check(self) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` when the SDK or the key is missing."""
        name = self._provider.name
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"{self.label} needs the package {name}: pip install 'pytest-evocode[{name}]'")
        if self._options.key_env is not None:
            check_key_name(self._options.key_env)
        if self.is_official and not (self._key or self._token):
            variable = self._options.key_env or self._provider.key_variable
            raise UsageError(
                f"{self.label} needs a key: set {variable}, or name its variable with the option key_env, "
                "or the server with base_url"
            )

    def prepare(self, resource: Callable[[Any], Any]) -> None:
        """Import what requests need and make the SDK's client."""
        resource(self._client())

    def post(
        self,
        resource: Callable[[Any], Any],
        payload: Json,
        options: Json,
        timeout: float | None,
        read: Callable[[Json, str], _Answer],
    ) -> _Answer:
        """Send a request, again where that may help, and return what ``read`` makes of the answer.

        Args:
            resource: Takes the SDK's client and returns the part of it whose ``create`` is called.
            payload: Arguments of ``create``.
            options: Further fields of the request's body, which not all versions of the SDK have arguments for; those
                that are None are left out.
            timeout: Seconds for all tries together; None for no limit.
            read: Takes the answer's JSON object and the request's id; raises :meth:`unreadable` where it cannot.

        Raises:
            RequestRefused: The provider would refuse the same request again; see :meth:`explain`.
            TimeoutError: The seconds are over.
            ModelFault: The provider cannot be reached, or goes on failing.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        given = {name: value for name, value in options.items() if value is not None}
        sent = _sendable(payload | {"extra_body": given})
        schedule = RetrySchedule(self._options)
        while True:
            try:
                answer = read(*self._once(resource, sent, ends))
                self._was_reached = True
                return answer
            except RequestUnanswered as unanswered:
                fault = unanswered.fault
            self._refuse_when_closed()
            self._was_reached |= fault.status not in (None, _OK)  # What answers other things may be no such API.
            if fault.kind in ("overflow", "final"):
                logger.info("%s: refused with status %s, request %s", self.label, fault.status, fault.request_id)
                raise RequestRefused(fault)
            seconds = schedule.pause_after(fault, self._options.retries if self._was_reached else _FIRST_RETRIES)
            if seconds is None:
                raise self._given_up(fault, schedule)
            if ends is not None and time.monotonic() + seconds >= ends:
                raise self._fault("the turn's time is over before the provider can be asked again", fault)
            logger.info("%s: %s with status %s, retried in %.1f s", self.label, fault.kind, fault.status, seconds)
            self._pause(seconds)

    def explain(self, fault: ProviderFault) -> ContextOverflow | AgentFault:
        """Return what to raise for a request that the provider refuses."""
        if fault.kind == "overflow":
            return ContextOverflow(self._without_key(str(fault)))
        variable = self._options.key_env or self._provider.key_variable
        reasons = {
            401: f"the key in {variable} was refused",
            402: "the provider wants to be paid first",
            403: f"the key in {variable} lacks the permission",
            404: f"no such model, or no such API, at {self.base_url or 'the provider'}",
            429: "the account's quota is used up",
        }
        reason = reasons.get(fault.status or 0, "the request was refused")
        if fault.status in reasons or (fault.status or 500) >= 500:
            return self._fault(reason, fault)
        return AgentFault(self._told(reason, fault))  # For what the agent wrote into it.

    def unreadable(self, body: Any, request_id: str, form: str) -> RequestUnanswered:
        """Return what to raise for an answer that is not in the format of the API; ``form`` names the API.

        Proxies and busy servers answer so for a moment, so the request is sent again.
        """
        shown = json.dumps(body)[:300]
        hint = f"is base_url right ({self.base_url})?" if self.base_url else "is the SDK too old?"
        words = f"the answer is not in the format of {form}; {hint}: {shown}"
        return RequestUnanswered(ProviderFault(words, _OK, request_id=request_id, retry=True))

    def _fault(self, reason: str, fault: ProviderFault) -> ModelFault:
        return ModelFault(self._told(reason, fault))

    def _told(self, reason: str, fault: ProviderFault) -> str:
        return self._without_key(f"{self.label}: {reason}: {fault}")

    def _without_key(self, text: str) -> str:
        for key in (self._key, self._token):
            if key and len(key) >= SHORTEST:
                text = text.replace(key, "***")
        return text

    def _given_up(self, fault: ProviderFault, schedule: RetrySchedule) -> ModelFault:
        if fault.kind == "rate limit":
            wanted = "" if fault.retry_after is None else f" (the provider wants {fault.retry_after:g} more)"
            limit = f"{self._options.retry_seconds:g} seconds{wanted}"
            return self._fault(f"the rate limit has not ended within {limit}; see the option retry_seconds", fault)
        times = f"{schedule.failures} times" if schedule.failures > 1 else "once"
        if fault.status is None:
            return self._fault(f"{self.base_url or self._provider.host} cannot be reached, tried {times}", fault)
        return self._fault(f"the provider failed {times}", fault)

    def _once(self, resource: Callable[[Any], Any], payload: Json, ends: float | None) -> tuple[Json, str]:
        """Send the request once; ``ends`` is the deadline on the monotonic clock.

        Raises:
            RequestUnanswered: Whether to send it again depends on the fault.
            TimeoutError: The deadline has passed.
        """
        sdk = importlib.import_module(self._provider.name)
        left = LONGEST_REQUEST if ends is None else min(LONGEST_REQUEST, ends - time.monotonic())
        if left <= 0:
            raise TimeoutError(f"{self.label}: no time is left to ask the model")
        until = time.monotonic() + left
        limits = sdk.Timeout(left, connect=min(left, _CONNECT))
        logger.debug("%s: a request is sent", self.label)
        try:
            written, headers = _read(resource(self._client()), payload | {"timeout": limits}, until)
        except sdk.APIStatusError as error:
            raise RequestUnanswered(from_status(error.status_code, error.body, error.response.headers)) from None
        except (sdk.APIConnectionError, ConnectionBroken) as error:
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"{self.label}: the model has not answered in time") from None
            raise RequestUnanswered(ProviderFault(_cause(error))) from None
        except RuntimeError:  # What the SDKs' HTTP library says of a client that was closed just before.
            self._refuse_when_closed()
            raise
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
        logger.debug("%s: request %s was answered in %.1f s", self.label, request_id, time.monotonic() - until + left)
        return body, request_id or str(body.get("id") or "")

    @property
    def _key(self) -> str | None:
        return os.environ.get(self._options.key_env or self._provider.key_variable) or None

    @property
    def _token(self) -> str | None:
        variable = None if self._options.key_env else self._provider.token_variable
        return (os.environ.get(variable) or None) if variable else None

    def _client(self) -> Any:
        """Return the SDK's client, which is made once and lives until :meth:`close`."""
        with self._making:
            self._refuse_when_closed()
            if self._sdk_client is None:
                self.check()
                sdk = importlib.import_module(self._provider.name)
                # A local server takes any key, but the SDKs want one.
                key, token = self._key, self._token
                auth = {"auth_token": token} if token and not key else {"api_key": key or "none"}
                make = getattr(sdk, self._provider.sdk_class)
                self._sdk_client = make(base_url=self.base_url, max_retries=0, **auth)
            return self._sdk_client

    def close(self) -> None:
        """Close all connections to the provider, for good; a request of another thread fails and is not sent again."""
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


def check_key_name(name: str) -> None:
    """Raise UsageError for a variable (option ``key_env``) whose value would not be kept out of records."""
    if not is_secret_name(name):
        raise UsageError(
            f"key_env = {name!r}: a variable of this name does not count as a secret, so its value would not be "
            f"removed from records; call it {name}_API_KEY"
        )


def _read(resource: Any, payload: Json, until: float) -> tuple[bytes, Mapping[str, str]]:
    """Return the body and the headers of the answer; ``until`` is a deadline on the monotonic clock.

    The SDKs' timeouts hold for each read, and some servers send blanks for as long as they are busy.
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
    """Return the words of an SDK error's root cause; the error itself says no more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _sendable(value: Any) -> Any:
    """Return a JSON value without lone surrogates in its texts: the SDKs fail to encode them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: _sendable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(each) for each in value]
    return value
