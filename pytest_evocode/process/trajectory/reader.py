"""Read recorded trajectories (ATIF) of any agent into the activity of each round. Nothing is run.

Where a task or a harness is unknown, something has to be guessed, or cannot be seen.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_evocode.process.rules import FILES
from pytest_evocode.process.trajectory.agent_tools import ToolUse, tool_use
from pytest_evocode.process.trajectory.call_effects import CallEffects, CallReader
from pytest_evocode.process.trajectory.events import FileEdit, FileRead, RoundActivity, StateChange, Statement
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.file_texts import (
    Hunk,
    Originals,
    TextChange,
    WorkspaceTexts,
    hunks_between,
    matching_paths,
    read_diff,
)
from pytest_evocode.process.trajectory.normal_forms import idle_names, names_used, normal_form
from pytest_evocode.process.trajectory.outputs import call_results, in_short_lines, text_of
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes
from pytest_evocode.trajectories.atif import Step, Trajectory, actions_of


def inferred_workdir(trajectories: Iterable[Trajectory]) -> str | None:
    """Return the directory that an agent worked in, by where it changed into and which files it edited.

    None where it used no absolute paths.
    """
    places: Counter[str] = Counter()
    files: list[str] = []
    for use in _uses(trajectories):
        places.update(FILES["changed_into"].findall(use.line))
        if use.cwd.startswith("/"):
            places[use.cwd] += 1
        files += [change.path for change in use.changes if change.path.startswith("/")]
    files = [path for path in files if not FILES["not_a_project"].match(path)]
    known = {
        posixpath.normpath(place): count for place, count in places.items() if not FILES["not_a_project"].match(place)
    }
    for place in sorted(known, key=lambda each: (-known[each], len(each))):
        if place != "/" and all(path.startswith(f"{place}/") for path in files):
            return place
    if not files:
        return None
    common = posixpath.commonpath([posixpath.dirname(path) for path in files])
    # A project's directory is above those that only sort its files.
    while posixpath.basename(common) in ("src", "lib", "tests", "test", "app") and common.count("/") > 1:
        common = posixpath.dirname(common)
    return common if common != "/" else None


def unseen_edits(trajectories: Iterable[Trajectory]) -> int:
    """Return in how many calls a script may have changed files, which no one recorded."""
    return sum(use.kind == "shell" and FILES.find(use.line, "writing_script") for use in _uses(trajectories))


def _uses(trajectories: Iterable[Trajectory]) -> Iterator[ToolUse]:
    for trajectory in trajectories:
        for step in trajectory.steps:
            for call in step.tool_calls or ():
                yield tool_use(call.function_name, call.arguments)


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
    """The absolute path of the workspace; inferred from the trajectories where it is None."""
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
        context.workdir or inferred_workdir(round_.trajectory for round_ in rounds),
        matching=lambda pattern: sorted({*context.matching(pattern), *matching_paths(workspace.texts, pattern)}),
        is_ours=lambda module: _is_ours(module, workspace, context.originals),
        recorded=any(is_watched(round_.trajectory) for round_ in rounds),
        known_text=workspace.text_of,
    )
    requests: list[str] = []
    for round_ in rounds:
        workspace.put(round_.brought)
        origin.update(round_.brought)  # What the task brings is not the agent's work.
        instruction = round_.instruction or _instruction(round_.trajectory)
        requests.append(instruction)
        activity = RoundActivity(round_.name, round_.index, instruction, tuple(requests))
        yield _RoundReader(context.roles, calls, workspace, origin, activity).read(round_.trajectory)


def is_watched(trajectory: Trajectory) -> bool:
    """Return whether changes of the workspace were recorded, so that where there are none, nothing was changed."""
    ours = (trajectory.extra or {}).get("evocode")
    if isinstance(ours, dict) and ours.get("watched"):
        return True
    return any(action.get("changes") for step in trajectory.steps for action in actions_of(step))


def _is_ours(module: str, workspace: WorkspaceTexts, originals: Originals) -> bool:
    names = (f"{module}.py", f"{module}/__init__.py", f"{module}/__main__.py")
    if any(path == name or path.endswith(f"/{name}") for path in workspace.texts for name in names):
        return True
    # A directory without __init__.py is a package, too, wherever it lies: src/ is the usual place.
    return any(f"/{module}/" in f"/{path}" for path in workspace.texts) or any(list(originals(name)) for name in names)


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
    calls_with_edits: list[tuple[int, slice, Sequence[Mapping[str, Any]]]] = field(default_factory=list)
    """By call, its position, which of the edits are its own, and the changes recorded of it."""
    said: set[str] = field(default_factory=set)
    """The words of the calls that changed files."""
    unknown: set[int] = field(default_factory=set)
    """The numbers of the edits after which a file's text was not known."""

    def read(self, trajectory: Trajectory) -> RoundActivity:
        for step in trajectory.steps:
            if step.source == "agent":
                self._step(step)
            elif (question := _answered(step)) and self.at:
                self.activity.answered.append(Statement(step.step_id, self.at, question))
        self._look_back()
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
            effects = self.calls.read(replace(result, output=in_short_lines(result.output)), step.step_id, self.at)
            self._add(step.step_id, effects, result.tables)
        self.activity.tokens[step.step_id] = _tokens(step)

    def _add(self, step: int, effects: CallEffects, tables: Sequence[Mapping[str, Any]]) -> None:
        at, activity = self.at, self.activity
        activity.reads += [FileRead(step, at, effects.summary, path) for path in effects.reads]
        begun = len(activity.edits)
        for change in effects.changes:
            self._edit(step, change, effects.summary)
        self.calls_with_edits.append((at, slice(begun, len(activity.edits)), tables))
        if effects.changes:
            self.said.update(_words(effects.says))
        activity.runs += effects.runs
        if plan := effects.use.plan:
            self.tasks = [*self.tasks, plan] if effects.use.adds_to_plan else []
            activity.plans.append(Statement(step, at, "\n".join(self.tasks) or plan))
        if effects.use.question:
            activity.questions.append(Statement(step, at, effects.use.question))
        activity.commits += [Statement(step, at, message) for message in effects.commits]
        activity.refused_by_git |= effects.refused_by_git

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
        if path in self.workspace.lost or (after is None and kind != "deleted"):
            self.unknown.add(len(self.activity.edits))
        self.activity.edits.append(FileEdit(step, self.at, quote, path, kind, role, before, after, hunks))

    def _look_back(self) -> None:
        """Find out, at the end of the round, what was of no effect, and which states the product went through."""
        activity = self.activity
        activity.idle = dict(self._idle_names())
        activity.edits[:] = self._with_effects()
        for at, numbers, tables in self.calls_with_edits:
            activity.state_changes += _state_changes_of(at, activity.edits[numbers], tables)
        activity.brought = self._is_brought()

    def _is_brought(self) -> bool:
        """Return whether the calls that changed the product say less than half of the words that are new in it."""
        activity = self.activity
        others = [text for path, text in self.workspace.texts.items() if path not in activity.before]
        known = {word for text in (*others, *activity.before.values()) for word in _words(text)}
        added = {
            word
            for edit in activity.edits
            if edit.of_product and edit.effective
            for hunk in edit.hunks
            for line in hunk.added
            for word in _words(line)
        }
        return len(added - known - self.said) > len(added - known) / 2

    def _idle_names(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the files that were there before the attempt with the names that it added in vain.

        A name in a request is meant for somebody, such as tests that the agent does not see; so is one in settings.
        """
        used = names_used(text for path, text in self.workspace.texts.items() if path.endswith(".py"))
        used |= frozenset(word for request in self.activity.requests for word in re.findall(r"\w+", request))
        versions: dict[str, list[str]] = {}
        for edit in self.activity.edits:
            if edit.of_product and edit.after is not None and edit.path.endswith(".py"):
                versions.setdefault(edit.path, []).append(edit.after)
        for path, texts in versions.items():
            if (first := self.origin[path]) is None:
                continue
            names = idle_names(first, [self.activity.before[path] or "", *texts], used)
            if FILES.find(path, "settings"):
                continue
            # A module of nothing else is meant for something.
            if path.endswith("__init__.py") or normal_form(path, texts[-1], names) != normal_form(path, ""):
                yield path, names

    def _with_effects(self) -> Iterator[FileEdit]:
        """Yield the edits, each with whether the product came to something that it had not been before in the round."""
        forms: dict[str, str | None] = {}  # Of the product's files that differ from the start of the round.
        states: set[frozenset[tuple[str, str | None]]] = {frozenset()}
        for number, edit in enumerate(self.activity.edits):
            if not edit.of_product or number in self.unknown:
                yield edit
                continue
            path, idle = edit.path, self.activity.idle.get(edit.path, frozenset())
            first = self.activity.before[path]
            forms[path] = None if edit.after is None else normal_form(path, edit.after, idle)
            if forms[path] == (None if first is None else normal_form(path, first, idle)):
                del forms[path]
            state = frozenset(forms.items())
            yield replace(edit, effective=state not in states)
            states.add(state)


def _words(text: str | None) -> Iterable[str]:
    return re.findall(r"\w+", text or "")


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
