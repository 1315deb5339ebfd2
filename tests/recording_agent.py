"""An agent that takes down what it does: the conftest.py of sessions that are killed in it, or played again.

It imports nothing of the tests, since sessions get a copy of it; what differs between tests is put behind it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pytest_evocode.agents import Agent, RoundContext, RoundTranscript
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action

HERE = Path(__file__).parent
NAME = "recording"
#: What it does in every round; the first is what chance says.
COMMANDS = ("date +%N > chance; echo edited >> log.txt", "cat chance > copy; rm chance", "ls -a")


class Recording:
    """Runs the commands of :data:`COMMANDS`; with a file ``die`` the session dies while the last one runs."""

    name = NAME

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Take the turn."""
        context.recorder.say("user", context.instruction)
        for number, command in enumerate(COMMANDS, 1):
            call = ToolCall(tool_call_id=str(number), function_name="bash", arguments={"command": command})
            usage = Usage(prompt_tokens=1, cached_tokens=0, completion_tokens=1, cost_usd=0.5, requests=1)
            context.recorder.reply(f"Command {number}.", [call], usage=usage)
            if number == len(COMMANDS) and (HERE / "die").exists():
                time.sleep(5)
                os.killpg(0, signal.SIGKILL)
            result = context.environment.exec(command, user=context.round.agent_user)
            context.recorder.observe(call.tool_call_id, result.output, Action(result.exit_code, result.seconds))
        return RoundTranscript()


def pytest_evocode_make_agent(name: str) -> Agent | None:
    """Offer it to ``--evocode-agent``."""
    return Recording() if name == NAME else None
