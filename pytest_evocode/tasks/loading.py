"""Loading of a task directory: task.toml, what steps leave out, and checks across fields and with directories."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import tomli
from pydantic import BaseModel, ValidationError

from pytest_evocode.errors import TaskError, TaskWarning
from pytest_evocode.names import TASK_FILE
from pytest_evocode.tasks.allowlist import Allowlist
from pytest_evocode.tasks.compatibility import FILES, SUITE_COMPOSE, refusals
from pytest_evocode.tasks.compose_file import COMPOSE_FILES, MAIN, ComposeFile, find_compose_file, read_compose_file
from pytest_evocode.tasks.config_text import Keys
from pytest_evocode.tasks.layout import SINGLE_ROUND, RoundFiles, find_files
from pytest_evocode.tasks.model import (
    EVERY_ROUND,
    AgentConfig,
    Artifact,
    CollectHook,
    EnvironmentConfig,
    StepConfig,
    TaskConfig,
    VerifierConfig,
    VerifyIn,
)
from pytest_evocode.tasks.native import read_native_tests
from pytest_evocode.tasks.problems import Problem, explain, placed, task_error
from pytest_evocode.tasks.task import Network, Round, Task
from pytest_evocode.tasks.text_files import decoded


def network(environment: EnvironmentConfig, *phases: AgentConfig | VerifierConfig | None) -> Network | None:
    """Return the network access that the first of ``phases`` gives, else the environment's; None where none says.

    A phase of None gives none.
    """
    for section in (*phases, environment):
        if section is not None and section.network_mode is not None:
            return Allowlist.of(section.allowed_hosts) if section.network_mode == "allowlist" else section.network_mode
    if environment.allow_internet is None:
        return None
    return "public" if environment.allow_internet else "no-network"


def change_types(config: TaskConfig) -> dict[str, tuple[str, ...]]:
    """Return the kinds of change by step name, in the order in which they are written, and each once."""
    chain = config.metadata.requirement_chain
    found: dict[str, tuple[str, ...]] = {}
    for entry in chain.steps if chain else ():
        found[entry.step] = tuple(dict.fromkeys((*found.get(entry.step, ()), *entry.change_types)))
    return found


def resolve_rounds(config: TaskConfig, files: list[RoundFiles]) -> tuple[Round, ...]:
    """Return the rounds of a task; ``files`` has an entry per step, or one where there are no steps."""
    changes = change_types(config)
    steps: tuple[StepConfig | None, ...] = config.steps or (None,)
    return tuple(
        _resolve(index, step, found, config, changes.get(found.name, ()))
        for index, (step, found) in enumerate(zip(steps, files, strict=True), 1)
    )


def _resolve(
    index: int, step: StepConfig | None, files: RoundFiles, config: TaskConfig, changes: tuple[str, ...]
) -> Round:
    agent: AgentConfig | None = None
    verifier: VerifierConfig | None = None
    if step is not None:
        agent = step.agent if "agent" in step.model_fields_set else None
        verifier = step.verifier if "verifier" in step.model_fields_set else None
    apart = files.suite_environment
    collect = config.verifier.collect
    if verifier is not None:
        collect = (*collect, *verifier.collect)
    verifier_env: Mapping[str, str] = config.verifier.env
    if verifier is not None and verifier.env:
        verifier_env = {**verifier_env, **verifier.env}
    return Round(
        index=index,
        **{each.name: getattr(files, each.name) for each in fields(files)},
        agent_timeout=_said(agent, config.agent, "timeout_sec"),
        verifier_timeout=_said(verifier, config.verifier, "timeout_sec"),
        agent_user=_said(agent, config.agent, "user"),
        verifier_user=_said(verifier, config.verifier, "user"),
        agent_network=network(config.environment, agent, config.agent),
        verifier_network=network(apart.config if apart else config.environment, verifier, config.verifier),
        setup_network=network(config.environment),
        verifier_env=verifier_env,
        verify_in=_verify_in(config.metadata.evocode.verify_in, files.has_script),
        collect=collect,
        solution_env=config.solution.env,
        min_reward=step.min_reward if step else None,
        healthcheck=step.healthcheck if step else None,
        artifacts=(*config.artifacts, *step.artifacts) if step else config.artifacts,
        change_types=changes,
        begins_conversation=step is not None and not step.inherit_prior_session,
    )


def _verify_in(said: VerifyIn | None, has_script: bool) -> VerifyIn:
    if said in (None, "separate"):
        return "clean" if has_script else "separate"
    return said


def _said(step: BaseModel | None, task: BaseModel, field: str) -> Any:
    return getattr(task if step is None or field not in step.model_fields_set else step, field)


NO_USE = "no suite of this task runs in an environment of its own; remove it"
_PROCESS: Keys = ("metadata", "evocode", "process")
_NO_PLACE_FOR_FILES = ("/proc", "/sys", "/dev")


def check_config(config: TaskConfig, round_names: tuple[str, ...]) -> list[Problem]:
    """Return every problem between the fields of ``config``; ``round_names`` are the names that references may use."""
    refused = [*refusals(config)]
    if of_other_system := [problem for problem in refused if problem.keys == ("environment", "os")]:
        return of_other_system  # What else is refused of such a task is so for no other reason.
    requirements = [requirement.id for requirement in config.metadata.evocode.process.requirements]
    return [
        *_duplicates([step.name for step in config.steps], ("steps",), "name", "step"),
        *_duplicates(requirements, (*_PROCESS, "requirements"), "id", "requirement"),
        *_unknown_rounds(config, round_names),
        *refused,
        *_state(config),
    ]


def check_suites(config: TaskConfig, files: Sequence[RoundFiles]) -> Iterator[Problem]:
    """Return what is wrong between task.toml and the suites that the task's directories have."""
    if config.metadata.evocode.verify_in == "separate" and all(found.has_script for found in files):
        message = (
            '"separate" is for native suites, and every round here is verified by a test.sh; '
            'use "clean", environment_mode = "separate" of [verifier], or write the suites for pytest'
        )
        yield Problem(message, ("metadata", "evocode", "verify_in"))
    yield from _native_suites(config, files)
    yield from _suites_apart(config, files)


