"""An agent of a third party, in thirty lines: it does what the instruction's last line says, as a shell would."""

from __future__ import annotations

from typing import Any

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action


class Somebodys:
    """Made with the options of the command line; one object per attempt, so ``done`` is its memory."""

    name = "somebodys"

    def __init__(self, model: str = "small", *, effort: str = "low") -> None:
        self.model, self.effort = model, effort
        self.done: list[str] = []

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Record what is said and done: it is on disk at once, counts against budgets, and can be replayed."""
        context.recorder.say("user", context.instruction)
        command = context.instruction.strip().splitlines()[-1]
        call = ToolCall(tool_call_id=f"call-{len(self.done)}", function_name="bash", arguments={"command": command})
        context.recorder.reply(f"I remember {len(self.done)} requests.", [call])
        result = context.environment.exec(command, user=context.round.agent_user, timeout=context.timeout)
        context.recorder.observe(call.tool_call_id, result.output, Action(result.exit_code, result.seconds))
        self.done.append(command)
        return RoundTranscript(timed_out=result.timed_out, output=result.output)

    def save_state(self) -> Any:
        """With these two, ``--evocode-resume`` goes on where a killed session was."""
        return self.done

    def load_state(self, state: Any) -> None:
        """Take back what :meth:`save_state` gave."""
        self.done = state
