"""What the clients of all APIs share."""

from __future__ import annotations

from typing import Any

from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts


class BaseClient:
    """A :class:`~pytest_evocode.llm.protocol.ModelClient` without its ``complete``."""

    def __init__(
        self, connection: ProviderConnection, model: str, options: ModelOptions, facts: ModelFacts | None
    ) -> None:
        self.model = model
        self.context_tokens = options.context_tokens or (facts.context_tokens if facts else None)
        self.knows_price = facts is not None
        self._connection, self._options, self._facts = connection, options, facts

    def check(self) -> None:
        """Raise :class:`~pytest_evocode.errors.UsageError` when a key or a package is missing; asks nobody."""
        self._connection.check()

    def prepare(self) -> None:
        """Import the SDK and make its client, which takes a second."""
        self._connection.prepare(self._resource)

    def close(self) -> None:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`."""
        self._connection.close()

    def _resource(self, sdk: Any) -> Any:
        """The part of the SDK's client that is asked."""
        raise NotImplementedError
