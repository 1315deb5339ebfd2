"""Agents, which edit the workspace: their protocol, the built-in ones, and how a name becomes an agent."""

from __future__ import annotations

from pytest_evocode.agents.protocol import (
    Agent,
    CheckedAgent,
    ClosableAgent,
    PreparedAgent,
    ResumableAgent,
    RoundContext,
    RoundTranscript,
    SelectiveAgent,
    check_task,
    close_agent,
    declared_secrets,
    installation_of,
    is_deterministic,
    is_interactive,
)
from pytest_evocode.agents.specs import make_agent

__all__ = [
    "Agent",
    "CheckedAgent",
    "ClosableAgent",
    "PreparedAgent",
    "ResumableAgent",
    "RoundContext",
    "RoundTranscript",
    "SelectiveAgent",
    "check_task",
    "close_agent",
    "declared_secrets",
    "installation_of",
    "is_deterministic",
    "is_interactive",
    "make_agent",
]
