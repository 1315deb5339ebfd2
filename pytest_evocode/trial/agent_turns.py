"""Runs the agent's part of a round: the workspace is prepared, the agent works, and its turn is ended and recorded."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from pytest_evocode.agents import Agent, ResumableAgent, RoundContext, RoundTranscript
from pytest_evocode.agents.journal import Journal
from pytest_evocode.agents.mcp.servers import servers_of_task
from pytest_evocode.agents.protocol import declared_hosts
from pytest_evocode.environments import Environment
from pytest_evocode.environments.entry_points import ENTRY_POINT_LOG
from pytest_evocode.environments.task_environment import record_services
from pytest_evocode.errors import AgentFault, EvocodeError, ModelFault
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.llm.waiting import Waiting, counted_in
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.phases import Stopwatch
from pytest_evocode.results.records import Fault, TurnRecord
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.tasks import Allowlist, Network, Round, resolve_solution_env
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.text_files import read_instruction
from pytest_evocode.trajectories.atif import AgentInfo, Trajectory
from pytest_evocode.trajectories.recorder import Recorder, trajectory_usage, with_remarks
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges
from pytest_evocode.trial.context import Progress, TrialContext, writing_results

logger = logging.getLogger(__name__)


class AgentTurns:
    """Lets one agent take its turns at the rounds of a task.

    Trajectories and journals are written where the context has a directory; ``spending`` is the attempt's.
    """

    def __init__(self, context: TrialContext, agent: Agent, *, spending: AttemptSpending | None = None) -> None:
        self._context = context
        self._directory = context.directory
        self._agent = agent
        self.spending = spending or AttemptSpending()
        self._journal = Journal()
        self.under_way = False
        """Whether the agent works: an error raised meanwhile that is not one of the package's is the agent's."""
        self.begun = False
        """Whether the agent has had a turn in this session."""
        self.taken: dict[str, Any] = {}
        """What the last turn took, as fields of a record, until a record has it."""
        self.taking = False
        """Whether a round is prepared, or the agent works on it."""
        self._workspace: WorkspaceChanges | None = None
        self._beginning: Any = None
        """What the agent remembers before its first turn, where a round begins a new conversation."""
        self._stage = Progress()
        self.stopwatch = Stopwatch()
        """Measures the phases of the turn that is taken, or was last."""

    @property
    def progress(self) -> Progress:
        """What the attempt is at, and what it has used; any thread may ask."""
        spent = self.spending.spent
        return replace(self._stage, turns=spent.turns, tokens=spent.tokens, cost_usd=spent.cost_usd)

    def fault_of(self, error: BaseException) -> Fault:
        """Return whose fault it is that an attempt ends with an error."""
        broke_down = self.under_way and not isinstance(error, EvocodeError)
        of_agent = isinstance(error, AgentFault) and not isinstance(error, ModelFault)
        return "agent" if broke_down or of_agent else "infrastructure"

    def note_beginning(self) -> None:
        """Note what the agent remembers before its first turn; raises AgentFault where that has no form in JSON."""
        if any(round_.begins_conversation for round_ in self._context.task.rounds):
            self._beginning = memory_of(self._agent)

    def take(
        self, environment: Environment, round_: Round, prepare: Callable[[Environment, Round], None] | None = None
    ) -> TurnRecord:
        """Prepare a round, let the agent work and record its turn.

        Raises Cancelled, TaskError and EnvironmentFault, and whatever the agent and ``prepare`` raise, which prepares a
        round where that is another's to do.
        """
        self._stage = Progress("preparing", round_.index)
        self.stopwatch = Stopwatch()
        self.stopwatch.begin("setup")
        self.taking = True
        try:
            if round_.begins_conversation and isinstance(self._agent, ResumableAgent):
                self._agent.load_state(copy.deepcopy(self._beginning))
            with environment.mendable():
                if not self._is_prepared(round_):
                    (prepare or self._context.task_environment.prepare_round)(environment, round_)
                turn = self.work(environment, round_)
        finally:
            self.taking = False
        self.stopwatch.stop()
        self._stage = Progress("verifying", round_.index)
        return turn

    def _is_prepared(self, round_: Round) -> bool:
        """Return whether the attempt goes on in the middle of a turn at the round."""
        mid_turn = self._context.options.mid_turn
        return mid_turn is not None and mid_turn.index == round_.index

    def settle(self) -> Callable[[], None]:
        """Take what the turn has used as recorded.

        Returned is what to call when its end is recorded as well, so that no later session goes on in the middle of it.
        """
        self.taken = {}
        return self._journal.close

    def work(self, environment: Environment, round_: Round) -> TurnRecord:
        """Let the agent work in a workspace that was prepared, and record its turn."""
        self.stopwatch.begin("bookkeeping")
        self.taken = {}
        recorder = self._recorder(environment, round_)
        self._journal = self._open_journal(round_)
        context = self._round_context(environment, round_, recorder)
        self._stage = Progress("working", round_.index, limit=context.timeout)
        logger.debug("%s, %s: the turn of %s begins", context.task.name, round_.name, self._agent.name)
        environment.allow_network(self._network(round_))
        self.spending.begin_turn(waiting := Waiting(self._context.options.waiting_limit))
        self.under_way = self.begun = True
        try:
            try:
                self.stopwatch.begin("agent")
                with counted_in(waiting):
                    transcript = self._run(context)
            finally:
                seconds = self.taken["agent_seconds"] = self.spending.end_turn()
                self.stopwatch.begin("bookkeeping")
            self.under_way = False
            if transcript.timed_out:
                logger.info("%s, %s: out of time after %.1f s", context.task.name, round_.name, seconds)
                environment.kill_processes()
                self._context.task_environment.enter_again(environment)
                if self.spending.seconds_left == 0:
                    transcript = replace(transcript, timed_out=False, stopped=self.spending.exhausted)
                    recorder.remarks["killed"] = True
            recorder.end(timed_out=transcript.timed_out, stopped=transcript.stopped)
            notes = self._context.task_environment.collect(environment, round_)
        finally:
            recorder.close()
            self.taken |= {"usage": recorder.usage, "provider_waits": waiting.waits}
            self.taken["denied"] = environment.take_denied("agent")
            if not recorder.empty:
                self._write(round_, recorder.trajectory())
            self._write_beside(environment, round_)
        return self._ended(round_, transcript, recorder).model_copy(update={"notes": notes})

    def _run(self, context: RoundContext) -> RoundTranscript:
        """Let the agent work, with a user who answers its questions where the task declares one."""
        config = self._context.task.config.metadata.evocode.users.get(context.round.name)
        if config is None:
            return self._agent.run_round(context)
        from pytest_evocode.agents.simulated_user import SimulatedUser, run_with_user

        user = SimulatedUser(config, context.instruction, context.cancelled)
        try:
            return run_with_user(self._agent, context, user)
        finally:
            self.taken["user_usage"] = user.usage
            user.close()

    def _round_context(self, environment: Environment, round_: Round, recorder: Recorder) -> RoundContext:
        task, options = self._context.task, self._context.options
        limits = (self._context.agent_limit(round_), self.spending.seconds_left)
        return RoundContext(
            task=task,
            round=round_,
            instruction=read_instruction(round_.instruction),
            environment=environment,
            solution_env=resolve_solution_env(task, round_, options.environ, options.withheld_from_solutions),
            timeout=min((limit for limit in limits if limit is not None), default=None),
            recorder=recorder,
            journal=self._journal,
            mcp_servers=servers_of_task(task, options.environ, self._context.withheld),
            cancelled=self._context.cancelled,
        )

    def _ended(self, round_: Round, transcript: RoundTranscript, recorder: Recorder) -> TurnRecord:
        trajectory, usage = transcript.trajectory, recorder.usage
        if trajectory is not None:
            trajectory = with_remarks(trajectory, recorder.remarks)
            self._write(round_, trajectory)
        elif not recorder.empty:
            trajectory = recorder.trajectory()
        if usage is None and trajectory is not None and (usage := trajectory_usage(trajectory)) is not None:
            self.spending.charge(usage, turns=sum(step.source == "agent" for step in trajectory.steps))
        return TurnRecord(
            index=round_.index,
            snapshot="",
            timed_out=transcript.timed_out,
            tool_calls=None if trajectory is None else trajectory.tool_call_count,
            stopped=transcript.stopped,
            refused=transcript.refused,
            phases=self.stopwatch.phases,
            **{**self.taken, "usage": usage},
        )

    def _network(self, round_: Round) -> Network | None:
        """Return the network of a turn: the round's, with the hosts that the agent cannot do without."""
        network = round_.agent_network
        return network.with_hosts(declared_hosts(self._agent)) if isinstance(network, Allowlist) else network

    def _recorder(self, environment: Environment, round_: Round) -> Recorder:
        return Recorder(
            AgentInfo(name=self._agent.name, version=version("pytest-evocode")),
            self._directory.session if self._directory is not None else self._context.task.name,
            spending=self.spending,
            change_source=self._change_source(environment, round_),
            write=None if self._directory is None else lambda trajectory: self._write(round_, trajectory),
            keep=None if self._directory is None else partial(self._keep_image, self._directory, round_),
        )

    def _change_source(self, environment: Environment, round_: Round) -> WorkspaceChanges:
        """Return what follows the workspace; one object for all rounds, because it remembers the files."""
        if self._workspace is None or self._workspace.environment is not environment:
            self._workspace = WorkspaceChanges(environment)
        self._workspace.user = round_.agent_user
        return self._workspace

    def _open_journal(self, round_: Round) -> Journal:
        if self._directory is None:
            return Journal()
        scrubber = self._directory.scrubber
        # A later session goes on only with the same agent at the same files.
        begun_by = {"made_by": dict(self._context.options.agent), "task_hash": self._context.task_hash}
        path = self._directory.journal(round_.name)
        return Journal(path, of=begun_by, clean=lambda entry: scrubbed(entry, scrubber))

    def _write_beside(self, environment: Environment, round_: Round) -> None:
        """Write what the image's ENTRYPOINT has printed, and how services were."""
        if self._directory is None:
            return
        with writing_results():
            if (entered := environment.entered) is not None:
                output = self._directory.scrubber.text(entered.output())
                write_atomically(self._directory.path / ENTRY_POINT_LOG, output)
            record_services(environment, self._directory.services(round_.name), self._directory.scrubber)

    @staticmethod
    def _keep_image(directory: AttemptDirectory, round_: Round, name: str, data: bytes) -> str:
        with writing_results():
            written = directory.write_image(round_.name, name, data)
        return written

    def _write(self, round_: Round, trajectory: Trajectory) -> None:
        if self._directory is None:
            return
        with writing_results():
            self._directory.write_trajectory(round_.name, trajectory)


def memory_of(agent: Agent) -> object:
    """Return what an agent remembers, as a copy in JSON's types: its next turn begins before it is last written.

    Raises :class:`~pytest_evocode.errors.AgentFault` when JSON has no form for it.
    """
    if not isinstance(agent, ResumableAgent):
        return None
    try:
        memory: object = json.loads(json.dumps(agent.save_state()))
    except (TypeError, ValueError) as error:
        raise AgentFault(f"{agent.name}: what save_state gave has no form in JSON: {error}") from error
    return memory
