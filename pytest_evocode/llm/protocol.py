"""The protocol between agents and model clients: messages, tools, replies, independent of any provider's format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pytest_evocode.llm.token_ids import TokenFacts
from pytest_evocode.results.records import Usage

Ending = Literal["done", "calls", "length", "context", "refused", "filtered", "paused", "unknown"]
"""Why a reply ended: the model is done; it calls tools; at the limit of completion tokens, or at that of the
conversation; it refuses to answer, or a filter of the provider's ended it; the provider wants to be asked to go on; the
provider does not say, or says what nobody knows.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call; ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]

    @property
    def definition(self) -> dict[str, Any]:
        """The tool in the format of OpenAI's function calling."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call that a model asks for; ``arguments`` is None where the model wrote no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    written: str = ""
    """The arguments as the model wrote them."""
    wrong: str = ""
    """What is wrong with the call, where that is known before it is run."""

    @property
    def arguments_text(self) -> str:
        """The arguments as text, in JSON unless the model wrote something else."""
        return json.dumps(self.arguments) if self.arguments is not None else self.written


@dataclass(frozen=True, slots=True)
class ShownImage:
    """An image that a model is shown."""

    media_type: str
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``."""
    data: str
    """Its bytes, in base64."""

    @property
    def url(self) -> str:
        """The image as an address that has all of it."""
        return f"data:{self.media_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, made of JSON values.

    The ``system`` message comes once, first. An ``assistant`` message is an earlier :class:`Reply`; a ``tool`` message
    has the result of the call ``call_id``.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    call_id: str = ""
    native: Any = None
    """The assistant's message in the provider's format, which is sent back unchanged (it may have signed reasoning)."""
    is_nudge: bool = False
    """Whether a user's message is no request: the agent's own making, or the answer to a question."""
    images: tuple[ShownImage, ...] = ()
    """What a tool's result shows beside its text."""
    is_compacted: bool = False
    """Whether an assistant's message is none, but what the provider made of earlier messages to make room."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer to a conversation."""

    text: str
    calls: tuple[RequestedCall, ...] = ()
    reasoning: str = ""
    """The model's reasoning as far as the provider shows it."""
    native: Any = None
    """See :class:`Message`."""
    usage: Usage = field(default_factory=Usage)
    request_id: str = ""
    ending: Ending = "unknown"
    """Why the reply ended, in one word for all providers."""
    stop_reason: str = ""
    """The same in the provider's own word; empty where it does not say."""
    model: str = ""
    """The model that answered, as the provider calls it; empty where it does not say."""
    remarks: dict[str, Any] = field(default_factory=dict)
    """What else the provider says of the request, for the trajectory."""
    tokens: TokenFacts = field(default_factory=TokenFacts)
    """The tokens that the server read and wrote, where it says them."""

    @property
    def cut_off(self) -> bool:
        """Whether the reply ended at the limit of completion tokens."""
        return self.ending == "length"

    @property
    def refused(self) -> bool:
        """Whether the model refuses to answer, or a filter of the provider's ended the reply."""
        return self.ending in ("refused", "filtered")

    @property
    def message(self) -> Message:
        """The reply as a message of the conversation."""
        return Message("assistant", self.text, calls=self.calls, native=self.native)


class ModelClient(Protocol):
    """A client of one model.

    One may have ``answered_by``, ``probe``, ``take_lost``, ``check_compaction`` and ``compact`` as well, see
    :class:`~pytest_evocode.llm.base_client.BaseClient`.
    """

    model: str
    """Its name at the provider."""
    context_tokens: int | None
    """Longest conversation in tokens; None where unknown."""
    knows_price: bool
    """Whether the usage of replies has their cost."""

    def check(self) -> None:
        """Raise UsageError when a key or a package is missing; sends no request."""

    def prepare(self) -> None:
        """Do what takes time before the first request, such as imports; called while no turn's clock runs."""

    def close(self) -> None:
        """Close the connections to the provider, for good; whoever made the client calls it.

        A request that another thread still waits for fails.
        """

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """Return the model's next message; a request that failed is sent again where that may help.

        Args:
            conversation: All messages so far.
            tools: What the model may call.
            timeout: Seconds; None for no limit.

        Raises:
            ContextOverflow: The conversation is longer than the model takes.
            TimeoutError: The seconds are over.
            AgentFault: The provider refuses the request, in its own words.
            ModelFault: It does not answer, refuses the key or does not know the model.
        """


def tagged(api: str, native: Any) -> dict[str, Any]:
    """Mark a message in the provider's own format with its API, for :attr:`Reply.native`."""
    return {"api": api, "message": native}


def native_of(message: Message, api: str) -> Any:
    """Return the message that :func:`tagged` was given for this API; None where there is none."""
    native = message.native
    return native.get("message") if isinstance(native, dict) and native.get("api") == api else None


def signed_calls(native: Any, text: str) -> dict[str, Any] | None:
    """Return a reply without its reasoning, and with another text, where its API signs calls; else None.

    Gemini refuses calls without the signatures that it gave them, and so does what passes its models on in the form of
    Chat Completions. The calls of other APIs need none.
    """
    message = native.get("message") if isinstance(native, Mapping) else None
    if not isinstance(native, Mapping) or not isinstance(message, Mapping):
        return None
    if native.get("api") == "gemini":
        calls = [part for part in message.get("parts", ()) if part.get("functionCall")]
        return tagged("gemini", {**message, "parts": [*([{"text": text}] if text else []), *calls]}) if calls else None
    if native.get("api") == "chat" and message.get("tool_calls"):
        return tagged("chat", {"role": "assistant", "content": text or None, "tool_calls": message["tool_calls"]})
    return None
