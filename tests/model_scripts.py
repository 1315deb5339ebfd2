"""What a model of the tests says: the parts of its replies, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Say:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning, which the server signs, and which a client has to send back as it came."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """A call of a tool; arguments that are text go out as they are, be they JSON or not."""

    tool: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class Run:
    """A call of whichever of the tools that are offered runs commands in a shell."""

    command: str


@dataclass(frozen=True, slots=True)
class CutOff:
    """The reply ends at the limit of completion tokens."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the reply counts. ``prompt`` is all that was sent; the cache gave ``cached`` of it and took ``written``."""

    prompt: int
    completion: int
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """An error in the provider's form; what is left out is what the provider says for that status."""

    status: int
    message: str = ""
    code: str | None = None
    """OpenAI's ``code``."""
    param: str | None = None
    """OpenAI's ``param``."""
    headers: dict[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body of no provider's form, sent as they are."""

    body: str
    status: int = 200
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds until the rest of the reply is sent."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Trickle:
    """Blanks before the rest of the reply, one each tenth of a second, as some providers keep a connection open."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection ends without an answer."""


@dataclass(frozen=True, slots=True)
class BreakOff:
    """In the middle of its stream a reply pauses for so many seconds, and its connection ends."""

    pause: float = 0.0


Part = Say | Think | Use | Run | CutOff | Tokens | Fail | Answer | Delay | Trickle | HangUp | BreakOff
Step = Part | Sequence[Part]


@dataclass(slots=True)
class Asked:
    """One request to the model, as it came and as it reads, whatever the API."""

    path: str
    api: str
    """``chat``, ``responses`` or ``messages``."""
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    system: str = ""
    said: list[str] = field(default_factory=list)
    """What the user says, each message or block of it."""
    results: dict[str, str] = field(default_factory=dict)
    """What tools gave, by the id of the call, in order."""
    calls: dict[str, str] = field(default_factory=dict)
    """The calls that the model made, by id: the tool's name."""
    compacts: bool = False
    """Whether it asks for what is to stand for the conversation, and for no reply."""
    summary: str = ""
    """What the summary says that stands for the beginning of the conversation."""
    replies: int = 0
    """How often the model has spoken."""
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The JSON Schemas of what it may call."""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def last_result(self) -> str:
        """What the last tool gave; empty where none was called."""
        return next(reversed(self.results.values()), "")


#: A list says what the first request gets, what the second gets, and so on; a function looks at the conversation.
Script = Sequence[Step] | Callable[[Asked], Step]

_SHELLS = (
    *("bash", "Bash", "shell_command", "exec_command", "shell", "run_shell_command"),
    *("terminal", "execute_bash", "developer__shell", "run_commands"),
)


def _any_value(schema: dict[str, Any]) -> Any:
    """A value that a JSON Schema allows."""
    given: dict[Any, Any] = {"boolean": False, "integer": 60, "number": 60, "array": [], "object": {}}
    kind = schema.get("type")
    if "null" in (kind or [each.get("type") for each in schema.get("anyOf", ())]):
        return None
    return schema["enum"][0] if schema.get("enum") else given.get(kind if isinstance(kind, str) else "", "as told")


def has_shell(asked: Asked) -> bool:
    """Whether one of the offered tools runs commands; requests beside the conversation, as for a title, have none."""
    return not set(_SHELLS).isdisjoint(asked.tools)


def shell_call(asked: Asked, command: str) -> Use:
    """The call by which one of the offered tools runs a command."""
    for name in _SHELLS:
        if name not in asked.tools:
            continue
        properties: dict[str, Any] = asked.tools[name].get("properties", {})
        argument = next((each for each in ("cmd", "commands") if each in properties), "command")
        in_words = properties.get(argument, {}).get("type") == "array"
        words = [command] if argument == "commands" else ["bash", "-lc", command]
        arguments: dict[str, Any] = {argument: words if in_words else command}
        for required in asked.tools[name].get("required", ()):  # Such as a description, or how risky it is.
            arguments.setdefault(required, _any_value(properties.get(required, {})))
        return Use(name, arguments)
    raise LookupError(f"none of {sorted(asked.tools)} runs commands")
