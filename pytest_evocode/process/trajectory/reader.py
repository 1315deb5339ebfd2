"""From a recorded trajectory (ATIF) of any agent to the activity in it; nothing is run."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pytest_evocode.process.trajectory.call_effects import CallEffects, CallReader
from pytest_evocode.process.trajectory.call_results import call_results, text_of
from pytest_evocode.process.trajectory.events import (
    AgentMessage,
    CommandRun,
    Commit,
    FileEdit,
    FileRead,
    PlanUpdate,
    Question,
    RoundActivity,
    StateChange,
)
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes
from pytest_evocode.process.trajectory.text_changes import Hunk, TextChange, hunks_between, read_diff
from pytest_evocode.process.trajectory.workspace_texts import Originals, WorkspaceTexts
from pytest_evocode.trajectories.atif import Step, Trajectory, actions_of


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """One round as it was recorded."""

    name: str
    index: int
    """From 1."""
    trajectory: Trajectory
    instruction: str = ""
    brought: Mapping[str, str] = field(default_factory=dict)
    """Texts that the task put into the workspace before the agent's turn."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """How trajectories of a task are read."""

    roles: FileRoles = field(default_factory=FileRoles)
    purposes: CommandPurposes = field(default_factory=CommandPurposes)
    workdir: str | None = None
    """The absolute path of the workspace; None where it is not known."""
    originals: Originals = lambda path: ()
    matching: Callable[[str], Iterable[str]] = lambda pattern: ()
    """The paths that the task brings and a shell's pattern stands for."""


def read_rounds(rounds: Iterable[RecordedRound], reading: TaskContext) -> Iterator[RoundActivity]:
    """The activity of an attempt's rounds; what is known of the workspace goes on from round to round."""
    rounds = list(rounds)
    workspace = WorkspaceTexts(reading.originals)
    origin: dict[str, str | None] = {}
    calls = CallReader(
        reading.roles,
        reading.purposes,
        reading.workdir,
        matching=lambda pattern: {*reading.matching(pattern), *_matching(workspace.texts, pattern)},
        is_ours=lambda module: _is_ours(module, workspace, reading.originals),
        recorded=any(_is_watched(round_.trajectory) for round_ in rounds),
    )
    for round_ in rounds:
        workspace.put(round_.brought)
        origin.update(round_.brought)  # What the task brings is not the agent's, whatever was there.
        yield _RoundReader(round_, reading.roles, calls, workspace, origin).read()


def _is_watched(trajectory: Trajectory) -> bool:
    """Whether changes of the workspace were recorded, so that their absence says that there were none."""
    ours = (trajectory.extra or {}).get("evocode")
    if isinstance(ours, dict) and ours.get("watched"):
        return True
    return any(action.get("changes") for step in trajectory.steps for action in actions_of(step))


def _matching(paths: Iterable[str], pattern: str) -> Iterator[str]:
    return (path for path in paths if path.count("/") == pattern.count("/") and fnmatchcase(path, pattern))


def _is_ours(module: str, workspace: WorkspaceTexts, originals: Originals) -> bool:
    names = (f"{module}.py", f"{module}/__init__.py")
    if any(path == name or path.endswith(f"/{name}") for path in workspace.texts for name in names):
        return True
    return any(path.startswith(f"{module}/") for path in workspace.texts) or any(
        list(originals(name)) for name in names
    )


