"""The base class of the model clients, and parts of messages that all APIs have."""

from __future__ import annotations

import hashlib
import json
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from pytest_evocode.errors import RequestRefused, UsageError
from pytest_evocode.llm.connection import Json, ProviderConnection
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts, window_of
from pytest_evocode.llm.protocol import Message, Reply, Tool
from pytest_evocode.llm.provider_errors import ProviderFault
from pytest_evocode.llm.providers import Provider
from pytest_evocode.llm.streams import StreamedAnswer
from pytest_evocode.llm.usage import Api, counted_answer, lower_bound
from pytest_evocode.llm.waiting import waiting_of_turn
from pytest_evocode.results.records import Usage, total_usage


class BaseClient(ProviderConnection):
    """A :class:`~pytest_evocode.llm.protocol.ModelClient` without the format of an API."""

    _form: ClassVar[str]
    """What messages call that format."""
    _api: ClassVar[Api]
    """What it is called where tokens are counted."""
    _streamed: ClassVar[type[StreamedAnswer]]
    """What puts a streamed answer in that format together."""
    _streams = True
    """Whether the server takes requests for streams, as far as is known."""

    def __init__(self, provider: Provider, model: str, options: ModelOptions, facts: ModelFacts | None) -> None:
        super().__init__(provider, model, options)
        self.context_tokens = options.context_tokens or (facts.context_tokens if facts else None) or window_of(model)
        self.knows_price = facts is not None or self.reports_cost
        self._facts = facts
        self._lost: list[Usage] = []

    def prepare(self) -> None:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`; importing the SDK takes a second."""
        self._resource(self._client())

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`."""

        def request() -> tuple[Json, Json]:
            payload, options = self._request(conversation, tools)
            return payload, options | self._extra_body

        return self._ask(request, self._resource, self.reply, timeout, streams=True)

    def take_lost(self) -> Usage | None:
        """Return what replies that broke off are known to have used since the last call; None where none did."""
        lost, self._lost = self._lost, []
        return total_usage(lost)

    def _keep_lost(self, body: Json) -> None:
        counted = counted_answer(self._api, body.get("usage") or body.get("usageMetadata"), self._facts)
        self._lost.append(lower_bound(counted.usage, self._facts))

    def check_compaction(self) -> None:
        """Raise UsageError where the API, the server or the model cannot shorten a conversation by itself."""
        raise UsageError(f"{self._form} has no compaction of its own")

    def compact(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """Have the provider make of a conversation what stands for it in later requests.

        Args:
            conversation: The system prompt, and what is to be made shorter; all its calls are answered.
            tools: What the model may call.
            timeout: Seconds; None for no limit.

        Returns:
            In ``native`` what stands for the messages, or None where the provider made nothing, and in ``text`` the
            summary as far as it can be read.

        Raises:
            ContextOverflow: It is longer than the model takes.
            TimeoutError: The seconds are over.
            AgentFault: The provider refuses the request, in its own words.
            ModelFault: It does not answer.
        """
        raise NotImplementedError

    def _ask(
        self,
        request: Callable[[], tuple[Json, Json]],
        resource: Callable[[Any], Any],
        reply: Callable[[Json], Reply],
        timeout: float | None,
        *,
        streams: bool = False,
    ) -> Reply:
        """Send what ``request`` returns, again as long as :meth:`_do_without` helps, and read it by ``reply``."""

        def streamed() -> StreamedAnswer | None:
            return self._streamed() if streams and self._streams else None

        waiting = waiting_of_turn()
        ends = None if timeout is None else time.monotonic() + timeout - waiting.seconds
        was_repeated = False
        while True:
            payload, options = request()
            self._add_headers(payload)
            left = None if ends is None else ends + waiting.seconds - time.monotonic()
            try:
                return self.post(resource, payload, options, left, partial(self.read, reply), streamed)
            except RequestRefused as refused:
                fault = refused.fault
                if self._do_without(fault) or (streams and self._do_without_stream(fault)):
                    continue
                if was_repeated or not fault.may_be_chance or fault.kind == "overflow":
                    raise self.explain(fault) from None
                was_repeated = True
                self.wait_after(fault)

    def _do_without_stream(self, fault: ProviderFault) -> bool:
        """Whether the server may answer a request that asks for no stream, which all later ones do not, either."""
        named = "stream" in f"{fault.param} {fault.words}".lower()
        refused = self._streams and named and fault.status in (400, 403, 404, 405, 422)
        self._streams &= not refused
        return refused

    @property
    def _extra_body(self) -> Json:
        """The fields that the user gives to a request."""
        return self._options.extra_body or {}

    def _add_headers(self, payload: Json) -> None:
        """Add the headers that the user gives to a request."""
        headers: dict[str, str] = payload.get("extra_headers", {})
        for name, value in self._options.headers().items():
            # A list of beta features, which is ours too.
            before = headers.get(name.lower()) if name.lower() == "anthropic-beta" else None
            headers = headers | ({name.lower(): f"{before},{value}"} if before else {name: value})
        if headers:
            payload["extra_headers"] = headers

    @abstractmethod
    def _resource(self, sdk: Any) -> Any:
        """Return the part of the SDK's client whose ``create`` sends a request."""

    @abstractmethod
    def _request(self, conversation: Sequence[Message], tools: Sequence[Tool]) -> tuple[Json, Json]:
        """Return the arguments of ``create``, and further fields of the body, None for those that are not sent."""

    def _do_without(self, fault: ProviderFault) -> bool:
        """Whether the request is worth sending again without what was refused, which is left out from now on."""
        return False

    def read(self, reply: Callable[[Json], Reply], body: Json, request_id: str) -> Reply:
        """Read an answer by ``reply``, and what it used; raises RequestUnanswered where it is in another form."""
        try:
            found = reply(body)
            counted = counted_answer(self._api, body.get("usage") or body.get("usageMetadata"), self._facts)
        except (LookupError, TypeError, AttributeError, ValueError):  # A field is there and is something else.
            raise self.unreadable(body, request_id, self._form) from None
        named = request_id or found.request_id
        return replace(found, usage=counted.usage, request_id=named, remarks=found.remarks | counted.remarks)

    @abstractmethod
    def reply(self, body: Json) -> Reply:
        """Return the reply in an answer, without what it used; raises such as TypeError where it is in another form."""


