"""Checks across the fields of task.toml: names that must match, and what Harbor allows and is not supported here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from pytest_evocode.tasks.allowlist import Allowlist
from pytest_evocode.tasks.compatibility import FILES, SUITE_COMPOSE, refusals
from pytest_evocode.tasks.compose_file import COMPOSE_FILES, MAIN, ComposeFile
from pytest_evocode.tasks.layout import RoundFiles
from pytest_evocode.tasks.model import Artifact, CollectHook, TaskConfig
from pytest_evocode.tasks.positions import Keys
from pytest_evocode.tasks.problems import Problem
from pytest_evocode.tasks.process import EVERY_ROUND
from pytest_evocode.tasks.resolution import network

NO_USE = "no suite of this task runs in an environment of its own; remove it"
_NO_PLACE_FOR_FILES = ("/proc", "/sys", "/dev")


def check_config(config: TaskConfig, round_names: tuple[str, ...]) -> list[Problem]:
    """Return every problem between the fields of ``config``; ``round_names`` are the names that references may use."""
    return [
        *_duplicates(config),
        *_requirement_chain(config, round_names),
        *_process(config, round_names),
        *_users(config, round_names),
        *refusals(config),
        *_phases(config),
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


def _duplicates(config: TaskConfig) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, step in enumerate(config.steps):
        if step.name in first:
            message = f"entry {first[step.name] + 1} has the same name; every step needs its own"
            yield Problem(message, ("steps", index, "name"))
        first.setdefault(step.name, index)


def _requirement_chain(config: TaskConfig, round_names: tuple[str, ...]) -> Iterator[Problem]:
    chain = config.metadata.requirement_chain
    for index, entry in enumerate(chain.steps if chain else ()):
        if entry.step not in round_names:
            message = f'no step is called "{entry.step}"; the steps are {", ".join(round_names)}'
            yield Problem(message, ("metadata", "requirement_chain", "steps", index, "step"))


def _users(config: TaskConfig, round_names: tuple[str, ...]) -> Iterator[Problem]:
    for name in config.metadata.evocode.users:
        if name not in round_names:
            message = f'no step is called "{name}"; the steps are {", ".join(round_names)}'
            yield Problem(message, ("metadata", "evocode", "users", name))


def _process(config: TaskConfig, round_names: tuple[str, ...]) -> Iterator[Problem]:
    process = config.metadata.evocode.process
    keys: Keys = ("metadata", "evocode", "process")
    known = f"the rounds are {', '.join(round_names)}"
    first: dict[str, int] = {}
    for index, requirement in enumerate(process.requirements):
        here: Keys = (*keys, "requirements", index)
        if requirement.id in first:
            message = f"entry {first[requirement.id] + 1} has the same id; every requirement needs its own"
            yield Problem(message, (*here, "id"))
        first.setdefault(requirement.id, index)
        if requirement.round not in (None, *round_names):
            yield Problem(f'no round is called "{requirement.round}"; {known}', (*here, "round"))
    for name in process.abstain:
        if name not in (EVERY_ROUND, *round_names):
            yield Problem(f'no round is called "{name}"; {known}', (*keys, "abstain", name))


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


def _phases(config: TaskConfig) -> Iterator[Problem]:
    steps = (step.agent if "agent" in step.model_fields_set else None for step in config.steps)
    agents = {network(config.environment, agent, config.agent) for agent in steps}
    # A network that is an allowlist in one round can be anything in the others.
    changes = any(isinstance(each, Allowlist) for each in agents)
    whole = network(config.environment, config.agent)
    for index, step in enumerate(config.steps):
        # Most steps leave this out, and there may be thousands of them.
        if "agent" in step.model_fields_set:
            keys: Keys = ("steps", index, "agent")
            mode = step.agent.network_mode
            if mode not in (None, whole) and not changes:
                message = (
                    f"all rounds share one environment, and [agent] or [environment] makes its network"
                    f' "{whole or "not set"}"; set network_mode there'
                )
                yield Problem(message, (*keys, "network_mode"), unsupported=True)
