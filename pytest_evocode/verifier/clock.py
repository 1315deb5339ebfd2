"""Has programs of an environment see a clock that is days ahead, to find suites that depend on the date."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from pytest_evocode.environments import Environment
from pytest_evocode.environments.scratch import scratch_directory

_PLACE = "/opt/evocode-clock"
_DAY = 86400  # seconds
_TOLERANCE = 3600  # seconds that the engine's clock may differ from ours


def put_clock_forward(environment: Environment, time_command: Sequence[str], days: int) -> Mapping[str, str]:
    """Bring libfaketime, and return the variables that make programs see a clock that is ``days`` ahead.

    No variables are returned where ``time_command``, which prints the time in seconds, still sees the true time with
    them: a statically linked program does not load the library, and one with another C library may not even start.
    """
    library = next(file for file in metadata.files("libfaketime") or () if file.name == "libfaketime.so.1")
    with scratch_directory() as directory:
        shutil.copy(str(library.locate()), directory)
        environment.upload([Path(directory)], _PLACE, writable=True)
    env = {
        "LD_PRELOAD": f"{_PLACE}/{library.name}",
        "FAKETIME": f"+{days}d",
        # Timeouts and measured times go by the monotonic clock, which no suite takes for a date.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    result = environment.exec(time_command, env=env, user="0", cwd="/", timeout=60)
    try:
        ahead = float(result.output) - time.time()
    except ValueError:
        return {}
    return env if abs(ahead - days * _DAY) < _TOLERANCE else {}
