"""The agent that does again what a trajectory says was done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.shell.bash_tool import Deadline, run_script
from pytest_evocode.errors import DiffError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.trajectories.atif import AgentInfo, Step, StepMetrics, ToolCall, Trajectory, actions_of
from pytest_evocode.trajectories.file_changes import Change, File, drop_empty_directories, file_after, write_files
from pytest_evocode.trajectories.recorded_attempts import RecordedAttempt, check_path
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trajectories.shell_commands import ShellCommand, command_of
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges

# A command that ended has as many times its time again, and a minute on top: this machine may be slower.
_SLOWER = 10.0
_AT_LEAST = 60.0  # seconds
_SHORTEST = 0.01  # seconds; nothing would be no limit
_SHOWN = 16_000  # characters of a command's output that are recorded


class ReplayAgent:
    """Plays the recorded rounds of an attempt again: nothing is asked of a model, and nothing is paid.

    Commands are run again. Where the trajectory has what an action changed in the workspace, and it is something else
    this time, the recorded contents are put there: what the time, chance or a network had a part in stays as it was.
    """

    name = "replay"

    def __init__(self, path: Path) -> None:
        """``path`` is an attempt, a run, a results directory, or recordings: see docs/agents.md."""
        self.path = Path(path)
        self._recordings: RecordedAttempt | None = None
        self._workspace: WorkspaceChanges | None = None

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        check_path(self.path)

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`; raises AgentFault where there is nothing to replay."""
        if self._recordings is None:
            check_path(self.path)
            self._recordings = RecordedAttempt(self.path, context.task)
        trajectory = self._recordings.of_round(context.round)
        if self._workspace is None or self._workspace.environment is not context.environment:
            self._workspace = WorkspaceChanges(context.environment)
        return _Playing(context, self._workspace, trajectory).play()


