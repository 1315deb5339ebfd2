"""The agent ``replay``, which does again what a recorded trajectory says was done."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.shell.tools import run_script
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.errors import AgentFault, DiffError, UsageError, describe_validation
from pytest_evocode.llm.budget import Budget
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trajectories.atif import AgentInfo, Step, ToolCall, Trajectory, actions_of
from pytest_evocode.trajectories.file_changes import Change, File, drop_empty_directories, file_after, write_files
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges

_FILE = "trajectory.json"
_WHAT = (
    "an attempt's directory, a run's, a results directory, a directory with <round>.json or <round>/trajectory.json "
    "for every round, or one trajectory of a task of one round"
)


def check_path(path: Path) -> None:
    """Raise UsageError where the path does not exist."""
    if not path.exists():
        raise UsageError(f"replay: there is no {path}; name {_WHAT}")


class RecordedAttempt:
    """The trajectories of one earlier attempt at one task."""

    def __init__(self, path: Path, task: Task) -> None:
        """Find the attempt; raises AgentFault where there is none at the task, or more than one."""
        self._task = task
        self._place = _place(path, task)

    def of_round(self, round_: Round) -> Trajectory:
        """Read a round's trajectory; raises AgentFault with the file's path where it is missing or not in ATIF."""
        files = _files(self._place, self._task, round_)
        path = next((file for file in files if file.is_file()), None)
        if path is None:
            raise AgentFault(f"{files[0]}: there is no trajectory to replay in {round_.name}; record one")
        try:
            return Trajectory.model_validate_json(path.read_bytes())
        except OSError as error:
            raise AgentFault(f"{path}: the trajectory cannot be read: {error.strerror}") from None
        except ValidationError as error:
            why = describe_validation(error)
            raise AgentFault(f"{path}: this is not an ATIF trajectory: {why}; record it anew") from None


def _place(path: Path, task: Task) -> Path:
    """Return the file or directory that has the trajectories of the task's rounds."""
    if path.is_file() and not (attempts := _listed(path)):
        if len(task.rounds) > 1:
            raise AgentFault(
                f"{path}: this is the trajectory of one round, and {task.name} has {len(task.rounds)}; name {_WHAT}"
            )
        return path
    if path.is_dir() and _has_any(path, task):
        return path
    found = sorted(
        place
        for place in (attempts if path.is_file() else path.rglob(f"{task.name}__*"))
        if place.name.startswith(f"{task.name}__") and place.is_dir() and _has_any(place, task)
    )
    if len(found) > 1:  # The results of a replay may lie beside what it replays.
        found = [place for place in found if not _is_replay(place, task)]
    if len(found) > 1:
        places = "".join(f"\n  {place}" for place in found)
        raise AgentFault(f"{path}: several attempts at {task.name} are here; name one of them:{places}")
    if not found:
        raise AgentFault(f"{path}: no trajectory of {task.name} is here; name {_WHAT}")
    return found[0]


def _listed(path: Path) -> list[Path]:
    """Return the directories of the attempts of a run's record, ``runs/<run>.json``."""
    try:
        names = json.loads(path.read_bytes()).get("attempts")
    except (OSError, ValueError, AttributeError):
        return []
    return [path.parent.parent / name for name in names] if isinstance(names, list) else []


def _has_any(place: Path, task: Task) -> bool:
    return any(file.is_file() for round_ in task.rounds for file in _files(place, task, round_))


def _is_replay(place: Path, task: Task) -> bool:
    for round_ in task.rounds:
        for file in _files(place, task, round_):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                return bool(json.loads(file.read_bytes())["agent"]["extra"]["evocode"]["replayed"])
    return False


def _files(place: Path, task: Task, round_: Round) -> list[Path]:
    """Return where a round's trajectory may be, the likeliest first."""
    if place.is_file():
        return [place]
    kept = [place / f"{round_.name}.json", place / round_.name / _FILE]
    recorded = [place / "steps" / round_.name / "agent" / _FILE]
    files = [*recorded, *kept] if (place / "steps").is_dir() else [*kept, *recorded]
    # Harbor keeps the only step's at the top.
    return [*files, place / "agent" / _FILE, place / _FILE] if len(task.rounds) == 1 else files


_MILLISECONDS = 0.001
# Editing tools have an argument `command`, too, and beside it one of these.
_FILE_ARGUMENTS = ("path", "file_path", "filePath", "file", "filename", "old_str", "old_string", "new_str", "file_text")
# The last one is typed into a terminal.
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "CommandLine", "keystrokes")
_CWD_ARGUMENTS = ("workdir", "working_directory", "cwd", "directory", "dir_path")
_EDITOR = re.compile(r"edit|patch|write|replace|notebook", re.IGNORECASE)
#: Tools whose timeout is in milliseconds.
_IN_MILLISECONDS = ("Bash",)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """The command that a tool call runs."""

    script: str
    """Bash script."""
    cwd: str | None = None
    """Directory that it runs in; None for the working directory."""
    timeout: float | None = None
    """Seconds; None where the call gives none."""


