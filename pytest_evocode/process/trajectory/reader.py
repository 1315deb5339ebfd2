"""Read recorded trajectories (ATIF) of any agent into the activity of each round. Nothing is run."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_evocode.process.trajectory.call_effects import CallEffects, CallReader
from pytest_evocode.process.trajectory.call_results import call_results, text_of
from pytest_evocode.process.trajectory.events import FileEdit, FileRead, RoundActivity, StateChange, Statement
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.normal_forms import normal_form
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes
from pytest_evocode.process.trajectory.text_changes import Hunk, TextChange, hunks_between, read_diff
from pytest_evocode.process.trajectory.workspace_texts import Originals, WorkspaceTexts, matching_paths
from pytest_evocode.trajectories.atif import Step, Trajectory, actions_of


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """One round of a recorded attempt."""

    name: str
    index: int
    """The round's number, from 1."""
    trajectory: Trajectory
    instruction: str = ""
    brought: Mapping[str, str] = field(default_factory=dict)
    """The files, as texts, that the task put into the workspace before the agent's turn."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What is known of a task when its trajectories are read."""

    roles: FileRoles = field(default_factory=FileRoles)
    purposes: CommandPurposes = field(default_factory=CommandPurposes)
    workdir: str | None = None
    """The absolute path of the workspace; None where it is unknown."""
    originals: Originals = lambda path: ()
    matching: Callable[[str], Iterable[str]] = lambda pattern: ()
    """Returns the paths among the task's files that match a shell's pattern."""


def read_rounds(rounds: Iterable[RecordedRound], context: TaskContext) -> Iterator[RoundActivity]:
    """Yield the activity of an attempt's rounds; what is known of the workspace carries over from round to round."""
    rounds = list(rounds)
    workspace = WorkspaceTexts(context.originals)
    origin: dict[str, str | None] = {}
    calls = CallReader(
        context.purposes,
        context.workdir,
        matching=lambda pattern: sorted({*context.matching(pattern), *matching_paths(workspace.texts, pattern)}),
        is_ours=lambda module: _is_ours(module, workspace, context.originals),
        recorded=any(_is_watched(round_.trajectory) for round_ in rounds),
    )
    requests: list[str] = []
    for round_ in rounds:
        workspace.put(round_.brought)
        origin.update(round_.brought)  # What the task brings is not the agent's work.
        instruction = round_.instruction or _instruction(round_.trajectory)
        requests.append(instruction)
        activity = RoundActivity(round_.name, round_.index, instruction, tuple(requests))
        yield _RoundReader(context.roles, calls, workspace, origin, activity).read(round_.trajectory)


def _is_watched(trajectory: Trajectory) -> bool:
    """Return whether changes of the workspace were recorded, so that where there are none, nothing was changed."""
    ours = (trajectory.extra or {}).get("evocode")
    if isinstance(ours, dict) and ours.get("watched"):
        return True
    return any(action.get("changes") for step in trajectory.steps for action in actions_of(step))


def _is_ours(module: str, workspace: WorkspaceTexts, originals: Originals) -> bool:
    names = (f"{module}.py", f"{module}/__init__.py")
    if any(path == name or path.endswith(f"/{name}") for path in workspace.texts for name in names):
        return True
    return any(path.startswith(f"{module}/") for path in workspace.texts) or any(
        list(originals(name)) for name in names
    )