def _native_suites(config: TaskConfig, files: Sequence[RoundFiles]) -> Iterator[Problem]:
    """Return what native suites cannot do of what is declared for them."""
    native = [found.name for found in files if not found.has_script]
    environment = config.verifier.environment
    if native and environment is not None:
        keys: Keys = ("verifier", "environment")
        if config.metadata.evocode.verify_in not in (None, "separate"):
            if len(native) == len(files):
                yield Problem(NO_USE, keys, unsupported=True)
        elif environment.docker_image is None:
            message = "it names no image; set docker_image to one that has Python 3.10 or newer, or remove it"
            yield Problem(message, keys, unsupported=True)
    for index, step in enumerate(config.steps):
        if step.name in native and step.verifier.environment is not None:
            message = "native suites of all rounds run in one environment; write [verifier.environment] for the task"
            yield Problem(message, ("steps", index, "verifier", "environment"), unsupported=True)


def _suites_apart(config: TaskConfig, files: Sequence[RoundFiles]) -> Iterator[Problem]:
    """Return what cannot be where a ``test.sh`` has an environment for itself."""
    apart = [found for found in files if found.suite_environment is not None]
    if not apart:
        return
    said = config.metadata.evocode.verify_in
    if said == "in-place":
        message = (
            f'"{said}" contradicts environment_mode = "separate" in [verifier] of {apart[0].name}; remove one of them'
        )
        yield Problem(message, ("metadata", "evocode", "verify_in"))
    names = {found.name for found in apart}
    for found in apart:
        context = found.suite_environment.context if found.suite_environment is not None else None
        for name in COMPOSE_FILES:
            if context is not None and (context / name).is_file():
                message = f"not supported yet: {context.name}/{name}: {FILES[SUITE_COMPOSE].refusal}"
                yield Problem(message, path=context / name)
    yield from _artifacts(config.artifacts, ())
    for index, step in enumerate(config.steps):
        if step.name in names:
            yield from _artifacts(step.artifacts, ("steps", index))


