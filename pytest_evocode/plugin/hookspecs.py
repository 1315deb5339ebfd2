"""Hooks of pytest-evocode, for conftest.py files and other plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_evocode.agents import Agent


@pytest.hookspec(firstresult=True)
def pytest_evocode_make_agent(config: pytest.Config, name: str, options: dict[str, Any]) -> Agent | None:
    """Make the agent that ``--evocode-agent=NAME`` asks for, before any built-in one of that name.

    ``options`` are those of the command line, of the ini file and, where NAME is declared in the project's
    ``pyproject.toml``, of its table there, whose ``spec`` is then the ``name`` here; values may be texts.

    Called in the process that runs the attempt, once per attempt, and once with every name when the session starts, to
    refuse an unknown one before anything is built; so making an agent has to be cheap and start nothing.

    Return a new object that follows :class:`pytest_evocode.agents.Agent`, or None for a name that is not yours. Stops
    at the first result. A UsageError raised here ends the session with its message.

    .. versionadded:: 0.1
    """
