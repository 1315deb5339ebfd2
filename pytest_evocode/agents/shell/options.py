"""Options of the shell agent."""

from __future__ import annotations

from pydantic import Field

from pytest_evocode.agents.harness import HarnessOptions
from pytest_evocode.llm.options import ModelOptions


class ShellOptions(ModelOptions, HarnessOptions):
    """Those of the model's client and of a harness.

    ``prompt`` replaces the system prompt, ``rules`` are added to it.
    """

    command_timeout: float = Field(default=120.0, gt=0)
    """Seconds that a command has unless the model asks for more."""
    output_limit: int = Field(default=16_000, ge=200)
    """Characters of a command's output that the model sees."""
