"""The trajectory of a round for the viewer: its steps in parts of bounded size, and what they changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from pytest_evocode.process.trajectory.outputs import text_of
from pytest_evocode.report.html.bounded import bounded
from pytest_evocode.report.html.changes import RoundChanges, change_data, is_change
from pytest_evocode.report.html.step import ShownStep, shown_step, unrecorded_notes
from pytest_evocode.results.plain_files import open_plain

Steps = list[dict[str, Any]]

#: Characters of JSON that a part has before it is full.
PART = 2 * 2**20
_LARGEST = 256 * 2**20  # bytes of a file
_MOST_VALUES = 16_000_000
_MOST_STEPS = 200_000
_NOTES = 2000  # characters
_DEEPEST = 4  # subagents within one another


@dataclass(slots=True)
class ShownTrajectory:
    """What is known of a round from its trajectory, beside its steps."""

    steps: int = 0
    first: list[int] = field(default_factory=list)
    """The number of steps before each part."""
    notes: str = ""
    watched: bool = False
    """Whether changes of files were recorded."""
    changes: list[dict[str, Any]] | None = None
    """Changes of the workspace in the round; None where nothing was recorded."""
    edits: list[tuple[int, str]] = field(default_factory=list)
    """The files that steps edited, in order, by the step's id."""
    problem: str = ""
    """What is wrong with the file; empty for nothing."""

    @property
    def data(self) -> dict[str, Any] | None:
        """What ``RoundData.trajectory`` says; None where there are no steps."""
        if not self.steps:
            return None
        return {"steps": self.steps, "parts": len(self.first), "first": self.first, "notes": self.notes}


def trajectory_parts(
    path: Path, write: Callable[[int, Steps], None], *, within: Path | None = None
) -> ShownTrajectory | None:
    """Read the trajectory in a file once, and hand its steps over part by part.

    Args:
        path: The file, in ATIF.
        write: Takes the number of a part, from 1, and its steps.
        within: The attempt's directory, which the file has to lie in; None allows any place.

    Returns:
        What else is known from it, with what is wrong with it; None where there is no such file.
    """
    shown = ShownTrajectory()
    document = _read(path, within, shown)
    if document is None:
        return None
    agent = document.get("agent")
    model = agent.get("model_name") if isinstance(agent, dict) else None
    model = model if isinstance(model, str) else ""
    ours = _table(_table(document.get("extra")).get("evocode"))
    shown.watched = ours.get("watched") is True
    changes, parts = RoundChanges(), _Parts(write, shown)
    recorded = shown.watched
    steps = _steps(document)
    for raw, id, whose in islice(steps, _MOST_STEPS):
        step = shown_step(raw, id, model=model, watched=shown.watched)
        if whose:
            step.data["remarks"].insert(0, bounded(f"of the subagent {whose}", 200))
        recorded = recorded or bool(step.tables)
        changes.add(step.tables, id)
        shown.edits += ((id, path) for path in dict.fromkeys(step.edited))
        parts.add(step)
    endings = _endings(ours)
    parts.close(endings)
    left_out = sum(1 for _ in steps)
    by_no_call = [table for table in _list(ours.get("changes")) if is_change(table)]
    changes.add(by_no_call, None)
    notes = [text_of(document.get("notes")), *endings]
    if left_out:
        notes.insert(0, f"Of {left_out + _MOST_STEPS:,} steps the first {_MOST_STEPS:,} are shown; the file has all.")
    if by_no_call:
        notes.append(f"Files that no call changed, such as by a program in the background: {len(by_no_call)}.")
    notes += unrecorded_notes(ours.get("unrecorded"))
    if document.get("continued_trajectory_ref"):
        notes.append(f"It goes on in {document['continued_trajectory_ref']}.")
    shown.notes = bounded("\n".join(filter(None, notes)), _NOTES)
    shown.changes = changes.result() if recorded or by_no_call else None
    if left_out and shown.changes is not None:
        shown.changes.append(change_data("...", "changed", note="changes of steps that are not shown are left out"))
    return shown


