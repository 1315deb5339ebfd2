"""Requests to a model's provider through its SDK: keys, deadlines, retries, and errors in the provider's words."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pytest_evocode.errors import (
    Cancelled,
    ConnectionBroken,
    ContextOverflow,
    ConversationRefused,
    ModelFault,
    RequestRefused,
    RequestUnanswered,
    UsageError,
)
from pytest_evocode.llm.connection_limits import place_for_request
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.model_probe import probe, probe_compaction
from pytest_evocode.llm.provider_errors import (
    FIRST_RETRIES,
    ProviderFault,
    RetrySchedule,
    from_answer,
    from_status,
    request_id_in,
)
from pytest_evocode.llm.providers import Access, Provider, account_name
from pytest_evocode.llm.sdk_private import events_of
from pytest_evocode.llm.streams import StreamedAnswer
from pytest_evocode.llm.waiting import WaitCause, waiting_of_turn
from pytest_evocode.secrets import SHORTEST, is_secret_name

_CONNECT = 30.0  # seconds
_SHORTEST_CONNECT = 2.0
"""Seconds for a connection where hardly any time is left: without one it is not the model that is late."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer is waited for."""

    silence: float
    """Seconds without a byte, after which the connection is taken for dead."""
    until: float
    """When all of it has to be there, on the monotonic clock."""

    def watch(self, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
        """Yield the pieces of an answer as they come; raises TimeoutError where it takes too long."""
        for piece in pieces:
            yield piece
            if time.monotonic() >= self.until:
                raise TimeoutError("the answer took too long")


def send_request(
    sdk: Any, client: Any, resource: Any, payload: dict[str, Any], patience: Patience, streamed: StreamedAnswer | None
) -> tuple[bytes, Mapping[str, str]]:
    """Send a request once, and return the body and the headers of the answer.

    Args:
        sdk: The SDK's module.
        client: The SDK's client.
        resource: The part of it whose ``create`` is called.
        payload: Arguments of ``create``.
        patience: How long to wait.
        streamed: What takes the answer where it comes in events, so that the body is empty; None to ask for no stream.

    Raises:
        RequestUnanswered: The provider answers with an error, or the connection is broken.
        TimeoutError: The answer took too long.
    """
    if hasattr(resource, "send"):  # One of ours, for an SDK of another make.
        return resource.send(sdk, payload, patience, streamed)  # type: ignore[no-any-return]
    limits = sdk.Timeout(patience.silence, connect=max(min(patience.silence, _CONNECT), _SHORTEST_CONNECT))
    stream = {} if streamed is None else {"stream": True}
    try:
        return _read(client, resource, payload | stream | {"timeout": limits}, patience, streamed)
    except sdk.APIStatusError as error:
        raise RequestUnanswered(from_status(error.status_code, error.body, error.response.headers)) from None
    except (sdk.APIConnectionError, ConnectionBroken) as error:
        raise RequestUnanswered(broken_by(error)) from None


def _read(
    client: Any, resource: Any, payload: dict[str, Any], patience: Patience, streamed: StreamedAnswer | None
) -> tuple[bytes, Mapping[str, str]]:
    """Return the body and the headers of the answer.

    ``streamed`` takes the body where it is a stream, which not all servers send that are asked for one.
    """
    with resource.with_streaming_response.create(**payload) as response:
        pieces = patience.watch(response.iter_bytes())
        try:
            if streamed is None or "event" not in response.headers.get("content-type", ""):
                return b"".join(pieces), response.headers
            for data in events_of(client, pieces):
                streamed.take(data)
        except TimeoutError:
            raise
        except Exception as error:  # the SDKs let through what their HTTP libraries raise here
            if streamed is None or not streamed.is_complete:
                raise ConnectionBroken(str(error) or type(error).__name__) from error
        return b"", response.headers


def broken_by(error: BaseException) -> ProviderFault:
    """Return what to report of an error of an SDK, or of its HTTP library, that says no more than that it failed.

    The words are those of the root cause: the SDKs' own are "Connection error.".
    """
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    names = {type(each).__name__ for each in causes}
    return ProviderFault(
        str(causes[-1]) or type(causes[-1]).__name__,
        connected=names.isdisjoint(("ConnectTimeout", "ConnectError")),
        is_silence="ReadTimeout" in names,
    )


logger = logging.getLogger(__name__)

Json = dict[str, Any]
#: Seconds without a byte for an answer that comes in one piece, of which there is none before all of it is made.
LONGEST_SILENCE = 1800.0
#: Seconds before a request that was refused is sent once more.
ONCE_MORE = 1.0


_OK = 200
_Answer = TypeVar("_Answer")
_Piece = TypeVar("_Piece")


class ProviderConnection(ABC):
    """The connection to one model of one provider; clients are such connections, which know its API as well."""

    def __init__(self, provider: Provider, model: str, options: ModelOptions) -> None:
        self.model = model
        self._provider, self._options = provider, options
        self._was_reached = False
        self._is_plain = False  # Whether the server is known to answer in one piece where it is asked for a stream.
        self._sdk_client: Any = None
        self._making = threading.Lock()
        self._closed = threading.Event()
        self.label = f"{provider.name}/{model}"
        """How messages name the model: ``provider/model``."""

    @property
    def base_url(self) -> str | None:
        """Address of the server that is asked; None for the provider's own."""
        return self._provider.address(self._options)

    @property
    def answered_by(self) -> dict[str, Any]:
        """See :meth:`~pytest_evocode.llm.providers.Provider.answered_by`."""
        return self._provider.answered_by(self._access)

    @property
    def is_official(self) -> bool:
        """Whether the provider itself is asked, and not a compatible server."""
        return self._provider.is_official(self.base_url)

    @property
    def reports_cost(self) -> bool:
        """Whether the server is known to say what each reply cost."""
        host = urlsplit(self.base_url or "").hostname or ""
        return host == "openrouter.ai" or host.endswith(".openrouter.ai")

    def check(self) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` when the SDK or the key is missing."""
        provider = self._provider
        for module in (provider.sdk, *provider.packages):
            if not _is_installed(module):
                raise UsageError(
                    f"{self.label} needs the package {_package_of(module)}: "
                    f"pip install 'pytest-evocode[{provider.name}]'"
                )
        if self._options.key_env is not None:
            check_key_name(self._options.key_env)
        self._options.headers()
        if missing := provider.missing(self._access):
            raise UsageError(f"{self.label} needs {missing}")

    def probe(self) -> None:
        """Raise UsageError where one request, which costs nothing, tells that the model cannot be asked."""
        probe(self._provider, self.model, self._access)

    def probe_compaction(self) -> None:
        """Raise UsageError where the provider says that it does not shorten conversations with the model itself."""
        probe_compaction(self._provider, self.model, self._access)

    def post(
        self,
        resource: Callable[[Any], Any],
        payload: Json,
        options: Json,
        timeout: float | None,
        read: Callable[[Json, str], _Answer],
        streamed: Callable[[], StreamedAnswer | None],
    ) -> _Answer:
        """Send a request, again where that may help, and return what ``read`` makes of the answer.

        Args:
            resource: Takes the SDK's client and returns the part of it whose ``create`` is called.
            payload: Arguments of ``create``.
            options: Further fields of the request's body, which not all versions of the SDK have arguments for; those
                that are None are left out.
            timeout: Seconds for an answer; None for no limit. What is waited for before the request is sent, and tries
                that are repeated, do not count; see :mod:`~pytest_evocode.llm.waiting`.
            read: Takes the answer's JSON object and the request's id; raises :meth:`unreadable` where it cannot.
            streamed: Returns what takes the answer where the server streams it; None to ask for no stream.

        Raises:
            RequestRefused: The provider would refuse the same request again; see :meth:`explain`.
            TimeoutError: The seconds are over.
            ModelFault: The provider cannot be reached, or goes on failing.
        """
        waiting = waiting_of_turn()
        ends = None if timeout is None else time.monotonic() + timeout - waiting.seconds
        sent = _sendable(payload | {"extra_body": {name: each for name, each in options.items() if each is not None}})
        schedule = RetrySchedule(self._options)
        while True:
            with place_for_request(self._account, self._options.max_connections, self._wait) as place:
                began = time.monotonic()
                try:
                    until = math.inf if ends is None else ends + waiting.seconds
                    answer = read(*self._once(resource, sent, until, streamed(), schedule.silences))
                    place.answered()
                    self._was_reached = True
                    return answer
                except RequestUnanswered as unanswered:
                    fault = unanswered.fault
                place.failed(fault)
                took = time.monotonic() - began
            self._refuse_when_closed()
            self._was_reached |= fault.status not in (None, _OK)  # What answers other things may be no such API.
            if fault.kind in ("overflow", "final"):
                logger.info("%s: refused with status %s, request %s", self.label, fault.status, fault.request_id)
                raise RequestRefused(fault)
            seconds = schedule.pause_after(fault, self._options.retries if self._was_reached else FIRST_RETRIES)
            if seconds is None:
                raise self._given_up(fault, schedule)
            waiting.retry(fault.cause, took)
            logger.info("%s: %s with status %s, retried in %.1f s", self.label, fault.kind, fault.status, seconds)
            self._wait(seconds, fault.cause)

    def wait_after(self, fault: ProviderFault) -> None:
        """Wait before a request that was refused is sent once more."""
        waiting_of_turn().retry("provider", 0.0)
        logger.info("%s: refused with status %s, and asked once more", self.label, fault.status)
        self._wait(ONCE_MORE, "provider")

    def explain(self, fault: ProviderFault) -> ContextOverflow | ModelFault:
        """Return what to raise for a request that the provider refuses."""
        if fault.kind == "overflow":
            return ContextOverflow(self._without_key(str(fault)))
        variable = self._access.key_name
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
        return ConversationRefused(self._told(reason, fault))

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
        access = self._access
        for name in (*access.key_variables, access.token_variable or ""):
            if len(key := os.environ.get(name, "")) >= SHORTEST:
                text = text.replace(key, f"[{name}]")  # As it is kept out of all else.
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

    def _once(
        self,
        resource: Callable[[Any], Any],
        payload: Json,
        ends: float,
        streamed: StreamedAnswer | None,
        silences: int,
    ) -> tuple[Json, str]:
        """Send the request once; ``ends`` is the deadline on the monotonic clock.

        Raises:
            RequestUnanswered: Whether to send it again depends on the fault.
            TimeoutError: The deadline has passed.
        """
        began = time.monotonic()
        if began >= ends:
            raise TimeoutError(f"{self.label}: no time is left to ask the model")
        silence = self._silence(silences) if streamed is not None else LONGEST_SILENCE
        logger.debug("%s: a request is sent", self.label)
        try:
            answer = self._answer(resource, payload, Patience(min(silence, ends - began), ends), streamed)
        except RequestUnanswered as unanswered:
            self._lose(streamed)
            fault = unanswered.fault
            if fault.status is None and fault.connected and time.monotonic() >= ends:
                raise TimeoutError(f"{self.label}: the model has not answered in time") from None
            if fault.is_silence:
                words = f"not a byte came for {silence:g} seconds: {fault.words}"
                raise RequestUnanswered(replace(fault, words=words)) from None
            raise
        except TimeoutError:
            self._lose(streamed)
            raise TimeoutError(f"{self.label}: the model has not answered in time") from None
        except RuntimeError:  # What the SDKs' HTTP library says of a client that was closed just before.
            self._refuse_when_closed()
            raise
        logger.debug("%s: request %s was answered in %.1f s", self.label, answer[1], time.monotonic() - began)
        return answer

    def _answer(
        self, resource: Callable[[Any], Any], payload: Json, patience: Patience, streamed: StreamedAnswer | None
    ) -> tuple[Json, str]:
        """Return the JSON object of an answer, and the request's id."""
        client, sdk = self._client(), importlib.import_module(self._provider.sdk)
        written, headers = send_request(sdk, client, resource(client), payload, patience, streamed)
        request_id = request_id_in(headers)
        body: Any = streamed.unreadable or streamed.body if streamed is not None else ""
        if written:
            try:
                body = json.loads(written)
            except ValueError:
                body = written.decode("utf-8", "replace")
        elif isinstance(body, dict) and not body.get("error") and streamed is not None and not streamed.is_complete:
            raise RequestUnanswered(ProviderFault("the answer broke off in the middle", request_id=request_id))
        if not isinstance(body, dict):
            raise self.unreadable(body, request_id, "the API")
        fault = from_answer(body, request_id)
        if fault is not None:
            raise RequestUnanswered(fault)
        self._is_plain |= streamed is not None and bool(written)
        return body, request_id or str(body.get("id") or "")

    def _lose(self, streamed: StreamedAnswer | None) -> None:
        """Have what there is of an answer taken that broke off."""
        if streamed is not None and (body := streamed.body):
            self._was_reached = True
            self._keep_lost(body)

    @abstractmethod
    def _keep_lost(self, body: Json) -> None:
        """Keep what a reply is known to have used of which no more came: that is paid for, and maybe more."""

    def _silence(self, silences: int) -> float:
        """Return the seconds without a byte after which a request is sent again that was so often before.

        They double each time: a server that is slow to begin is not asked for ever in vain.
        """
        if self._is_plain:
            return LONGEST_SILENCE
        return min(LONGEST_SILENCE, self._provider.first_silence(self.base_url, self._options) * 2.0**silences)

    @property
    def _account(self) -> str:
        """The name of what the provider limits: its server and the key."""
        access = self._access
        return account_name(self._provider.name, access.base_url, access.key, access.token)

    @property
    def _access(self) -> Access:
        return self._provider.access(self._options)

    def _client(self) -> Any:
        """Return the SDK's client, which is made once and lives until :meth:`close`."""
        with self._making:
            self._refuse_when_closed()
            if self._sdk_client is None:
                self.check()
                sdk = importlib.import_module(self._provider.sdk)
                self._sdk_client = self._provider.make_client(sdk, self._access)
            return self._sdk_client

    def close(self) -> None:
        """Close all connections to the provider, for good; a request of another thread fails and is not sent again."""
        with self._making:
            self._closed.set()
            if self._sdk_client is not None:
                self._sdk_client.close()

    def _wait(self, seconds: float, cause: WaitCause) -> None:
        """Pause for a cause that the turn is not to blame for."""
        with waiting_of_turn().pausing(seconds, cause):
            self._pause(seconds)

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


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # Its parent is not there.
        return False


def _package_of(module: str) -> str:
    return {"google.genai": "google-genai", "google.auth": "google-auth"}.get(module, module)


def _sendable(value: Any) -> Any:
    """Return a JSON value without lone surrogates in its texts: the SDKs fail to encode them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: _sendable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(each) for each in value]
    return value
