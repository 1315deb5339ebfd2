"""Writes down how the services of a compose file were and what they printed, after a turn and after a suite."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from pytest_evocode.environments import Environment
from pytest_evocode.environments.services import ServicesEnvironment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks.atomic_write import write_atomically

SERVICES = "services"
"""The directory of what is written, in that of a round, and in that of its suite's logs."""
STATES = "services.json"

logger = logging.getLogger(__name__)


def record_services(environment: Environment, directory: Path, scrubber: Scrubber) -> None:
    """Write the states and logs of an environment's services into a directory, without secrets.

    What the engine does not tell is left out. Raises OSError.
    """
    if not isinstance(environment, ServicesEnvironment):
        return
    try:
        states = environment.service_states()
        logs = {name: environment.service_log(name) for name in states}
    except EnvironmentFault as error:
        logger.info("nothing is written of services: %s", error)
        return
    if states:
        write_atomically(directory / STATES, json.dumps(states, indent=1) + "\n")
    for name, printed in logs.items():
        write_atomically(directory / f"{name}.log", scrubber.text(printed.decode("utf-8", "replace")))
