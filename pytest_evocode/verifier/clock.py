"""Lets the programs of an environment see a later date, by libfaketime."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from pytest_evocode.environments import Environment

_PLACE = "/tests/.evocode/clock"
_DAY = 86400  # seconds
_TOLERANCE = 3600  # seconds that the engine's clock may differ from ours


def put_forward(environment: Environment, days: int, clock: Sequence[str]) -> Mapping[str, str]:
    """Bring the library and return the variables that make programs see a clock that is ``days`` ahead.

    ``clock`` is a command that prints the time in seconds. No variables are returned where it still prints the true
    time with them: a statically linked program does not load the library, and one with another C library may not even
    start with it.
    """
    library = next(file for file in metadata.files("libfaketime") or () if file.name == "libfaketime.so.1")
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(str(library.locate()), directory)
        environment.upload([Path(directory)], _PLACE, writable=True)
    env = {
        "LD_PRELOAD": f"{_PLACE}/{library.name}",
        "FAKETIME": f"+{days}d",
        # Timeouts and measured times go by the monotonic clock, which no suite takes for a date.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    result = environment.exec(clock, env=env, user="0", cwd="/", timeout=60)
    try:
        ahead = float(result.output) - time.time()
    except ValueError:
        return {}
    return env if abs(ahead - days * _DAY) < _TOLERANCE else {}
