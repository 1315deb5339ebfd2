"""An agent that says and runs what a script has, so that example trajectories are of things that really happened.

A script is a TOML file with a table for each turn, ``[[round-1]]`` and so on for each round: what the agent ``says``,
and the commands that it ``runs``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall
from pytest_evocode.trajectories.recorder import Action

EXAMPLES = Path(__file__).parents[2] / "example_tasks"


@dataclass(frozen=True)
class Turn:
    """One message of the agent with the commands that it calls for."""

    says: str
    runs: tuple[str, ...] = ()


def read_script(path: Path) -> dict[str, tuple[Turn, ...]]:
    """The turns of each round."""
    script = tomllib.loads(path.read_text(encoding="utf-8"))
    return {round_: tuple(map(_turn, turns)) for round_, turns in script.items()}


def _turn(turn: dict[str, object]) -> Turn:
    says, runs = turn.pop("says"), turn.pop("runs", [])
    if turn or not isinstance(says, str) or not isinstance(runs, list):
        raise ValueError(f"a turn says a text and runs a list of commands, and nothing else: {turn or says or runs}")
    return Turn(says, tuple(command.strip("\n") for command in runs))


def example_scripts() -> list[Path]:
    """The scripts of all example tasks: ``example_tasks/TASK/recorded/NAME.toml``."""
    return sorted(EXAMPLES.glob("*/recorded/*.toml"))


class ScriptedAgent:
    """Plays a script: ``--evocode-agent=tests.process.scripted:ScriptedAgent --evocode-agent-option script=PATH``."""

    def __init__(self, script: Path | str) -> None:
        self._script = read_script(Path(script))
        self.name = Path(script).stem

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.Agent`."""
        recorder = context.recorder
        recorder.agent = AgentInfo(name=self.name, version="1")
        recorder.say("user", context.instruction)
        made = 0
        for turn in self._script[context.round.name]:
            calls = [
                ToolCall(tool_call_id=f"call-{number}", function_name="bash", arguments={"command": command})
                for number, command in enumerate(turn.runs, start=made + 1)
            ]
            made += len(calls)
            recorder.reply(turn.says, calls)
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
