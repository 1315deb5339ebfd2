"""Exchanges: one request of a program with its answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from pytest_evocode.gateway.events import answer_in, json_of
from pytest_evocode.llm.usage import Api
from pytest_evocode.results.records import Usage

#: Longer texts are left out of records: no request that a provider takes is as long.
_LONGEST = 64 * 2**20  # characters


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A request that the provider did not answer, and that was sent again, or given up."""

    words: str
    status: int | None
    seconds: float
    """How long it took to fail."""
    waited: float
    """Seconds until it was sent again; 0 where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request as the program sends it, and the provider's answer; keys and tokens are taken out of the texts."""

    number: int
    """Counts from 1 in a session."""
    api: Api | None
    """None for a request to no model, which is not metered."""
    method: str
    path: str
    """With the family before it."""
    began: str
    """Time in ISO 8601."""
    seconds: float
    """From the request to the end of the answer, tries and waits included."""
    first_byte: float | None = None
    """Seconds from the last try to the first byte of its answer."""
    status: int | None = None
    """Status of the answer; None where the program has got none."""
    streamed: bool = False
    complete: bool = True
    """Whether the answer came to its end."""
    replayed: bool = False
    """Whether the answer is one that an earlier session has paid for."""
    tries: tuple[FailedTry, ...] = ()
    usage: Usage | None = None
    """None for what costs nothing."""
    model: str = ""
    """The model that answered, or else the one that was asked."""
    request_id: str = ""
    """The provider's."""
    notes: tuple[str, ...] = ()
    """What is odd: contradictions in the usage, texts that are left out."""
    request: str = ""
    response: str = ""
    likeness: str = ""
    """Tells the request from others where it is left out; see :func:`pytest_evocode.gateway.replies.likeness`."""

    def asked(self) -> Any:
        """Return the JSON value of the request, or its text."""
        return json_of(self.request.encode())

    def body(self) -> dict[str, Any] | None:
        """Return the answer as the API gives it without streaming; None where there is none in its form."""
        if self.api is None or self.status != 200:
            return None
        found = answer_in(self.api, self.response.encode(), streamed=self.streamed)
        return found if found and isinstance(found, dict) else None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, without what is as always."""
        told = {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }
        if self.usage is not None:
            told["usage"] = self.usage.model_dump(exclude_none=True)
        if self.tries:
            told["tries"] = [asdict(each) for each in self.tries]
        return told

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Exchange:
        """Return what :meth:`as_json` was called of."""
        known = {each.name for each in fields(cls)}
        given = {name: value for name, value in told.items() if name in known}
        given["usage"] = None if told.get("usage") is None else Usage.model_validate(told["usage"])
        given["tries"] = tuple(FailedTry(**each) for each in told.get("tries", ()))
        given["notes"] = tuple(told.get("notes", ()))
        return cls(**given)


def bounded(exchange: Exchange) -> Exchange:
    """Return an exchange without texts that are too long to be kept."""
    if len(exchange.request) > _LONGEST:
        exchange = replace(exchange, request="", notes=(*exchange.notes, "the request is too long to be kept"))
    if len(exchange.response) > _LONGEST:
        exchange = replace(exchange, response="", notes=(*exchange.notes, "the response is too long to be kept"))
    return exchange
