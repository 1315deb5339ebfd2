"""The agent's part of a round: the workspace is made ready, the agent works, and its turn is ended for good."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from pytest_evocode.agents import Agent, RoundContext, RoundTranscript
from pytest_evocode.agents.journal import Journal
from pytest_evocode.environments import Environment
from pytest_evocode.errors import Cancelled, EnvironmentFault, TaskError
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import TurnRecord, Usage
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.tasks import Healthcheck, Round, Task, resolve_solution_env
from pytest_evocode.trajectories.atif import AgentInfo, Trajectory
from pytest_evocode.trajectories.recorder import Recorder, trajectory_usage, with_remarks
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges
from pytest_evocode.trial.progress import Progress
from pytest_evocode.verifier import FRESH

STOPPED = "the session was stopped"
#: What no agent may see.
OUT_OF_REACH = (*FRESH, "/solution")
_SETUP_TIMEOUT = 600.0  # seconds for a round's setup.sh


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that has ended, however."""

    transcript: RoundTranscript
    seconds: float
    """The agent's own."""
    trajectory: Trajectory | None
    usage: Usage | None


class AgentTurns:
    """Lets one agent take its turns at the rounds of a task.

    ``environ`` resolves the ``${VAR}`` of task.toml, of which solutions do not get those that are ``withheld``;
    ``timeout_multiplier`` multiplies the agent's. A ``cancelled`` attempt takes no further turn. ``directory`` is where
    trajectories are written, None for nowhere; ``spending`` is the attempt's. ``begun_by`` tells what made the agent,
    and of which files the task is, for a later session to go on only with the same.
    """

    def __init__(
        self,
        task: Task,
        agent: Agent,
        *,
        environ: Mapping[str, str],
        timeout_multiplier: float,
        cancelled: threading.Event,
        directory: AttemptDirectory | None = None,
        spending: AttemptSpending | None = None,
        withheld: Callable[[str], bool] = lambda name: False,
        begun_by: Mapping[str, Any] | None = None,
    ) -> None:
        self._task = task
        self._agent = agent
        self._environ = environ
        self._withheld = withheld
        self._timeout_multiplier = timeout_multiplier
        self._cancelled = cancelled
        self._directory = directory
        self._begun_by = begun_by or {}
        self.spending = spending or AttemptSpending()
        self._journal = Journal()
        self.under_way = False
        """Whether the agent works: what is raised meanwhile, and is none of our errors, is its own."""
        self.unrecorded: Usage | None = None
        """What the last turn took, as long as no record has it."""
        self._workspace: WorkspaceChanges | None = None
        self._stage = Progress()

    @property
    def progress(self) -> Progress:
        """What the attempt is at, and what it has used; for any thread to ask."""
        spent = self.spending.spent
        return replace(self._stage, turns=spent.turns, tokens=spent.tokens, cost_usd=spent.cost_usd)

    def take(self, environment: Environment, round_: Round) -> TurnRecord:
        """One turn, prepared and recorded. Raises Cancelled, TaskError, EnvironmentFault, and what the agent does."""
        self._stage = Progress("preparing", round_.index)
        self.unrecorded = None
        self.prepare(environment, round_)
        turn = self.work(environment, round_)
        self._stage = Progress("verifying", round_.index)
        return TurnRecord(
            index=round_.index,
            snapshot="",
            timed_out=turn.transcript.timed_out,
            tool_calls=None if turn.trajectory is None else turn.trajectory.tool_call_count,
            usage=turn.usage,
            stopped=turn.transcript.stopped,
            agent_seconds=turn.seconds,
        )

    def settle(self) -> None:
        """Take the turn's end for recorded: no later session goes on in its middle."""
        self._journal.close()
        self.unrecorded = None

    def work(self, environment: Environment, round_: Round) -> EndedTurn:
        """The agent's own part of a turn, in a workspace that was prepared."""
        recorder = self._recorder(environment, round_)
        self._journal = self._open_journal(round_)
        context = RoundContext(
            task=self._task,
            round=round_,
            instruction=_read_instruction(round_),
            environment=environment,
            solution_env=resolve_solution_env(self._task, round_, self._environ, self._withheld),
            timeout=_shortest(self.limit(round_), self.spending.seconds_left),
            recorder=recorder,
            journal=self._journal,
            cancelled=self._cancelled,
        )
        self._stage = Progress("working", round_.index, limit=context.timeout)
        self.spending.begin_turn()
        self.under_way = True
        try:
            try:
                transcript = self._agent.run_round(context)
            finally:
                seconds = self.spending.end_turn()
            self.under_way = False
            if transcript.timed_out:
                environment.kill_processes()
                if self.spending.seconds_left == 0:
                    transcript = replace(transcript, timed_out=False, stopped=self.spending.exhausted)
                    recorder.remarks["killed"] = True
            recorder.end(timed_out=transcript.timed_out, stopped=transcript.stopped)
        finally:
            recorder.close()
            self.unrecorded = recorder.usage
            if not recorder.empty:
                self._write(round_, recorder.trajectory())
        return self._ended(round_, transcript, seconds, recorder)

    def _ended(self, round_: Round, transcript: RoundTranscript, seconds: float, recorder: Recorder) -> EndedTurn:
        trajectory, usage = transcript.trajectory, recorder.usage
        if trajectory is not None:
            trajectory = with_remarks(trajectory, recorder.remarks)
            self._write(round_, trajectory)
        elif not recorder.empty:
            trajectory = recorder.trajectory()
        if usage is None and trajectory is not None and (usage := trajectory_usage(trajectory)) is not None:
            self.spending.charge(usage, turns=sum(step.source == "agent" for step in trajectory.steps))
        return EndedTurn(transcript, seconds, trajectory, usage)

    def _recorder(self, environment: Environment, round_: Round) -> Recorder:
        directory = self._directory
        return Recorder(
            AgentInfo(name=self._agent.name, version=version("pytest-evocode")),
            directory.session if directory is not None else self._task.name,
            spending=self.spending,
            change_source=self._change_source(environment, round_),
            write=None if directory is None else lambda trajectory: self._write(round_, trajectory),
        )

    def _change_source(self, environment: Environment, round_: Round) -> WorkspaceChanges:
        """What it knows of the workspace is good for later rounds, too."""
        if self._workspace is None or self._workspace.environment is not environment:
            self._workspace = WorkspaceChanges(environment)
        self._workspace.user = round_.agent_user
        return self._workspace

    def _open_journal(self, round_: Round) -> Journal:
        if self._directory is None:
            return Journal()
        scrubber = self._directory.scrubber
        path = self._directory.journal(round_.name)
        return Journal(path, of=self._begun_by, clean=lambda entry: scrubbed(entry, scrubber))

    def _write(self, round_: Round, trajectory: Trajectory) -> None:
        if self._directory is None:
            return
        try:
            self._directory.write_trajectory(round_.name, trajectory)
        except (OSError, ValueError) as error:  # It may hold what JSON has no form for.
            raise EnvironmentFault(f"the results could not be written: {error}") from error

    def limit(self, round_: Round) -> float | None:
        """Seconds that the agent has for a round; None for no limit."""
        return None if round_.agent_timeout is None else round_.agent_timeout * self._timeout_multiplier

    def refuse_when_cancelled(self) -> None:
        """Raise Cancelled when the attempt is to end."""
        if self._cancelled.is_set():
            raise Cancelled(STOPPED)

    def prepare(self, environment: Environment, round_: Round) -> None:
        """Bring the round's files and make sure that the workspace is ready for the agent."""
        self.refuse_when_cancelled()
        if round_.workdir is not None:
            # An agent that is not root, by the task or by the image, has to be able to edit what it is given.
            environment.upload([round_.workdir], environment.workdir, writable=True)
            if (round_.workdir / "setup.sh").is_file():
                result = environment.exec(["bash", "setup.sh"], timeout=_SETUP_TIMEOUT)
                if not result.ok:
                    ending = "did not end in time" if result.timed_out else f"ended with exit code {result.exit_code}"
                    tail = "\n".join(result.output.splitlines()[-20:])
                    raise TaskError(f"{ending}; correct it. Its last lines:\n{tail}", round_.workdir / "setup.sh")
        if round_.healthcheck is not None:
            self.check_health(environment, round_.healthcheck, round_.name)

    def check_health(self, environment: Environment, check: Healthcheck, what: str) -> None:
        """Docker's rules: failures within the start period do not count, then so many in a row are one too many."""
        started = time.monotonic()
        failures = 0
        while True:
            self.refuse_when_cancelled()
            result = environment.exec(check.command, timeout=check.timeout_sec)
            if result.ok:
                return
            starting = time.monotonic() - started < check.start_period_sec
            failures += not starting
            if failures >= check.retries:
                raise TaskError(
                    f"the healthcheck of {what} failed {failures} times in a row: {check.command}\n"
                    f"{result.output[-2000:]}",
                    self._task.file,
                )
            self._cancelled.wait(check.start_interval_sec if starting else check.interval_sec)


def _shortest(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _read_instruction(round_: Round) -> str:
    try:
        return round_.instruction.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"the instruction cannot be read: {error}; save it as UTF-8", round_.instruction) from None
