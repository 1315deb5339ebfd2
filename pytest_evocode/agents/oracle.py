"""The agents that need no model: ``oracle`` runs the author's reference solution, and ``nop`` does nothing."""

from __future__ import annotations

from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.errors import AgentFault
from pytest_evocode.tasks.text_files import crlf_shown

_SOLUTION = "/solution"


class OracleAgent:
    """Runs the round's ``solve.sh`` from the working directory; ``/solution`` exists only during its turn."""

    name = "oracle"
    deterministic = True
    takes_conversations = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    def __init__(self, *, patience: float = 1.0, readable_stdin: bool = True, in_check: bool = False) -> None:
        """Prepare the agent.

        Args:
            patience: What the limits of its turns are multiplied by, to see how long a solution takes that is too slow.
            readable_stdin: Whether solutions find an empty stdin; reading from it is an error otherwise.
            in_check: Whether a check of the task runs them, to which its messages need not refer.
        """
        self._patience = patience
        self._silence = "(no output)" if in_check else "(no output; pytest --evocode-check TASK -k oracle says more)"
        self._redirected = "" if readable_stdin else " 0>/dev/null"
        self.seconds = 0.0
        """How long the last solution ran."""

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`; raises AgentFault when ``solve.sh`` fails."""
        round_, environment = context.round, context.environment
        if round_.solution is None:
            raise AgentFault(
                f"{round_.directory / 'solution/solve.sh'}: the oracle runs this file, which does not exist; write it"
            )
        environment.upload([round_.solution], _SOLUTION)
        try:
            # The script removes the solution itself, which saves the removal below a command.
            result = environment.exec(
                f"bash {_SOLUTION}/solve.sh{self._redirected}; status=$?; rm -rf {_SOLUTION}; exit $status",
                user=round_.agent_user,
                env=context.solution_env,
                timeout=None if context.timeout is None else context.timeout * self._patience,
            )
        finally:
            environment.remove([_SOLUTION])
        self.seconds = result.seconds
        if not result.ok and not result.timed_out:
            raise AgentFault(
                f"{round_.solution / 'solve.sh'}: the reference solution ended with exit code {result.exit_code}"
                f"{crlf_shown(result.output)}; correct it. Its last lines:\n{result.tail() or self._silence}"
            )
        return RoundTranscript(timed_out=result.timed_out, output=result.output)


class NopAgent:
    """Leaves the workspace as it is."""

    name = "nop"
    deterministic = True
    takes_conversations = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return RoundTranscript()
