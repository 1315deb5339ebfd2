"""The agent ``nop``, which does nothing: its score is that of an untouched workspace."""

from __future__ import annotations

from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript


class NopAgent:
    """Leaves the workspace as it is."""

    name = "nop"
    deterministic = True
    takes_conversations = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return RoundTranscript()