class _RoundReader:
    """Goes through a round's steps and collects what they have."""

    def __init__(
        self,
        round_: RecordedRound,
        roles: FileRoles,
        calls: CallReader,
        workspace: WorkspaceTexts,
        origin: dict[str, str | None],
    ) -> None:
        self._round = round_
        self._roles = roles
        self._calls = calls
        self._workspace = workspace
        self._origin = origin
        self._at = 0
        self._messages: list[AgentMessage] = []
        self._reads: list[FileRead] = []
        self._edits: list[FileEdit] = []
        self._runs: list[CommandRun] = []
        self._plans: list[PlanUpdate] = []
        self._questions: list[Question] = []
        self._commits: list[Commit] = []
        self._replay: list[StateChange] = []
        self._uses_git = False
        self._before: dict[str, str | None] = {}
        self._tokens: dict[int, int | None] = {}

    def read(self) -> RoundActivity:
        for step in self._round.trajectory.steps:
            if step.source == "agent":
                self._step(step)
        texts = self._workspace.texts
        return RoundActivity(
            name=self._round.name,
            index=self._round.index,
            instruction=self._round.instruction or _instruction(self._round.trajectory),
            messages=tuple(self._messages),
            reads=tuple(self._reads),
            edits=tuple(self._edits),
            runs=tuple(self._runs),
            plans=tuple(self._plans),
            questions=tuple(self._questions),
            commits=tuple(self._commits),
            uses_git=self._uses_git,
            replay=tuple(self._replay),
            tokens=self._tokens,
            before=self._before,
            after={path: texts.get(path) for path in self._before},
            lost=frozenset(self._workspace.lost),
            workspace=dict(texts),
            origin=dict(self._origin),
        )

    def _step(self, step: Step) -> None:
        self._at += 1
        text = text_of(step.message)
        if text.strip():
            self._messages.append(AgentMessage(step.step_id, self._at, text, text))
        for recorded in call_results(step):
            self._at += 1
            self._note(step.step_id, self._calls.read(recorded), recorded.tables)
        self._tokens[step.step_id] = _tokens(step)

    def _note(self, step: int, done: CallEffects, tables: Sequence[Mapping[str, Any]]) -> None:
        place = (step, self._at)
        self._reads += [FileRead(*place, done.shown, path) for path in done.reads]
        begun = len(self._edits)
        for change in done.changes:
            self._edit(step, change, done.shown)
        self._replay += _to_replay(self._at, self._edits[begun:], tables)
        for ran in done.runs:
            ending = "" if ran.exit_code is None else f" -> exit code {ran.exit_code}"
            run = CommandRun(
                *place, f"{ran.text}{ending}", ran.key, ran.purpose, ran.passed, ran.failure, ran.exit_code,
                ran.outcome.tests, ran.whole,
            )  # fmt: skip
            self._runs.append(run)
        if done.plan:
            self._plans.append(PlanUpdate(*place, done.plan, done.plan))
        if done.question:
            self._questions.append(Question(*place, done.question, done.question))
        self._commits += [Commit(*place, message, message) for message in done.commits]
        self._uses_git |= done.uses_git

    def _edit(self, step: int, change: TextChange, shown: str) -> None:
        before, after = self._workspace.apply(change)
        if before is not None and before == after:
            return
        path = change.path
        self._before.setdefault(path, before)
        self._origin.setdefault(path, before)
        role = self._roles.of(path, after or before)
        hunks = read_diff(change.diff) if change.diff else _hunks(before, after)
        kind = "added" if before is None and after is not None and change.content is not None else change.kind
        quote = f"{path}: {_first_lines(hunks)}" if hunks else f"{path}: {shown}"
        self._edits.append(FileEdit(step, self._at, quote, path, kind, role, before, after, hunks))


def _hunks(before: str | None, after: str | None) -> tuple[Hunk, ...]:
    return () if before is None and after is None else hunks_between(before or "", after or "")


def _to_replay(at: int, edits: Sequence[FileEdit], tables: Sequence[Mapping[str, Any]]) -> Iterator[StateChange]:
    """What was recorded, or else what is known of the edits, as tables; edits of the product make states."""
    product = {edit.path: edit for edit in edits if edit.of_product}
    if tables:
        for table in tables:
            yield StateChange(at, table, table["path"] in product)
        return
    for edit in edits:
        table = {"path": edit.path, "kind": "deleted" if edit.kind == "deleted" else "added", "mode": None}
        if edit.after is not None:
            table["content"] = base64.b64encode(edit.after.encode("utf-8", "surrogateescape")).decode()
        yield StateChange(at, table, edit.path in product)


def _first_lines(hunks: tuple[Hunk, ...]) -> str:
    added = [f"+{line}" for hunk in hunks[:4] for line in hunk.added[:4]]
    removed = [f"-{line}" for hunk in hunks[:4] for line in hunk.removed[:4]]
    return " ".join(line.strip() for line in (added or removed)[:4])


def _tokens(step: Step) -> int | None:
    metrics = step.metrics
    if metrics is None or metrics.prompt_tokens is None or metrics.completion_tokens is None:
        return None
    return metrics.prompt_tokens + metrics.completion_tokens


def _instruction(trajectory: Trajectory) -> str:
    return "\n".join(text_of(step.message) for step in trajectory.steps if step.source == "user")
