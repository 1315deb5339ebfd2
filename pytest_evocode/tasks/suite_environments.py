"""Which environment a round's ``test.sh`` has for itself, where Harbor's ``environment_mode`` is ``separate``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.tasks.model import EnvironmentConfig, StepConfig, TaskConfig, VerifierConfig


@dataclass(frozen=True, slots=True)
class SuiteEnvironment:
    """An environment for one suite alone, in which nothing of the agent's is but the declared artifacts."""

    config: EnvironmentConfig
    """``[verifier.environment]`` of the step, else of the task, else ``[environment]``; with the image that counts."""
    context: Path | None
    """The directory of the Dockerfile that the image is built from, where that is not the task's ``environment/``."""
    brings_tests: bool
    """Whether the image is the verifier's own: such an image has ``/tests``, and no tests are put there."""
    own_variables: bool
    """Whether ``config.env`` is the verifier's, and not that of the environment in which the agent works."""


def is_separate(config: TaskConfig, step: StepConfig | None) -> bool:
    """Tell whether a round's suite has an environment for itself.

    That is what the step says, else the task; one that declares an environment says "separate".
    """
    said = (_said(each) for each in (step.verifier if step is not None else None, config.verifier) if each is not None)
    return next((mode for mode in said if mode is not None), "shared") == "separate"


def _said(verifier: VerifierConfig) -> str | None:
    if verifier.environment_mode is not None:
        return verifier.environment_mode
    return "separate" if verifier.environment is not None else None


def suite_environment(directory: Path, config: TaskConfig, step: StepConfig | None) -> SuiteEnvironment | None:
    """Return the environment that a round's ``test.sh`` has for itself; None where it has none.

    The image is the first of: ``docker_image`` of the step, a Dockerfile in the step's ``tests/``, ``docker_image`` of
    the task's ``[verifier.environment]``, a Dockerfile in the task's ``tests/``, and the image of ``[environment]``.
    """
    if not is_separate(config, step):
        return None
    of_task = config.verifier.environment
    of_step = step.verifier.environment if step is not None else None
    own = of_step or of_task
    settings = own or config.environment
    if own is not None and "build_timeout_sec" not in own.model_fields_set:
        settings = settings.model_copy(update={"build_timeout_sec": config.environment.build_timeout_sec})
    places = [(of_step, f"steps/{step.name}/tests")] if step is not None else []
    for environment, place in [*places, (of_task, "tests")]:
        image = environment.docker_image if environment is not None else None
        built = image is None and os.path.isfile(f"{directory}/{place}/Dockerfile")
        if image is not None or built:
            update = {"docker_image": image}
            return SuiteEnvironment(settings.model_copy(update=update), directory / place, True, own is not None)
    update = {"docker_image": config.environment.docker_image}
    return SuiteEnvironment(settings.model_copy(update=update), None, False, own is not None)