def command_of(call: ToolCall) -> ShellCommand | None:
    """Return the command of a tool call; None where it runs none, or types into a running program.

    >>> command_of(ToolCall(tool_call_id="1", function_name="bash", arguments={"command": "ls", "timeout": 5}))
    ShellCommand(script='ls', cwd=None, timeout=5.0)
    """
    arguments = call.arguments
    if isinstance(arguments.get("action"), dict):  # OpenAI's local_shell.
        arguments = {**arguments, **arguments["action"]}
    script = _script(next((arguments[name] for name in _COMMAND_ARGUMENTS if name in arguments), None))
    if script is None or _EDITOR.search(call.function_name):
        return None
    if any(name in arguments for name in _FILE_ARGUMENTS) or str(arguments.get("is_input")).lower() == "true":
        return None
    cwd = next((arguments[name] for name in _CWD_ARGUMENTS if arguments.get(name)), None)
    return ShellCommand(script, cwd if isinstance(cwd, str) else None, _timeout(call.function_name, arguments))


def _script(written: Any) -> str | None:
    if isinstance(written, list) and all(isinstance(word, str) for word in written):
        written = shlex.join(written)
    return written if isinstance(written, str) and written.strip() and "\0" not in written else None


def _timeout(tool: str, arguments: dict[str, Any]) -> float | None:
    for name, unit in (("timeout_ms", _MILLISECONDS), ("timeout", 1.0), ("timeout_sec", 1.0)):
        value = arguments.get(name)
        if isinstance(value, int | float) and value > 0:
            in_milliseconds = name == "timeout" and tool in _IN_MILLISECONDS
            return float(value) * (_MILLISECONDS if in_milliseconds else unit)
    return None


# A command that ended gets this many times its recorded time, and a minute on top: this machine may be slower.
_SLOWER = 10.0
_AT_LEAST = 60.0  # seconds
_SHORTEST = 0.01  # seconds; 0 would be no limit
_SHOWN = 16_000  # characters of a command's output that are recorded


class ReplayAgent:
    """Replays the recorded rounds of an attempt, without a model and without cost.

    Commands are run again. Where an action's changes of the workspace are recorded and differ this time, the recorded
    contents are restored, so that what depends on time, chance or a network stays as it was.
    """

    name = "replay"
    deterministic = True
    takes_conversations = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    def __init__(self, path: Path) -> None:
        """Replay from ``path``: an attempt, a run, a results directory or recordings, see docs/agents.md."""
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
        return _RoundReplay(context, self._workspace, trajectory).run()


