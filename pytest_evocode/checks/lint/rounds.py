"""Lint rules about what does not fit between the rounds of a task, or between the task and its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.config_text import Keys, find_line


def find_round_mistakes(sources: TaskSources) -> Iterator[TaskError]:
    """Yield rounds out of order, a name that is not the directory's, missing solutions, and requests made twice."""
    yield from _disorder(sources)
    yield from _foreign_name(sources)
    yield from _missing_solutions(sources)
    yield from _repeated_requests(sources)


def _disorder(sources: TaskSources) -> Iterator[TaskError]:
    """Yield steps whose number is below that of an earlier step, as happens to names that were sorted as texts."""
    highest: dict[str, tuple[int, str]] = {}
    for index, step in enumerate(sources.task.config.steps):
        parts = re.fullmatch(r"(.*?)(\d+)", step.name)
        if parts is None:
            continue
        kind, number = parts[1], int(parts[2])
        before, name = highest.setdefault(kind, (number, step.name))
        if number < before:
            message = f"{step.name} comes after {name}; list the steps in the order in which they are played"
            yield _in_configuration(sources, ("steps", index, "name"), message)
        else:
            highest[kind] = number, step.name


def _foreign_name(sources: TaskSources) -> Iterator[TaskError]:
    info = sources.task.config.task
    if info is not None and info.name.rpartition("/")[2] != sources.task.name:
        message = f'the task is called "{info.name}" and its directory "{sources.task.name}"; rename one of them'
        yield _in_configuration(sources, ("task", "name"), message)


def _missing_solutions(sources: TaskSources) -> Iterator[TaskError]:
    if any(each.round.has_solution for each in sources.rounds):
        for each in sources.rounds:
            if not each.round.has_solution:
                path = each.round.directory / "solution" / "solve.sh"
                yield TaskError(
                    "is missing while other rounds have one, so the agent oracle cannot play the task; write it", path
                )


def _repeated_requests(sources: TaskSources) -> Iterator[TaskError]:
    first: dict[bytes, str] = {}
    for each in sources.rounds:
        earlier = first.setdefault(each.instruction.content.strip(), each.round.name)
        if earlier != each.round.name:
            message = f"is the same request as {earlier}'s; write what {each.round.name} asks for"
            yield TaskError(message, each.instruction.path, 1)


def _in_configuration(sources: TaskSources, keys: Keys, message: str) -> TaskError:
    file = sources.configuration
    return TaskError(message, file.path, find_line(file.text, keys))
