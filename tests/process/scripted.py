"""An agent that follows a script, so that the example trajectories show what really happened.

A script is a TOML file with one table for each message of the agent, ``[[round-1]]`` and so on for each round: what the
agent ``says``, and the commands that it ``runs``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall
from pytest_evocode.trajectories.recorder import Action

EXAMPLES = Path(__file__).parents[2] / "example_tasks" / "process"


@dataclass(frozen=True)
class ScriptedReply:
    """One message of the agent with the commands that it calls for."""

    says: str
    runs: tuple[str, ...] = ()


def read_script(path: Path) -> dict[str, tuple[ScriptedReply, ...]]:
    """Return the messages of each round."""
    script = tomllib.loads(path.read_text(encoding="utf-8"))
    return {round_: tuple(map(_reply, replies)) for round_, replies in script.items()}


def _reply(reply: dict[str, object]) -> ScriptedReply:
    says, runs = reply.pop("says"), reply.pop("runs", [])
    if reply or not isinstance(says, str) or not isinstance(runs, list):
        raise ValueError(f"a reply says a text and runs a list of commands, and nothing else: {reply or says or runs}")
    return ScriptedReply(says, tuple(command.strip("\n") for command in runs))


def example_scripts() -> list[Path]:
    """Return the scripts of all example tasks: ``example_tasks/process/TASK/recorded/NAME.toml``."""
    return sorted(EXAMPLES.glob("*/recorded/*.toml"))


class ScriptedAgent:
    """Plays a script: ``--evocode-agent=tests.process.scripted:ScriptedAgent --evocode-agent-option script=PATH``."""

    def __init__(self, script: Path | str) -> None:
        self._script = read_script(Path(script))
        self.name = Path(script).stem

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Say and run what the script has for the round."""
        recorder = context.recorder
        recorder.agent = AgentInfo(name=self.name, version="1")
        recorder.say("user", context.instruction)
        made = 0
        for reply in self._script[context.round.name]:
            calls = [
                ToolCall(tool_call_id=f"call-{number}", function_name="bash", arguments={"command": command})
                for number, command in enumerate(reply.runs, start=made + 1)
            ]
            made += len(calls)
            recorder.reply(reply.says, calls)
            for call in calls:
                self.act(context, call)
        return RoundTranscript()

    def act(self, context: RoundContext, call: ToolCall) -> None:
        """Run one command."""
        result = context.environment.exec(
            call.arguments["command"], user=context.round.agent_user, timeout=context.timeout
        )
        action = Action(result.exit_code, result.seconds, result.timed_out)
        context.recorder.observe(call.tool_call_id, result.output, action)