@dataclass(slots=True)
class _RoundReader:
    """Collects the events of a round, step by step."""

    roles: FileRoles
    calls: CallReader
    workspace: WorkspaceTexts
    origin: dict[str, str | None]
    activity: RoundActivity
    at: int = 0
    tasks: list[str] = field(default_factory=list)
    """The steps that were added one by one with a planning tool."""
    forms: dict[str, str | None] = field(default_factory=dict)
    """The normal forms of the product's files that differ from the start of the round."""
    states: set[frozenset[tuple[str, str | None]]] = field(default_factory=lambda: {frozenset()})
    """All that the product has been in the round."""

    def read(self, trajectory: Trajectory) -> RoundActivity:
        for step in trajectory.steps:
            if step.source == "agent":
                self._step(step)
            elif (question := _answered(step)) and self.at:
                self.activity.answered.append(Statement(step.step_id, self.at, question))
        texts = self.workspace.texts
        self.activity.after = {path: texts.get(path) for path in self.activity.before}
        self.activity.lost = frozenset(self.workspace.lost)
        self.activity.workspace = dict(texts)
        self.activity.origin = dict(self.origin)
        return self.activity

    def _step(self, step: Step) -> None:
        self.at += 1
        text = text_of(step.message)
        if text.strip():
            self.activity.messages.append(Statement(step.step_id, self.at, text))
        for result in call_results(step):
            self.at += 1
            effects = self.calls.read(result, step.step_id, self.at)
            self._add(step.step_id, effects, result.tables)
        self.activity.tokens[step.step_id] = _tokens(step)

    def _add(self, step: int, effects: CallEffects, tables: Sequence[Mapping[str, Any]]) -> None:
        at, activity = self.at, self.activity
        activity.reads += [FileRead(step, at, effects.summary, path) for path in effects.reads]
        begun = len(activity.edits)
        for change in effects.changes:
            self._edit(step, change, effects.summary)
        activity.state_changes += _state_changes_of(at, activity.edits[begun:], tables)
        activity.runs += effects.runs
        if effects.plan:
            self.tasks = [*self.tasks, effects.plan] if effects.adds_to_plan else []
            activity.plans.append(Statement(step, at, "\n".join(self.tasks) or effects.plan))
        if effects.question:
            activity.questions.append(Statement(step, at, effects.question))
        activity.commits += [Statement(step, at, message) for message in effects.commits]
        activity.uses_git |= effects.uses_git

    def _edit(self, step: int, change: TextChange, summary: str) -> None:
        before, after = self.workspace.apply(change)
        if before is not None and before == after:
            return
        path = change.path
        self.activity.before.setdefault(path, before)
        self.origin.setdefault(path, before)
        role = self.roles.of(path, after or before)
        hunks = read_diff(change.diff) if change.diff else hunks_between(before or "", after or "")
        kind = "added" if before is None and after is not None and change.content is not None else change.kind
        quote = f"{path}: {_first_lines(hunks)}" if hunks else f"{path}: {summary}"
        edit = FileEdit(step, self.at, quote, path, kind, role, before, after, hunks)
        self.activity.edits.append(replace(edit, effective=not edit.of_product or self._is_new_state(edit)))

    def _is_new_state(self, edit: FileEdit) -> bool:
        """Return whether the product came to something that it had not been before in the round."""
        if edit.path in self.workspace.lost or (edit.after is None and edit.kind != "deleted"):
            return True
        first = self.activity.before[edit.path]
        self.forms[edit.path] = None if edit.after is None else normal_form(edit.path, edit.after)
        if self.forms[edit.path] == (None if first is None else normal_form(edit.path, first)):
            del self.forms[edit.path]
        state = frozenset(self.forms.items())
        is_new = state not in self.states
        self.states.add(state)
        return is_new


def _answered(step: Step) -> str:
    """Return the question that the simulated user answers in a step; empty for any other step."""
    ours = (step.extra or {}).get("evocode")
    facts = ours.get("simulated_user") if isinstance(ours, dict) else None
    question = facts.get("question") if isinstance(facts, dict) else None
    return question if isinstance(question, str) else ""


def _state_changes_of(at: int, edits: Sequence[FileEdit], tables: Sequence[Mapping[str, Any]]) -> Iterator[StateChange]:
    """Yield the recorded changes of a call or, where there are none, changes made of its edits."""
    product = {edit.path for edit in edits if edit.of_product and edit.effective}
    for table in tables or map(_table, edits):
        yield StateChange(at, table, table["path"] in product)


def _table(edit: FileEdit) -> dict[str, Any]:
    """Return an edit as a recorded change."""
    table = {"path": edit.path, "kind": "deleted" if edit.kind == "deleted" else "added", "mode": None}
    if edit.after is not None:
        table["content"] = base64.b64encode(edit.after.encode("utf-8", "surrogateescape")).decode()
    return table


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
