"""The files of the tasks in a report, with those of their attempts; written anew only where they changed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError

from pytest_evocode.errors import TaskError
from pytest_evocode.metrics.failures import RequirementCounts
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.html.attempt import attempt_data, with_cases
from pytest_evocode.report.html.bounded import bounded
from pytest_evocode.report.html.case_sources import CaseSources
from pytest_evocode.report.html.cells import case_failures_of, cells_of
from pytest_evocode.report.html.contents import Redaction
from pytest_evocode.report.html.folder import packed, stamp, text_stamp
from pytest_evocode.report.html.task import Lineage, lineage_of, task_data
from pytest_evocode.results.loading import StoredAttempt, without_garbage_collection
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.tasks.lockfile import content_hash

_ID = 1000  # characters of a requirement's name
State = dict[str, Any]
"""What the report knows of a task between two times that it is written, as JSON has it."""


#: Fields of an attempt, its rounds and their trajectories that have no words of agents and programs.
_OURS = frozenset({"path", "made_by", "problems", "cause", "stopped", "flags", "node_id", "notes"})


class _KnownAttempt(BaseModel):
    stamp: str
    files: list[str]
    problems: list[str]
    cells: str
    failures: list[tuple[int, dict[str, int]]]


class _KnownTask(BaseModel):
    stamp: str
    attempts: dict[str, _KnownAttempt]
    requirements: list[dict[str, Any]]


_KNOWN: TypeAdapter[dict[str, _KnownTask]] = TypeAdapter(dict[str, _KnownTask])


def known_tasks(state: Mapping[str, Any]) -> dict[str, State]:
    """Return what a report's state knows of tasks; nothing where somebody has damaged it."""
    try:
        _KNOWN.validate_python(tasks := state.get("tasks", {}))
    except ValidationError:
        return {}
    return {**tasks}


def known_overview(state: Mapping[str, Any]) -> State:
    """Return what the overview was made from when it was last written, and its files; damaged, it is not known."""
    found = state.get("overview")
    files = found.get("files") if isinstance(found, dict) else None
    is_whole = isinstance(files, list) and all(isinstance(each, str) for each in files)
    return {"made_from": found.get("made_from"), "files": files} if found and is_whole else {}


