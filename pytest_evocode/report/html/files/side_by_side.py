"""Writing the files of many tasks by several processes at once."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from pytest_evocode.report.html.files.task_files import State, Target, TaskOfReport
from pytest_evocode.results.loading import without_garbage_collection

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
