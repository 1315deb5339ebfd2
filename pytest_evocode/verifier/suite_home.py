"""Where the native suites of a task run apart from the program under test: an image, in an engine, with a Python."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from pytest_evocode.environments import Engine
from pytest_evocode.environments.choice import bare_system
from pytest_evocode.errors import EnvironmentUnavailable, NoPython
from pytest_evocode.tasks import Task
from pytest_evocode.verifier.toolbox import Toolbox, find_toolbox

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SuiteHome:
    """What verifier environments of a task are made of."""

    engine: Engine
    task: Task
    """The task, with the environment that its suites run in."""
    toolbox: Toolbox


def find_suite_home(engine: Engine, task: Task) -> SuiteHome:
    """Return where a task's suites run apart.

    That is the image that ``[verifier.environment]`` names, else the task's own as built, else the system of this
    machine in a sandbox, where the task's image has no Python that can run pytest.

    Raises:
        NoPython: None of these can run a suite.
        EnvironmentFault: The engine failed.
    """
    named = task.config.verifier.environment
    if named is not None:
        task = replace(task, config=task.config.model_copy(update={"environment": named}))
    try:
        return SuiteHome(engine, task, find_toolbox(engine, task))
    except NoPython as error:
        if named is not None:
            raise
        without = error
    try:
        engine, task = bare_system(task.alone())
    except EnvironmentUnavailable as error:
        raise NoPython(
            f"{without.message}\nOr have the suite run in a sandbox beside it, which cannot be had here: {error}",
            without.path,
        ) from None
    logger.info("%s: its suites run in a sandbox with the system of this machine", task.name)
    return SuiteHome(engine, task, find_toolbox(engine, task))
