"""What goes between a client and a fake provider: what the model says, what it costs, and why a request is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tests.model_scripts import Asked, Run, Say, Think, Use

if TYPE_CHECKING:
    from tests.providers.faults import Fault

Json = dict[str, Any]
#: A server-sent event: its name, which most APIs leave empty, and its data.
Event = tuple[str, Json | str]
Kind = Literal["invalid", "authentication", "permission", "not_found", "rate_limit", "server", "overloaded", "context"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply or of many. No token counts twice, but for those of reasoning, which are of the output."""

    uncached: int = 0
    cached: int = 0
    """Of the prompt, what was read from the provider's cache."""
    written: int = 0
    """Of the prompt, what was written to it."""
    output: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.uncached + self.cached + self.written

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.uncached + other.uncached,
            self.cached + other.cached,
            self.written + other.written,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )

    def cost(self, uncached: float, cached: float, written: float, output: float) -> float:
        """US dollars, from US dollars for a million tokens of each kind."""
        paid = self.uncached * uncached + self.cached * cached + self.written * written + self.output * output
        return paid / 1_000_000


#: What a script says for one request; without :class:`Usage` the tokens are counted by the length of the texts.
Step = Say | Think | Use | Run | Usage | Sequence[Say | Think | Use | Run | Usage]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool in a reply."""

    id: str
    tool: str
    arguments: Json

    @property
    def written(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Said:
    """What the model says in one reply, before it has the form of an API."""

    parts: tuple[Say | Think | Call, ...]
    usage: Usage
    """What is billed."""
    reported: Usage | None
    """What the reply says of it."""
    stop: Literal["", "length", "refusal"] = ""
    """Why it ends, where the parts do not tell."""

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Say))

    @property
    def thoughts(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Think))


class Refused(Exception):
    """The provider does not have the model answer; each API has a form and a status for each kind."""

    def __init__(
        self, kind: Kind, message: str = "", *, param: str = "", code: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message or kind)
        self.kind, self.message, self.param, self.code, self.retry_after = kind, message, param, code, retry_after


@dataclass(slots=True)
class Exchange:
    """One request to a model, and what came of it."""

    number: int
    """From 1, in the order in which they came."""
    asked: Asked
    fault: Fault | None = None
    status: int | None = None
    """None where nothing was answered."""
    refused: Refused | None = None
    """The rule that the request breaks, whether or not its fault came first."""
    said: Said | None = None
    billed: Usage | None = None
    delivered: bool = False
    """Whether the whole reply went out, to a client that was still there."""
    over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Shown:
    """A model in lists of models."""

    name: str
    context_tokens: int
    output_tokens: int = 8192


class Api(Protocol):
    """One provider's API: its rules and its forms."""

    name: str

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """The key of a request, None where it has none."""

    def check(self, asked: Asked) -> None:
        """Raise Refused for a request that breaks a published rule; ``asked`` is not read yet."""

    def read(self, asked: Asked) -> None:
        """Fill in the conversation."""

    def streams(self, asked: Asked) -> bool:
        """Whether the reply is to be streamed."""

    def reply(self, asked: Asked, said: Said) -> Json:
        """The reply in one piece."""

    def events(self, asked: Asked, said: Said) -> Iterator[Event]:
        """The reply in pieces."""

    def status(self, refused: Refused) -> int:
        """The HTTP status of an error."""

    def error(self, refused: Refused) -> Json:
        """The body of an error."""

    def error_event(self, refused: Refused, sent: int) -> Event:
        """An error in mid-stream, after so many events."""

    def call_id(self, number: int) -> str:
        """The id of a call, by its number on this server."""

    def models(self, shown: Sequence[Shown]) -> Json:
        """The list of models."""


@dataclass(slots=True)
class Issued:
    """What a server has handed out, and wants to have back as it was."""

    thoughts: dict[str, str] = field(default_factory=dict)
    """By the id of a call what the model thought before it."""


def pieces(text: str, number: int = 3) -> Iterator[str]:
    """A text in up to so many pieces."""
    size = max(1, -(-len(text) // number))
    for begin in range(0, len(text), size):
        yield text[begin : begin + size]


def sign(text: str) -> str:
    """A signature of a text, in Base64."""
    import base64
    import hashlib

    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def text_of(content: Any) -> str:
    """The text in a message's content, which is a text or a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def names(text: str) -> frozenset[str]:
    """Names with blanks between them."""
    return frozenset(text.split())


def unknown(given: Mapping[str, Any], known: Iterable[str]) -> str:
    """The first field that is not known, empty where all are."""
    return next((name for name in given if name not in known), "")


def add_result(asked: Asked, call: str, text: str) -> None:
    """Keep what a tool gave; ids may come again in APIs that allow it."""
    name, times = call, 1
    while name in asked.results:
        times += 1
        name = f"{call} ({times})"
    asked.results[name] = text
