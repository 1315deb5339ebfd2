"""Checks across the fields of task.toml: names that must match, and what Harbor allows and is not supported here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from pytest_evocode.tasks.allowlist import Allowlist
from pytest_evocode.tasks.compatibility import SHARED_VERIFIER, refusals
from pytest_evocode.tasks.layout import RoundFiles
from pytest_evocode.tasks.model import TaskConfig
from pytest_evocode.tasks.positions import Keys
from pytest_evocode.tasks.problems import Problem
from pytest_evocode.tasks.process import EVERY_ROUND
from pytest_evocode.tasks.resolution import network


def check_config(config: TaskConfig, round_names: tuple[str, ...]) -> list[Problem]:
    """Return every problem between the fields of ``config``; ``round_names`` are the names that references may use."""
    return [
        *_duplicates(config),
        *_requirement_chain(config, round_names),
        *_process(config, round_names),
        *refusals(config),
        *_phases(config),
        *_state(config),
    ]


def check_suites(config: TaskConfig, files: Sequence[RoundFiles]) -> Iterator[Problem]:
    """Return what is wrong between task.toml and the suites that the task's directories have."""
    if config.metadata.evocode.verify_in == "separate" and all(found.has_script for found in files):
        message = (
            '"separate" is for native suites, and every round here is verified by a test.sh; '
            'use "clean" or "fork", or write the suites for pytest'
        )
        yield Problem(message, ("metadata", "evocode", "verify_in"))
    keys: Keys = ("verifier", "environment")
    if (environment := config.verifier.environment) is not None:
        if all(found.has_script for found in files) or config.metadata.evocode.verify_in not in (None, "separate"):
            yield Problem(SHARED_VERIFIER, keys, unsupported=True)
        elif environment.docker_image is None:
            message = "it names no image; set docker_image to one that has Python 3.10 or newer, or remove it"
            yield Problem(message, keys, unsupported=True)


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
        if "verifier" in step.model_fields_set and step.verifier.environment is not None:
            message = "native suites of all rounds run in one environment; write [verifier.environment] for the task"
            yield Problem(message, ("steps", index, "verifier", "environment"), unsupported=True)