class _RoundReplay:
    """The replay of one round."""

    def __init__(self, context: RoundContext, workspace: WorkspaceChanges, trajectory: Trajectory) -> None:
        self._context = context
        self._workspace = workspace
        self._trajectory = trajectory
        self._about = _table(trajectory.extra, "evocode")
        self._watched = bool(self._about.get("watched"))
        """Whether the recording has the changes of each action."""
        self._blind = False
        """Whether they are missing for now, because the workspace could not be listed."""
        self._deadline = Deadline(context.timeout)

    def run(self) -> RoundTranscript:
        recorder = self._context.recorder
        recorder.agent = _replaying_agent(self._trajectory, recorder.agent)
        # The recorder looks at the workspace after this agent has restored what differs.
        self._workspace.begin()
        for step in self._trajectory.steps:
            if step.source != "agent":
                recorder.say(step.source, step.message, _ours(step))
                continue
            calls, extra = step.tool_calls or (), _ours(step)
            if step.metrics is not None:
                extra["replayed"] = step.metrics.model_dump(mode="json", exclude_none=True)
            recorder.reply(step.message, calls, reasoning=step.reasoning_content, extra=extra)
            actions = actions_of(step)
            for call in calls:
                self._call(step, call, _take(actions, call.tool_call_id))
                if self._deadline.over:
                    return RoundTranscript(timed_out=True)
        return self._end()

    def _end(self) -> RoundTranscript:
        """End the turn as it was ended, with the changes that belong to no recorded action."""
        about = self._about
        if about.get("timed_out") or about.get("killed"):
            self._context.environment.kill_processes()
        if notes := self._restore(about):
            self._context.recorder.remarks["replayed"] = notes
        return RoundTranscript(timed_out=bool(about.get("timed_out")), stopped=str(about.get("stopped") or ""))

    def _call(self, step: Step, call: ToolCall, recorded: Mapping[str, Any] | None) -> None:
        """Do a tool call again and record it."""
        if recorded is None and self._watched:
            return  # The recording breaks off in this call.
        command = command_of(call)
        content, action = self._run(command, recorded) if command else (_content(step, call), _action(recorded))
        notes = self._restore(recorded) if recorded is not None and self._watched else {}
        if command is None:
            notes["run"] = False
        self._context.recorder.observe(call.tool_call_id, content, action, {"replayed": notes} if notes else None)

    def _run(self, command: ShellCommand, recorded: Mapping[str, Any] | None) -> tuple[str, Action]:
        script, seconds = command.script, _limit(command, recorded)
        return run_script(script, self._context, self._deadline, seconds=seconds, limit=_SHOWN, cwd=command.cwd)

    def _restore(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Restore the workspace to its state after a recorded action, and return notes on what differed.

        Where not all changes were recorded, other files stay as they are.
        """
        now = self._workspace.changes()
        then: list[Change] = recorded.get("changes") or []
        unrecorded = _table(recorded, "unrecorded")
        # That the workspace could not be listed is recorded once, until it could again.
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
            # Directories may have been made only for the files that are removed here.
            made = {change["path"] for change in now if change["kind"] == "added"}
            drop_empty_directories(environment, [path for path in files if files[path] is None and path in made])
            self._workspace.begin()
        notes: dict[str, Any] = {"put_right": sorted(files)} if files else {}
        return notes | ({"different": left} if left else {})

    def _as_recorded(self, path: str, changes: list[Change]) -> File | None:
        """Return a file as it was after the recorded action, from what it was before this one."""
        file = self._workspace.before(path)
        for change in changes:
            file = file_after(file, change)
        if file is not None and file.content is None and file.symlink is None:
            raise DiffError("what it was before is not known")
        return file


def _replaying_agent(trajectory: Trajectory, player: AgentInfo) -> AgentInfo:
    original = trajectory.agent.model_dump(mode="json", include={"name", "version"})
    extra = {"evocode": {"replayed": {**original, "session_id": trajectory.session_id}}}
    return player.model_copy(update={"model_name": trajectory.agent.model_name, "extra": extra})


def _ours(step: Step) -> dict[str, Any]:
    """Return the recorded notes on a step, without its actions, which are recorded anew."""
    return {key: value for key, value in _table(step.extra, "evocode").items() if key != "actions"}


def _table(values: Mapping[str, Any] | None, key: str) -> dict[str, Any]:
    found = (values or {}).get(key)
    return found if isinstance(found, dict) else {}


def _take(actions: list[dict[str, Any]], call_id: str) -> dict[str, Any] | None:
    """Remove and return the next action of a call; some models give several calls the same id."""
    for position, action in enumerate(actions):
        if action.get("tool_call_id") == call_id:
            return actions.pop(position)
    return None


def _content(step: Step, call: ToolCall) -> Any:
    results = step.observation.results if step.observation is not None else ()
    content = next((result.content for result in results if result.source_call_id == call.tool_call_id), None)
    # The images are files beside the recording, and are looked at there.
    return [_without_image(part) for part in content] if isinstance(content, list) else content


def _without_image(part: Any) -> Any:
    is_image = isinstance(part, dict) and part.get("type") == "image"
    return {"type": "text", "text": "[an image, which the recording has]"} if is_image else part


def _action(recorded: Mapping[str, Any] | None) -> Action | None:
    return None if recorded is None else Action(exit_code=recorded.get("exit_code"))


def _limit(command: ShellCommand, recorded: Mapping[str, Any] | None) -> float:
    """Return a command's deadline in seconds: when it was killed, or more than it took."""
    if recorded is None:
        return max(command.timeout or 0.0, _AT_LEAST * _SLOWER)
    seconds = float(recorded.get("seconds") or 0.0)
    if recorded.get("timed_out"):
        return max(seconds, _SHORTEST)
    return max(command.timeout or 0.0, seconds * _SLOWER + _AT_LEAST)


def _differing(now: list[Change], then: list[Change], *, others: bool) -> set[str]:
    """Return the paths that became something else than was recorded; with ``others``, unrecorded ones as well."""
    before, after = _outcomes(then), _outcomes(now)
    paths = before.keys() | after.keys() if others else before.keys()
    return {path for path in paths if before.get(path) != after.get(path)}


def _outcomes(changes: list[Change]) -> dict[str, tuple[Any, ...]]:
    return {
        change["path"]: (change["kind"] == "deleted", change.get("mode"), change.get("sha256"), change.get("symlink"))
        for change in changes
    }
