"""Runs a round's suite, native or script, in a fork of its snapshot and reads the verdict."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from pytest_evocode.environments import Environment
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.native import run_native
from pytest_evocode.verifier.native_session import ForkSession, NativeSession, SeparateSession
from pytest_evocode.verifier.script import run_script
from pytest_evocode.verifier.suite_run import SuiteRun, SuiteSettings

_PLACE = "/opt/evocode-clock"
_DAY = 86400  # seconds
_TOLERANCE = 3600  # seconds that the engine's clock may differ from ours


def run_suite(
    fork: Environment,
    task: Task,
    round_: Round,
    settings: SuiteSettings,
    *,
    verifier: Environment | None = None,
) -> SuiteRun:
    """Run the suite of one round and return what came of it.

    ``fork`` comes from the round's snapshot, with the verifier's directories empty; the caller starts and stops it.
    ``verifier`` is where a native suite runs apart from the fork; with None it runs in it.
    Raises :class:`~pytest_evocode.errors.EnvironmentFault` when the engine fails.
    """
    started = time.monotonic()
    clock = _clock(fork, verifier, round_, settings) if settings.days else {}
    settings = replace(settings, env={**settings.env, **clock})
    if round_.has_script:
        suite = run_script(fork, task, round_, settings)
    else:
        suite = run_native(native_session(fork, verifier, task, round_, settings, clock))
    verdict = suite.verdict
    if verdict is not None:
        pinned = None
        if settings.pinned is not None:
            passed = {case.id for case in verdict.cases if case.status == "passed"}
            pinned = (len(passed & settings.pinned.keys()), len(settings.pinned))
        verdict = verdict.model_copy(update={"pinned": pinned})
    return replace(
        suite,
        verdict=verdict,
        seconds=time.monotonic() - started,
        days=settings.days if clock else 0,
    )


def native_session(
    fork: Environment,
    verifier: Environment | None,
    task: Task,
    round_: Round,
    settings: SuiteSettings,
    program_env: Mapping[str, str],
) -> NativeSession:
    """Return what runs a native suite, in the fork or, where there is a verifier environment, there."""
    if verifier is None:
        return ForkSession(fork, task, round_, settings)
    return SeparateSession(verifier, fork, task, round_, settings, program_env)


def _clock(
    fork: Environment, verifier: Environment | None, round_: Round, settings: SuiteSettings
) -> Mapping[str, str]:
    """Return variables with which the suite and its programs see another date; none unless both do."""
    if round_.has_script:
        return put_clock_forward(fork, ["date", "+%s"], settings.days)
    assert settings.toolbox is not None
    by_python = [settings.toolbox.python, "-I", "-c", "import time; print(time.time())"]
    if verifier is None:
        return put_clock_forward(fork, by_python, settings.days)
    return put_clock_forward(fork, ["date", "+%s"], settings.days) and put_clock_forward(
        verifier, by_python, settings.days
    )


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
