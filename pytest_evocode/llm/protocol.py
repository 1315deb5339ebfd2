"""What an agent says to a model and hears from it, whatever the provider's own form is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pytest_evocode.results.records import Usage


@dataclass(frozen=True, slots=True)
class Tool:
    """What the model may call; ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One call of a tool. ``arguments`` is None where what the model wrote is no JSON object: see ``written``."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    written: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation, made of what JSON has a form for.

    ``system`` comes once, first. An ``assistant`` message is a :class:`Reply` as it was; a ``tool`` message answers the
    call of that id.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    call_id: str = ""
    native: Any = None
    """For an assistant: the provider's own form of it, which its client sends back unchanged (signed reasoning)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said to a conversation."""

    text: str
    calls: tuple[RequestedCall, ...] = ()
    reasoning: str = ""
    """As far as the provider shows it."""
    native: Any = None
    """See :class:`Message`."""
    usage: Usage = field(default_factory=Usage)
    request_id: str = ""
    cut_off: bool = False
    """Whether the model was ended by its own limit of completion tokens."""

    @property
    def message(self) -> Message:
        """The reply as an entry of the conversation."""
        return Message("assistant", self.text, calls=self.calls, native=self.native)


class ModelClient(Protocol):
    """Speaks to one model."""

    model: str
    """As the provider calls it."""
    context_tokens: int | None
    """How many tokens a conversation may have; None where that is not known."""
    knows_price: bool
    """Whether replies say what they cost."""

    def check(self) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` when a key or a package is missing; asks nobody."""

    def prepare(self) -> None:
        """Do what takes time before the first request, such as importing a package, while no turn's clock runs."""

    def close(self) -> None:
        """Close the connections to the provider, for good; whoever made the client calls it.

        A request that another thread still waits for fails.
        """

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """The model's next message, within so many seconds.

        Tries again where that can help. Raises :class:`ContextOverflow`; ``TimeoutError`` when the seconds are over;
        :class:`~pytest_evocode.errors.AgentFault` with the provider's words when the provider does not answer, refuses
        the key or does not know the model.
        """
