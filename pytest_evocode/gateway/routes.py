"""Where the requests of a session go: the real server, the real key, and how long a request is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts, find_model_facts
from pytest_evocode.llm.providers import PROVIDERS, account_name
from pytest_evocode.llm.token_ids import TokenServer

Family = Literal["anthropic", "openai", "google"]
"""APIs of one make: Messages; Chat Completions and Responses; generateContent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where requests to the APIs of one family go, and with what."""

    family: Family
    base_url: str | None = None
    """The server's address in the form that the provider's SDK takes; None for the provider's own."""
    key: str = field(default="", repr=False)
    """The real key; empty where the server needs none."""
    bearer: bool = False
    """Whether the key goes into ``Authorization`` where the family has a header of its own."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers, which replace those of the program."""
    options: ModelOptions = field(default_factory=ModelOptions)
    """Of these only how often and how long a request is tried, how many there may be at once, and how long streams may
    be silent."""
    models: Sequence[str] = ()
    """Patterns of models that may be asked, as in a shell; all where there are none."""
    prices: Callable[[str], ModelFacts | None] = find_model_facts
    """Finds the prices of the model that answered."""
    token_ids: TokenServer | None = None
    """The kind of a server that has to say the tokens of each reply, whether the program asks for them or not."""

    @property
    def server(self) -> str:
        """The server's address, without a slash at its end."""
        return (self.base_url or PROVIDERS[self.family].server).rstrip("/")

    @property
    def credentials(self) -> dict[str, str]:
        """The headers that have the key."""
        return PROVIDERS[self.family].credentials(*self._key_and_token)

    @property
    def silence(self) -> float:
        """Seconds without a byte after which a stream counts as broken."""
        return PROVIDERS[self.family].first_silence(self.base_url, self.options)

    def allows(self, model: str) -> bool:
        """Whether a model may be asked."""
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)

    @property
    def account(self) -> str:
        """What the provider limits: its server and the key; clients of the same share one pace."""
        return account_name(self.family, self.base_url, *self._key_and_token)

    @property
    def _key_and_token(self) -> tuple[str, str]:
        return ("", self.key) if self.bearer else (self.key, "")
