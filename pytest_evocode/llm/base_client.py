"""The base class of the model clients."""

from __future__ import annotations

from typing import Any

from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts


class BaseClient:
    """All of a :class:`~pytest_evocode.llm.protocol.ModelClient` but ``complete``."""

    def __init__(
        self, connection: ProviderConnection, model: str, options: ModelOptions, facts: ModelFacts | None
    ) -> None:
        self.model = model
        self.context_tokens = options.context_tokens or (facts.context_tokens if facts else None)
        self.knows_price = facts is not None
        self._connection, self._options, self._facts = connection, options, facts

    def check(self) -> None:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`."""
        self._connection.check()

    def prepare(self) -> None:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`; importing the SDK takes a second."""
        self._connection.prepare(self._resource)

    def close(self) -> None:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`."""
        self._connection.close()

    def _resource(self, sdk: Any) -> Any:
        """Return the part of the SDK's client whose ``create`` sends a request."""
        raise NotImplementedError