def check_services(config: TaskConfig, compose: ComposeFile | None) -> Iterator[Problem]:
    """Return what is wrong with the services that task.toml names."""
    names = compose.services if compose is not None else (MAIN,)
    known = f"the services are {', '.join(names)}" if compose is not None else "there is no compose file, only main"
    starts = config.metadata.evocode.sidecars
    collected = set()
    for keys, named in _named_services(config):
        if named not in names and (compose is None or compose.lists_all):
            yield Problem(f'no service is called "{named}"; {known}', keys)
        collected.add(named)
    for name, start in starts.items():
        keys = ("metadata", "evocode", "sidecars", name)
        if name == MAIN:
            yield Problem("every fork has the files of main; remove it", keys)
        elif name not in names and (compose is None or compose.lists_all):
            yield Problem(f'no service is called "{name}"; {known}', keys)
        elif name in collected and start != "snapshot":
            message = f'something is collected from {name}, and "{start}" keeps nothing of it; write "snapshot"'
            yield Problem(message, keys)


def _named_services(config: TaskConfig) -> Iterator[tuple[Keys, str]]:
    """Return the services of artifacts and collect commands, with where they are named."""
    places: list[tuple[Keys, Sequence[Artifact], Sequence[CollectHook]]]
    places = [((), config.artifacts, config.verifier.collect)]
    for index, step in enumerate(config.steps):
        places.append((("steps", index), step.artifacts, step.verifier.collect))
    for keys, artifacts, hooks in places:
        for number, artifact in enumerate(artifacts):
            if artifact.service not in (None, MAIN):
                yield (*keys, "artifacts", number, "service"), str(artifact.service)
        for number, hook in enumerate(hooks):
            if hook.service != MAIN:
                yield (*keys, "verifier", "collect", number, "service"), hook.service


def _artifacts(artifacts: Sequence[Artifact], keys: Keys) -> Iterator[Problem]:
    for index, artifact in enumerate(artifacts):
        source = PurePosixPath(artifact.source)
        if any(source.is_relative_to(each) for each in _NO_PLACE_FOR_FILES):
            message = f"{source} cannot be put into the environment of a separate verifier; name files or directories"
            yield Problem(message, (*keys, "artifacts", index))