def listed(value: Any) -> list[Any]:
    """Return a list as it is; raises TypeError for what is none."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.100} is no list")
    return value


def without_open_end(items: list[dict[str, Any]], kinds: Collection[str]) -> list[dict[str, Any]]:
    """Return the items without those at the end whose ``type`` is one of ``kinds``.

    A reply that was cut off while the model reasoned ends with reasoning, which APIs refuse to see again.
    """
    last = max((number for number, item in enumerate(items) if item.get("type") not in kinds), default=-1)
    return items[: last + 1]


_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def name_taken(name: str, longest: int = 64) -> str:
    """Return the name of a tool as providers take it back: models call tools by all kinds of names.

    >>> name_taken("bash"), name_taken("functions.bash:0"), name_taken("")
    ('bash', 'functions_bash_0', 'tool')
    """
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "tool"


def id_taken(id: str, longest: int = 64) -> str:
    """Return the id of a call as providers take it back, for the call and for its result.

    >>> id_taken("call_1"), id_taken("functions.bash:0")
    ('call_1', 'functions_bash_0_8497fe9c')
    """
    if id and len(id) <= longest and not _NOT_IN_NAMES.search(id):
        return id
    mark = hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:8]  # Others may look the same afterwards.
    return f"{_NOT_IN_NAMES.sub('_', id)[: longest - 9]}_{mark}"


def arguments_of(given: Any) -> tuple[dict[str, Any] | None, str]:
    """Return a call's arguments, None where they are no JSON object, and the text that the model wrote.

    >>> arguments_of('{"command": "ls"}'), arguments_of('{"command": '), arguments_of("")
    (({'command': 'ls'}, '{"command": "ls"}'), (None, '{"command": '), ({}, ''))
    """
    if isinstance(given, dict):
        return given, json.dumps(given)
    written = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    try:
        arguments = json.loads(written or "{}")
    except ValueError:
        arguments = None
    return (arguments if isinstance(arguments, dict) else None), written