class Target(Protocol):
    """Where files of a report go."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""

    def keep(self, name: str) -> bool:
        """Leave a file as it is; return False where it is not there."""


@dataclass(frozen=True, slots=True)
class TaskOfReport:
    """A task with the attempts at it."""

    id: str
    name: str
    attempts: Sequence[tuple[str, StoredAttempt]]
    """With their ids."""
    counting: frozenset[str]
    """The ids of those that tell which requirements fail."""
    directory: Path | None
    """Where the task is found; None where it is not."""
    is_under_way: Callable[[StoredAttempt], bool]
    redaction: Redaction

    def write(self, target: Target, before: State) -> State:
        """Write what changed of the task's files.

        Args:
            target: Where to.
            before: What this returned when the report was last written; empty where it never was.

        Returns:
            The stamps of what the files were made from, the files' names, and what the index wants of attempts.
        """
        known = before.get("attempts", {})
        stamps = {id_: self._stamp(attempt) for id_, attempt in self.attempts}
        task_stamp = stamp(self.directory) if self.directory is not None else ""
        unchanged = {
            id_
            for id_, found in stamps.items()
            if id_ in known and known[id_]["stamp"] == found and all(map(target.keep, known[id_]["files"]))
        }
        counting = sorted(self.counting)
        is_same = before.get("stamp") == task_stamp and known.keys() == stamps.keys()
        is_same = is_same and before.get("counting") == counting
        if is_same and len(unchanged) == len(stamps) and target.keep(self._own):
            return before
        lineages, attempts, sources = [], {}, CaseSources(self.directory)
        counts = RequirementCounts()
        for id_, attempt in self.attempts:
            whole, problems = with_cases(attempt)
            lineages.append(lineage_of(whole, id=id_))
            if id_ in self.counting:
                counts.add(whole.record.rounds)
            if id_ in unchanged:
                attempts[id_] = known[id_]
            else:
                attempts[id_] = {"stamp": stamps[id_], **self._write_attempt(target, id_, whole, problems, sources)}
        values = self._task_data(lineages)
        requirements = [asdict(each) | {"requirement": bounded(each.requirement, _ID)} for each in counts.worst()]
        if any(attempt.layout != "evocode" for _, attempt in self.attempts):
            values, requirements = self.redaction.secrets([values, requirements])
        target.write(self._own, packed(f"tasks/{self.id}", values))
        return {"stamp": task_stamp, "attempts": attempts, "counting": counting, "requirements": requirements}

    def names(self, state: State) -> Iterator[str]:
        """Yield the names of the files that :meth:`write` wrote or kept when it returned ``state``."""
        yield self._own
        for each in state["attempts"].values():
            yield from each["files"]

    @property
    def _own(self) -> str:
        return f"data/tasks/{self.id}.js"

    def _stamp(self, attempt: StoredAttempt) -> str:
        # Its files may have changed since it was loaded, and then it has fewer rounds than they say.
        loaded = len(attempt.record.rounds), attempt.finished, self.is_under_way(attempt)
        return f"{stamp(attempt.path)} {loaded} {text_stamp(str(self.directory or ''))}"

    def _write_attempt(
        self, target: Target, id_: str, attempt: StoredAttempt, problems: Sequence[str], sources: CaseSources
    ) -> State:
        files = [f"data/attempts/{id_}.js"]
        # Sessions take secrets out of all that they write; other harnesses may not.
        clean: Callable[[Any], Any] = self.redaction.secrets if attempt.layout != "evocode" else lambda value: value

        def write_part(index: int, part: int, steps: list[dict[str, Any]]) -> None:
            name = f"trajectories/{id_}-{index}-{part}"
            files.append(f"data/{name}.js")
            target.write(files[-1], packed(name, clean(steps)))

        values = attempt_data(
            attempt,
            id=id_,
            write_part=write_part,
            task_file=None if self.directory is None else self.directory / TASK_FILE,
            under_way=self.is_under_way(attempt),
            problems=problems,
            sources=sources,
        )
        self._redact_own(values)
        target.write(files[0], packed(f"attempts/{id_}", clean(values)))
        return {
            "files": files,
            "problems": values["problems"],
            "cells": cells_of(attempt, under_way=self.is_under_way(attempt)),
            # JSON has no numbers as keys.
            "failures": [[index, kinds] for index, kinds in case_failures_of(attempt).items()],
        }

    def _redact_own(self, values: dict[str, Any]) -> None:
        """Redact what pytest-evocode itself says of an attempt."""
        for place in (values, *values["rounds"], *(each["trajectory"] or {} for each in values["rounds"])):
            for name in _OURS.intersection(place):
                place[name] = self.redaction.values(place[name])

    def _task_data(self, lineages: Sequence[Lineage]) -> dict[str, Any]:
        task, note = self._read()
        return task_data(self.name, lineages, task, id=self.id, note=note)

    def _read(self) -> tuple[Task | None, str]:
        """Return the task, where it can be read, and what is to be known of it."""
        if self.directory is None:
            return None, ""
        try:
            task = load_task(self.directory, unknown_keys="ignore")
        except (TaskError, OSError) as error:
            return None, str(self.redaction.values(f"The task cannot be read: {error}"))
        hashes = {attempt.record.task_hash for _, attempt in self.attempts} - {""}
        if hashes and content_hash(self.directory) not in hashes:
            return task, "The task's files have changed since these attempts were made."
        return task, ""


_MOST = 4
#: Below so many attempts a second process takes as long to start as it saves.
_FEWEST_ATTEMPTS = 400

_write: Callable[[int], State] | None = None
"""What a child process does, which it has from its parent by the fork."""


def write_tasks(
    tasks: Sequence[TaskOfReport], target: Target, before: Mapping[str, State], *, processes: int | None = None
) -> dict[str, State]:
    """Write the files of tasks, and return what is to be known of each, by its id.

    Args:
        tasks: The tasks.
        target: Where to.
        before: What this returned when the report was last written.
        processes: How many to use; None is one per core where there is enough to do.
    """

    def write(number: int) -> State:
        return tasks[number].write(target, before.get(tasks[number].id, {}))

    if processes is None:
        processes = min(len(os.sched_getaffinity(0)), _MOST)
        if sum(len(task.attempts) for task in tasks) < _FEWEST_ATTEMPTS:
            processes = 1
    with without_garbage_collection():
        if processes == 1:
            states = [write(number) for number in range(len(tasks))]
        else:
            states = _by_processes(write, len(tasks), processes)
    for task, state in zip(tasks, states, strict=True):
        for name in task.names(state):
            target.keep(name)
    return {task.id: state for task, state in zip(tasks, states, strict=True)}


def _by_processes(write: Callable[[int], State], number: int, processes: int) -> list[State]:
    global _write
    _write = write
    try:
        # Forked, so that what was loaded is there without being sent.
        with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
            return list(pool.map(_write_one, range(number), chunksize=max(1, number // (processes * 8))))
    finally:
        _write = None


def _write_one(number: int) -> State:
    assert _write is not None
    return _write(number)
