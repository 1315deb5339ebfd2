"""The tool of models that are trained on tasks, which sees and says what that of the agent ``shell`` does."""

from __future__ import annotations

from pytest_evocode.agents.shell.conversation import head_and_tail
from pytest_evocode.environments import ExecResult

SECONDS = 120.0
"""For a command; what it has left running is killed with it."""
SHOWN = 16_000
"""Characters of a command's output that the model sees."""


def shown(result: ExecResult) -> str:
    r"""Return what the model sees of a command: its output's beginning and end, and how it ended.

    >>> shown(ExecResult(exit_code=1, output="no\n", timed_out=False, seconds=0.1))
    'no\n[exit code 1]'
    """
    output = head_and_tail(result.output, SHOWN).rstrip("\n")
    ending = f"[killed after {result.seconds:.0f} seconds]" if result.timed_out else f"[exit code {result.exit_code}]"
    return f"{output}\n{ending}" if output else ending