def _duplicates(names: Sequence[str], keys: Keys, field: str, what: str) -> Iterator[Problem]:
    """Return which entries of the array at ``keys`` have a name that an earlier one has."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            message = f"entry {first[name] + 1} has the same {field}; every {what} needs its own"
            yield Problem(message, (*keys, index, field))


def _references(config: TaskConfig) -> Iterator[tuple[Keys, str, str]]:
    """Yield where rounds are named, by which name, and what a round is called there."""
    chain = config.metadata.requirement_chain
    for index, entry in enumerate(chain.steps if chain else ()):
        yield ("metadata", "requirement_chain", "steps", index, "step"), entry.step, "step"
    evocode = config.metadata.evocode
    for index, requirement in enumerate(evocode.process.requirements):
        if requirement.round is not None:
            yield (*_PROCESS, "requirements", index, "round"), requirement.round, "round"
    for name in evocode.process.abstain:
        if name != EVERY_ROUND:
            yield (*_PROCESS, "abstain", name), name, "round"
    for name in evocode.users:
        yield ("metadata", "evocode", "users", name), name, "step"


def _unknown_rounds(config: TaskConfig, round_names: tuple[str, ...]) -> Iterator[Problem]:
    for keys, name, what in _references(config):
        if name in round_names:
            continue
        others = f"the {what}s are {', '.join(round_names)}"
        if round_names == (SINGLE_ROUND,):  # Nobody but the format may have given the only round its name.
            others = f'add [[steps]] with name = "{name}", or, in a task of one round, call it {SINGLE_ROUND}'
        yield Problem(f'no {what} is called "{name}"; {others}', keys)


def _state(config: TaskConfig) -> Iterator[Problem]:
    workdir = config.environment.workdir
    for index, path in enumerate(config.metadata.evocode.state):
        if workdir is not None and PurePosixPath(path).is_relative_to(workdir):
            message = f"{path} is in the working directory {workdir}, which is always carried over; remove it"
            yield Problem(message, ("metadata", "evocode", "state", index))
    evocode = config.metadata.evocode
    for index, path in enumerate(evocode.verifier_state):
        keys = ("metadata", "evocode", "verifier_state", index)
        theirs = [each for each in (workdir, *evocode.state) if each is not None]
        shared = next((each for each in theirs if _overlap(path, each)), None)
        if shared is not None:
            yield Problem(f"{path} and {shared}, which agents leave behind, lie in one another; use another path", keys)
        if evocode.verify_in == "in-place":
            message = f'with verify_in = "in-place" suites find {path} as they left it, and agents do, too; remove it'
            yield Problem(message, keys)


def _overlap(path: str, other: str) -> bool:
    return PurePosixPath(path).is_relative_to(other) or PurePosixPath(other).is_relative_to(path)


UnknownKeys = Literal["warn", "error", "ignore"]


def load_task(directory: Path, *, unknown_keys: UnknownKeys = "warn", to_show: bool = False) -> Task:
    """Read and check the task in ``directory``; nothing is started, and nothing in it is imported.

    Args:
        directory: The task's directory.
        unknown_keys: What becomes of keys that the format does not know, and of what else a task can be loaded with: a
            :class:`~pytest_evocode.errors.TaskWarning` for each, an error, or nothing.
        to_show: Whether it is to be looked at and not run, so that what is missing in directories becomes the same.

    Raises:
        TaskError: Something is wrong with the task. The message has a line per problem: the file, its line, the key and
            what to do. No other error is raised.
    """
    path, text, data, config, passed_over = read_task_file(directory)
    if passed_over and unknown_keys == "error":
        raise task_error(passed_over, path, text, data)
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
        if to_show:
            problems = [replace(problem, unread=problem.unread or ()) for problem in problems]
        problems += [*check_suites(config, files), *check_services(config, compose)]
    if any(problem.unread is None or unknown_keys == "error" for problem in problems):
        raise task_error(problems, path, text, data)
    passed_over += tuple(problems)
    build = compose.main_build() if compose is not None and "build" in compose.main else None
    name = directory.name
    if name in ("", ".."):
        name = directory.resolve().name
    rounds, tests = resolve_rounds(config, files), read_native_tests(files)
    unread = tuple(placed(passed_over, path, text, data))
    task = Task(directory, name, config, rounds, tests, compose=compose, main_build=build, unread=unread)
    if unknown_keys == "warn":
        warn_of_unread(task)
    return task


def warn_of_unread(task: Task, clean: Callable[[str], str] = str) -> None:
    """Warn of all that a task was loaded without, as Python does of a line of the task.toml.

    Raises :class:`~pytest_evocode.errors.TaskWarning` where a filter makes it an error. ``clean`` is for the messages.
    """
    for each in task.unread:
        warnings.warn_explicit(clean(each.message), TaskWarning, str(each.path), each.line or 1)


class TaskSettings(NamedTuple):
    """A task.toml that follows the format; whether the task's directories do is another question."""

    path: Path
    text: str
    data: dict[str, Any]
    config: TaskConfig
    passed_over: tuple[Problem, ...]
    """Keys that the format does not know, and wrong values of keys that nothing here reads."""


def read_task_file(directory: Path) -> TaskSettings:
    """Read the task.toml in ``directory`` and check it by itself; raises TaskError as :func:`load_task` does."""
    path = directory / TASK_FILE
    text = _read(path)
    data = read = _parse(text, path)
    passed_over: list[Problem] = []
    while True:
        try:
            return TaskSettings(path, text, data, TaskConfig.model_validate(read), tuple(passed_over))
        except ValidationError as error:
            passed_over += (problems := explain(error))
        parts = {problem.unread for problem in problems if problem.unread is not None}
        if any(problem.unread is None for problem in problems):
            raise task_error(passed_over, path, text, data)
        for keys in sorted(parts, key=len, reverse=True):  # A table is left out after what is in it.
            read = _without(read, keys)


def _without(value: Any, keys: Keys) -> Any:
    """Return a copy of a table, or of an array, without what is at ``keys``."""
    key, *below = keys
    copied = value.copy()
    if below:
        copied[key] = _without(copied[key], tuple(below))
    else:
        del copied[key]
    return copied


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
    return decoded(content, path)


_MARK = "\ufeff"


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        if text[error.pos : error.pos + 1] == _MARK:
            message = f"not valid TOML: column {error.colno} has a byte order mark, which editors hide; remove it"
            raise TaskError(f"{message}, and save the file as UTF-8 without one", path, error.lineno) from None
        raise TaskError(f"not valid TOML: {error.msg} (column {error.colno}); correct it", path, error.lineno) from None
    except RecursionError:
        raise TaskError("not valid TOML: nested too deeply; use fewer levels", path) from None
    except ValueError as error:
        raise TaskError(f"not valid TOML: {error}; use a smaller number", path) from None