def _read(path: Path, within: Path | None, shown: ShownTrajectory) -> dict[str, Any] | None:
    """Return the document in a file, as far as it can be read; None where there is no file."""
    try:
        with open_plain(path, within=within) as file:
            if (size := os.fstat(file.fileno()).st_size) > _LARGEST:
                shown.problem = f"{path}: it has {size:,} bytes, and up to {_LARGEST:,} are shown; look at the file"
                return {}
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        shown.problem = f"{path}: it cannot be read: {error.strerror}; restore it"
        return {}
    # Each value takes a multiple of the bytes that it is written with.
    if (values := sum(data.count(mark) for mark in b",[{")) > _MOST_VALUES:
        shown.problem = f"{path}: it has {values:,} values, and up to {_MOST_VALUES:,} are shown; look at the file"
        return {}
    document, why = _parsed(data)
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        shown.problem = f"{path}: it is no trajectory in ATIF{f' ({why})' if why else ''}; restore it, or remove it"
        return {}
    if why:
        shown.problem = f"{path}: it is damaged ({why}); shown are the steps before that; restore it"
    return document


def _parsed(data: bytes) -> tuple[Any, str]:
    """Return the JSON value of some bytes, or of those before the first error, and what is wrong."""
    try:
        return from_json(data, cache_strings="keys"), ""
    except ValueError as error:
        why = bounded(str(error), 200)
    try:
        # The standard library takes half surrogate pairs, which programs print now and then.
        return json.loads(data.decode("utf-8", "replace")), ""
    except (ValueError, RecursionError):
        pass
    try:
        return from_json(data.decode("utf-8", "replace"), allow_partial=True), why
    except ValueError:
        return None, why


class _Numbers:
    """Gives each step a number that no other has: its own where it can be."""

    def __init__(self) -> None:
        self._given: set[int] = set()
        self._highest = 0

    def of(self, step: Any) -> int:
        """Return the number of the next step."""
        id = step.get("step_id") if isinstance(step, dict) else None
        if not isinstance(id, int) or isinstance(id, bool) or id in self._given or not 0 <= id < 2**53:
            id = self._highest + 1
        self._given.add(id)
        self._highest = max(self._highest, id)
        return id


def _steps(
    document: dict[str, Any], whose: str = "", numbers: _Numbers | None = None
) -> Iterator[tuple[Any, int, str]]:
    """Yield each step with its number and the subagent whose it is, and forget it in the document."""
    numbers = numbers or _Numbers()
    raw = _list(document.get("steps"))
    raw.reverse()
    while raw:
        step = raw.pop()
        yield step, numbers.of(step), whose
    for number, subagent in enumerate(_list(document.get("subagent_trajectories")), start=1):
        if isinstance(subagent, dict) and whose.count("/") < _DEEPEST:
            agent = _table(subagent.get("agent"))
            name = str(subagent.get("trajectory_id") or agent.get("name") or number)
            yield from _steps(subagent, f"{whose}/{name}" if whose else name, numbers)


class _Parts:
    """Collects steps until a part is full; the last step is kept back, because what ended the turn is said there."""

    def __init__(self, write: Callable[[int, Steps], None], shown: ShownTrajectory) -> None:
        self._write = write
        self._shown = shown
        self._part: Steps = []
        self._size = 0
        self._last: dict[str, Any] | None = None

    def add(self, step: ShownStep) -> None:
        """Add the next step."""
        if self._last is not None:
            self._take(self._last)
        self._last = step.data

    def close(self, endings: list[str]) -> None:
        """Write what is left, with how the turn ended at its last step."""
        if self._last is not None:
            self._last["remarks"] += endings
            self._take(self._last)
        if self._part:
            self._write(len(self._shown.first), self._part)

    def _take(self, step: dict[str, Any]) -> None:
        size = len(json.dumps(step))
        if self._part and self._size + size > PART:
            self._write(len(self._shown.first), self._part)
            self._part, self._size = [], 0
        if not self._part:
            self._shown.first.append(self._shown.steps)
        self._part.append(step)
        self._size += size
        self._shown.steps += 1


def _endings(ours: dict[str, Any]) -> list[str]:
    """Return how the turn ended, where the agent did not end it."""
    endings = []
    if ours.get("timed_out"):
        endings.append("The turn ran into its time limit.")
    if stopped := ours.get("stopped"):
        endings.append(bounded(f"The turn was ended: {stopped}", _NOTES))
    if ours.get("killed"):
        endings.append("The agent was killed.")
    if isinstance(replayed := ours.get("replayed"), dict):
        endings.append(bounded(f"This is a replay: {json.dumps(replayed)}", _NOTES))
    return endings


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
