"""Agents: the protocol and the way from a name on the command line to an object."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from pytest_evocode.agents.base import Agent, ResumableAgent, RoundContext, RoundTranscript, declared_secrets
from pytest_evocode.agents.nop import NopAgent
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.errors import UsageError

#: Built-in agents by the name that ``--evocode-agent`` takes.
AGENTS: dict[str, Callable[[], Agent]] = {"oracle": OracleAgent, "nop": NopAgent}


def make_agent(name: str) -> Agent:
    """A new built-in agent for one attempt; raises :class:`~pytest_evocode.errors.UsageError` for an unknown one."""
    if name not in AGENTS:
        raise UsageError(unknown_agent(name))
    return AGENTS[name]()


def unknown_agent(name: str) -> str:
    """What to tell who asked for an agent that there is not."""
    nearest = difflib.get_close_matches(name, AGENTS, n=1)
    hint = f" did you mean {nearest[0]!r}?" if nearest else ""
    return f"unknown agent {name!r};{hint} known are {', '.join(AGENTS)}"


__all__ = [
    "AGENTS",
    "Agent",
    "ResumableAgent",
    "RoundContext",
    "RoundTranscript",
    "declared_secrets",
    "make_agent",
    "unknown_agent",
]