class _Playing:
    """One round that is played again."""

    def __init__(self, context: RoundContext, workspace: WorkspaceChanges, trajectory: Trajectory) -> None:
        self._context = context
        self._workspace = workspace
        self._trajectory = trajectory
        self._about = _table(trajectory.extra, "evocode")
        self._watched = bool(self._about.get("watched"))
        """Whether the recording has what each action changed, and not only what all of them did."""
        self._blind = False
        """Whether it has not, for now."""
        self._deadline = Deadline(context.timeout)

    def play(self) -> RoundTranscript:
        recorder = self._context.recorder
        recorder.agent = _player_of(self._trajectory, recorder.agent)
        # Whoever looks at the workspace for the recorder looks after this one has put right what is different.
        self._workspace.begin()
        for step in self._trajectory.steps:
            if step.source != "agent":
                recorder.say(step.source, step.message, _ours(step))
                continue
            calls = step.tool_calls or ()
            recorder.reply(
                step.message, calls, reasoning=step.reasoning_content, extra=_ours(step) | _replayed(step.metrics)
            )
            actions = actions_of(step)
            for call in calls:
                self._call(step, call, _take(actions, call.tool_call_id))
                if self._deadline.over:
                    return RoundTranscript(timed_out=True)
        return self._end()

    def _end(self) -> RoundTranscript:
        """End the turn as it was ended, with what had changed by no action that was recorded."""
        about = self._about
        if about.get("timed_out") or about.get("killed"):
            self._context.environment.kill_processes()
        if notes := self._put_right(about):
            self._context.recorder.remarks["replayed"] = notes
        return RoundTranscript(timed_out=bool(about.get("timed_out")), stopped=str(about.get("stopped") or ""))

    def _call(self, step: Step, call: ToolCall, recorded: Mapping[str, Any] | None) -> None:
        """Do a call again and record it."""
        if recorded is None and self._watched:
            return  # The recording was broken off in it.
        command = command_of(call)
        content, action = self._run(command, recorded) if command else (_content(step, call), _action(recorded))
        notes = self._put_right(recorded) if recorded is not None and self._watched else {}
        if command is None:
            notes["run"] = False
        self._context.recorder.observe(call.tool_call_id, content, action, {"replayed": notes} if notes else None)

    def _run(self, command: ShellCommand, recorded: Mapping[str, Any] | None) -> tuple[str, Action]:
        return run_script(
            command.script,
            self._context,
            self._deadline,
            seconds=_limit(command, recorded),
            limit=_SHOWN,
            cwd=command.cwd,
        )

    def _put_right(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Have the workspace be as it was after what is recorded, and tell of what was different.

        Where the recording does not know all that was changed, other files stay as they are.
        """
        now = self._workspace.changes()
        then: list[Change] = recorded.get("changes") or []
        unrecorded = _table(recorded, "unrecorded")
        # It is said once that the workspace could not be looked at, until it could.
        self._blind = "why" in unrecorded or (self._blind and not then)
        whole = self._watched and not self._blind and not unrecorded.get("files")
        whole &= not self._workspace.remarks().get("unrecorded")
        files: dict[str, File | None] = {}
        left: dict[str, str] = {}
        for path in sorted(_differing(now, then, others=whole)):
            try:
                files[path] = self._as_recorded(path, [change for change in then if change["path"] == path])
            except DiffError as why:
                left[path] = str(why)
        if files:
            environment = self._context.environment
            write_files(environment, files, user=self._context.round.agent_user)
            # Other files were made by chance, and so may have been the directories that they were in.
            made = {change["path"] for change in now if change["kind"] == "added"}
            drop_empty_directories(environment, [path for path in files if files[path] is None and path in made])
            self._workspace.begin()
        notes: dict[str, Any] = {"put_right": sorted(files)} if files else {}
        return notes | ({"different": left} if left else {})

    def _as_recorded(self, path: str, tables: list[Change]) -> File | None:
        """What a file was after the recorded action, from what it was before this one."""
        file = self._workspace.before(path)
        for table in tables:
            file = file_after(file, table)
        if file is not None and file.content is None and file.symlink is None:
            raise DiffError("what it was before is not known")
        return file


def _player_of(trajectory: Trajectory, player: AgentInfo) -> AgentInfo:
    original = trajectory.agent.model_dump(mode="json", include={"name", "version"})
    extra = {"evocode": {"replayed": {**original, "session_id": trajectory.session_id}}}
    return player.model_copy(update={"model_name": trajectory.agent.model_name, "extra": extra})


def _ours(step: Step) -> dict[str, Any]:
    """What the recording says of a step beyond its actions, which are made anew."""
    return {key: value for key, value in _table(step.extra, "evocode").items() if key != "actions"}


def _table(values: Mapping[str, Any] | None, key: str) -> dict[str, Any]:
    found = (values or {}).get(key)
    return found if isinstance(found, dict) else {}


def _replayed(metrics: StepMetrics | None) -> dict[str, Any]:
    """What the step took when it was recorded."""
    return {} if metrics is None else {"replayed": metrics.model_dump(mode="json", exclude_none=True)}


def _take(actions: list[dict[str, Any]], call_id: str) -> dict[str, Any] | None:
    """The next action of a call; some models give several calls one id."""
    for position, action in enumerate(actions):
        if action.get("tool_call_id") == call_id:
            return actions.pop(position)
    return None


def _content(step: Step, call: ToolCall) -> Any:
    results = step.observation.results if step.observation is not None else ()
    return next((result.content for result in results if result.source_call_id == call.tool_call_id), None)


def _action(recorded: Mapping[str, Any] | None) -> Action | None:
    return None if recorded is None else Action(exit_code=recorded.get("exit_code"))


def _limit(command: ShellCommand, recorded: Mapping[str, Any] | None) -> float:
    """Seconds for a command: those after which it was killed, or more than it took."""
    if recorded is None:
        return max(command.timeout or 0.0, _AT_LEAST * _SLOWER)
    seconds = float(recorded.get("seconds") or 0.0)
    if recorded.get("timed_out"):
        return max(seconds, _SHORTEST)
    return max(command.timeout or 0.0, seconds * _SLOWER + _AT_LEAST)


def _differing(now: list[Change], then: list[Change], *, others: bool) -> set[str]:
    """The paths that became something else than they did when it was recorded; ``others`` are not recorded ones."""
    before, after = _outcomes(then), _outcomes(now)
    paths = before.keys() | after.keys() if others else before.keys()
    return {path for path in paths if before.get(path) != after.get(path)}


def _outcomes(changes: list[Change]) -> dict[str, tuple[Any, ...]]:
    return {
        change["path"]: (change["kind"] == "deleted", change.get("mode"), change.get("sha256"), change.get("symlink"))
        for change in changes
    }
