"""Loading of a task directory: task.toml first, then its directories."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import tomli
from pydantic import ValidationError

from pytest_evocode.errors import TaskError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.tasks.compose_file import find_compose_file, read_compose_file
from pytest_evocode.tasks.consistency import check_config, check_services, check_suites
from pytest_evocode.tasks.layout import SINGLE_ROUND, find_files
from pytest_evocode.tasks.model import TaskConfig
from pytest_evocode.tasks.native import read_native_tests
from pytest_evocode.tasks.problems import explain, task_error
from pytest_evocode.tasks.resolution import resolve_rounds
from pytest_evocode.tasks.task import Task


def load_task(directory: Path) -> Task:
    """Read and check the task in ``directory``; nothing is started, and nothing in it is imported.

    Raises:
        TaskError: Something is wrong with the task. The message has a line per problem: the file, its line, the key and
            what to do. No other error is raised.
    """
    path, text, data, config = read_task_file(directory)
    names = tuple(step.name for step in config.steps) or (SINGLE_ROUND,)
    problems = check_config(config, names)
    compose = None
    if not problems:
        context = directory / "environment"
        compose = read_compose_file(found) if (found := find_compose_file(context)) is not None else None
        if compose is not None and config.environment.docker_image is None and compose.main_image is not None:
            named = config.environment.model_copy(update={"docker_image": compose.main_image})
            config = config.model_copy(update={"environment": named})
        if compose is not None and config.environment.healthcheck is None:
            checked = config.environment.model_copy(update={"healthcheck": compose.main_healthcheck()})
            config = config.model_copy(update={"environment": checked})
        files, problems = find_files(directory, config, compose)
        problems += [*check_suites(config, files), *check_services(config, compose)]
    if problems:
        raise task_error(problems, path, text, data)
    build = compose.main_build() if compose is not None and "build" in compose.main else None
    name = directory.name
    if name in ("", ".."):
        name = directory.resolve().name
    rounds, tests = resolve_rounds(config, files), read_native_tests(files)
    return Task(directory, name, config, rounds, tests, compose=compose, main_build=build)


class TaskSettings(NamedTuple):
    """A task.toml that follows the format; whether the task's directories do is another question."""

    path: Path
    text: str
    data: dict[str, Any]
    config: TaskConfig


def read_task_file(directory: Path) -> TaskSettings:
    """Read the task.toml in ``directory`` and check it by itself; raises TaskError as :func:`load_task` does."""
    path = directory / TASK_FILE
    text = _read(path)
    data = _parse(text, path)
    try:
        return TaskSettings(path, text, data, TaskConfig.model_validate(data))
    except ValidationError as error:
        raise task_error(explain(error), path, text, data) from None


def find_tasks(directory: Path) -> dict[str, Path]:
    """Return the directories of the tasks that ``directory`` is, or has directly in it, by the tasks' names."""
    places = (directory, *sorted(path.parent for path in directory.glob(f"*/{TASK_FILE}")))
    return {place.resolve().name: place for place in places if (place / TASK_FILE).is_file()}


def _read(path: Path) -> str:
    try:
        # Opening a pipe would never return.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TaskError("must be a file; a task's settings go there", path)
        content = path.read_bytes()
    except FileNotFoundError:
        if not path.parent.exists():
            raise TaskError("there is no such directory; name the directory of a task", path.parent) from None
        raise TaskError("there is no such file; create it, every task directory needs one", path) from None
    except OSError as error:
        raise TaskError(f"cannot be read ({error.strerror}); check the path and its permissions", path) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TaskError(f"not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8", path, line) from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise TaskError(f"not valid TOML: {error.msg} (column {error.colno}); correct it", path, error.lineno) from None
    except RecursionError:
        raise TaskError("not valid TOML: nested too deeply; use fewer levels", path) from None
    except ValueError as error:
        raise TaskError(f"not valid TOML: {error}; use a smaller number", path) from None
