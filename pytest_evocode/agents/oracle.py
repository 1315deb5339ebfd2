"""The agent that plays the author's reference solution."""

from __future__ import annotations

from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.errors import AgentFault

_SOLUTION = "/solution"
_SHOWN_LINES = 20


class OracleAgent:
    """Runs the round's ``solve.sh`` from the working directory; ``/solution`` exists during its turn only."""

    name = "oracle"

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`; raises AgentFault when ``solve.sh`` fails."""
        round_, environment = context.round, context.environment
        if round_.solution is None:
            raise AgentFault(
                f"{round_.directory / 'solution/solve.sh'}: the oracle plays this file and it does not exist; write it"
            )
        environment.upload([round_.solution], _SOLUTION)
        try:
            # It tidies up by itself, so that the removal below has only to make sure, without another command.
            result = environment.exec(
                f"bash {_SOLUTION}/solve.sh; status=$?; rm -rf {_SOLUTION}; exit $status",
                user=round_.agent_user,
                env=context.solution_env,
                timeout=context.timeout,
            )
        finally:
            environment.remove([_SOLUTION])
        if not result.ok and not result.timed_out:
            tail = "\n".join(result.output.rstrip().splitlines()[-_SHOWN_LINES:]) or "(no output)"
            raise AgentFault(
                f"{round_.solution / 'solve.sh'}: the reference solution ended with exit code {result.exit_code}; "
                f"correct it. Its last lines:\n{tail}"
            )
        return RoundTranscript(timed_out=result.timed_out, output=result.output)
